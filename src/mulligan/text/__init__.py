"""Untrusted text made safe: hidden text, escaping, secrets; commands in comments. Pure."""
