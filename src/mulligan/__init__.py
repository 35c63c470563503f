"""Mulligan: a labelled issue becomes a pull request, or reaches a person. No retry is blind."""

__version__ = "0.1.0"
