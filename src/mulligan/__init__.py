"""Mulligan: a labelled issue becomes a pull request, or reaches a person; a retry is never blind."""

__version__ = "0.1.0"
