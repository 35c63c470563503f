"""`mulligan`, and `python -m mulligan`."""

import gc

OBJECTS = 50_000
"""How many new objects there may be before Python looks for garbage among them; its own is 700."""


def main() -> None:
    """Run the command line."""
    # What is imported stays: looking through it again and again takes 40 ms of `mulligan status`.
    gc.set_threshold(OBJECTS)
    from mulligan.interfaces.cli.app import app

    app()


if __name__ == "__main__":
    main()
