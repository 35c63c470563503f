"""The GitHub Action: what it is given, and what it says to the runner."""
