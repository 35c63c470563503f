"""The command line, the Action and the dashboard; `bootstrap/` builds the objects they need."""
