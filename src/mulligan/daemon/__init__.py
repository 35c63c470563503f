"""Decides when to do what: polls, visits to issues, commands, reviews, recovery, clean-up."""
