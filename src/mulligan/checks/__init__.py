"""Runs setup commands, checks and the reviewer, and judges the results; holds the guards."""
