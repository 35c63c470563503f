"""The exit codes of the command line (SPEC 16)."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command came to; FAILED wins over ESCALATED."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ESCALATED = 3
    INTERRUPTED = 130
