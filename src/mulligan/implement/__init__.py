"""READ FIRST: the route of one issue is phase.py; the files beside it are its steps."""
