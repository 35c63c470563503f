"""Builds everything from the configuration; the only code that imports every adapter."""
