"""Which program a shell line starts with, and whether this machine has it."""

import re
import shlex
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from mulligan.process import Command, run

LOOK_UP = 'command -v -- "$1"'
LOOK_UP_TIMEOUT = timedelta(seconds=30)
PLAIN_WORD = re.compile(r"[\w./+@-]+")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def program_of(line: str) -> str:
    """Name the word that a shell line runs first; nothing where only a shell could tell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        word = next((word for word in lexer if not ASSIGNMENT.match(word)), "")
    except ValueError:
        return ""
    return word if PLAIN_WORD.fullmatch(word) else ""


def is_there(program: str, environment: Mapping[str, str]) -> bool:
    """Ask the shell that runs the checks whether it finds a program, be it one of its own."""
    looked = run(
        Command(
            argv=("/bin/sh", "-c", LOOK_UP, "sh", program),
            directory=Path("/"),
            environment={"PATH": environment.get("PATH", "")},
            timeout=LOOK_UP_TIMEOUT,
        )
    )
    return not looked.exit_code
