"""Write and read the record that a status comment holds, in an invisible line (RESTORE-1). Pure."""

import re

from pydantic import ValidationError

from mulligan.domain.restoration import StatusRecord
from mulligan.github.markdown_parts import MARKER

START = f"{MARKER}record "

LINE = re.compile(rf"^{re.escape(START)}(\{{.*\}}) -->$", re.MULTILINE)

ESCAPES = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>@#"})
"""JSON escapes for characters that would end the invisible line or mention somebody."""


def record_line(record: StatusRecord) -> str:
    """Write the record as one line that GitHub does not show."""
    text = record.model_dump_json(exclude_defaults=True, ensure_ascii=True)
    return f"{START}{text.translate(ESCAPES)} -->"


def record_in(text: str) -> StatusRecord | None:
    """Read the record of a comment; None if it has none, or not exactly one that can be read."""
    found = LINE.findall(text.replace("\r\n", "\n"))
    if len(found) != 1:
        return None
    try:
        return StatusRecord.model_validate_json(found[0])
    except ValidationError:
        return None
