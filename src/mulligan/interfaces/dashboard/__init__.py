"""Health, metrics, a JSON API and read-only pages, served by `mulligan run`."""
