"""Writes the prompt of an attempt: the task, and what earlier attempts came to. Pure."""
