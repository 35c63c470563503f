"""Runs coding agents: how each one is started, what its output means, and what it costs."""
