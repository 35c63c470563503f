"""The exit codes of every command; apart from `terminal.py`, since `--help` needs no more."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command came to; FAILED wins over ESCALATED."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ESCALATED = 3
    INTERRUPTED = 130
