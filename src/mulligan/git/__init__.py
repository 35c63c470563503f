"""Git commands; `worktrees/` holds mirrors, checkouts, commits and pushes."""
