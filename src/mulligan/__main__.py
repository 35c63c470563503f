"""`mulligan`, and `python -m mulligan`."""

import gc
import sys

OBJECTS = 50_000
"""How many new objects there may be before Python looks for garbage among them; its own is 700."""


INTERRUPTED = 130
"""The exit code after Ctrl-C; see interfaces/cli/exit_codes.py, whose import takes time."""


def main() -> None:
    """Run the command line."""
    # What is imported stays: looking through it again and again takes 40 ms of `mulligan status`.
    gc.set_threshold(OBJECTS)
    try:
        from mulligan.interfaces.cli.app import app

        app()
    except KeyboardInterrupt:
        # Ctrl-C before or after a command: the commands handle their own.
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
