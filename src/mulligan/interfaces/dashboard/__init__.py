"""The dashboard: health, metrics, a JSON API and pages, served by `mulligan run`; all to read."""
