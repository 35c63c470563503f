"""Builds all objects from the configuration; the only code that imports every adapter."""
