"""Mirrors and worktrees that an agent cannot turn against Mulligan."""
