"""The command line, the Action and the dashboard; `bootstrap/` builds everything for them."""
