"""Health, metrics, a JSON API and pages with commands, served by `mulligan run`."""
