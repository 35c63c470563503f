"""GitHub's API: issues, labels, comments, pull requests, permissions, rate limits."""
