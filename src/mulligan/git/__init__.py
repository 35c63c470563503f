"""Calls git; `worktrees/` holds mirrors, checkouts, commits and pushes."""
