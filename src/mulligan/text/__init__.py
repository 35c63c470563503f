"""Makes foreign text safe: hidden text, escaping, secrets; parses commands in comments. Pure."""
