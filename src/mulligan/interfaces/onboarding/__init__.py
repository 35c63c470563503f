"""Proposes a configuration for `mulligan init`, from a repository's workflows and files."""
