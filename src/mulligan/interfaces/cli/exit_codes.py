"""The exit codes of every command; separate from `terminal.py` to keep `--help` fast."""

from enum import IntEnum


class Exit(IntEnum):
    """The result of a command; FAILED has priority over ESCALATED."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ESCALATED = 3
    INTERRUPTED = 130
