"""Text on its way to people, to GitHub and to agents, made safe for each. Pure."""
