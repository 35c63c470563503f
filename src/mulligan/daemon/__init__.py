"""The daemon: polls, visits to issues, commands, reviews, recovery, clean-up."""
