"""Proposes a configuration for a repository, from the names of its files and a few small texts."""
