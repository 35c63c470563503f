"""The prompt of an attempt: the task, and the history of earlier attempts. Pure."""
