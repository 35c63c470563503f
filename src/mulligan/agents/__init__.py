"""Coding agents: how to start each one, read its output, and compute its cost."""
