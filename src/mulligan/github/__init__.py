"""Talks to GitHub: issues, labels, comments, pull requests, permissions, rate limits."""
