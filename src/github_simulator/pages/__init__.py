"""Pages of the simulated GitHub: issues and pull requests, read and answered in a browser."""
