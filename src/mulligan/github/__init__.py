"""The port Tracker on GitHub: issues in; labels, comments and pull requests out."""
