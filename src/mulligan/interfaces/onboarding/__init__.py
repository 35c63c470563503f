"""Proposes a configuration for `mulligan init`, from the files of a repository."""
