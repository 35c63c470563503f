"""Coding agents: any command-line program that works in a directory."""
