"""Configuration: every key with its default and meaning; the only code that reads the files."""
