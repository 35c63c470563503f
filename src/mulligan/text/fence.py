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
    shown = visible(text).strip("\n")
    mark, source = _mark(shown), one_line(kind, 60).replace('"', "'")
    return f'<untrusted-{mark} from="{source}">\n{shown}\n</untrusted-{mark}>'


def _mark(text: str) -> str:
    tries = (hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest() for salt in count())
    return next(tried[:MARK_LENGTH] for tried in tries if tried[:MARK_LENGTH] not in text)
