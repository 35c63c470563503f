"""Builds everything from the configuration; the only package that knows every adapter."""
