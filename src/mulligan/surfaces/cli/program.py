"""How this program was started, so that what it tells people to type works for them."""

import re
import shutil
import sys
from pathlib import Path

HINT = re.compile(r"(?<=`)mulligan(?= [a-z])")
MODULE = "__main__.py"


def program() -> str:
    """Give the words that start this program: as they were typed, or found along PATH."""
    started = Path(sys.argv[0])
    if started.name == MODULE:
        return "python -m mulligan"
    found = shutil.which(started.name)
    return started.name if found and Path(found) == started else str(started)


def as_started(text: str) -> str:
    """Write the commands that a text names in backquotes as this program was started."""
    return HINT.sub(lambda _: program(), text)
