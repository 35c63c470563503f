"""Put text between marks that it cannot close: for Markdown, and for prompts. Pure."""

import hashlib
import re
from itertools import count

from mulligan.text.escape import one_line, visible

MARK_LENGTH = 12


def code_block(text: str, info: str = "") -> str:
    """Write text as a Markdown code block, its fence longer than any run of backticks inside."""
    shown = visible(text).strip("\n")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{info}\n{shown}\n{mark}"


def fence(kind: str, text: str) -> str:
    """Mark text in a prompt as untrusted, and say that it comes from `kind` (SPEC T4, C15).

    The mark is a hash of the text that does not occur in it: equal texts give equal bytes, and
    no text can hold its own end.
    """
    return enclose("untrusted", kind, text)


def enclose(tag: str, kind: str, text: str) -> str:
    """Mark text as what `tag` says, in the same way."""
    shown = visible(text).strip("\n")
    mark, source = mark_of(shown), one_line(kind, 60).replace('"', "'")
    return f'<{tag}-{mark} from="{source}">\n{shown}\n</{tag}-{mark}>'


def mark_of(text: str, length: int = MARK_LENGTH) -> str:
    """Hash a text to a mark of so many hex digits that does not occur in it."""
    tries = (hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()[:length] for salt in count())
    return next(mark for mark in tries if mark not in text)
