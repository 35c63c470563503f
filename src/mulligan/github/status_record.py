"""Write and read the record that a status comment holds, in an invisible line (RESTORE-1). Pure."""

from pydantic import ValidationError

from mulligan.domain.restoration import StatusRecord
from mulligan.github.marks import CLOSING, MARKER, heads

KIND = "record"

ESCAPES = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>@#"})
"""JSON escapes for characters that would end the invisible line or mention somebody."""


def record_line(record: StatusRecord) -> str:
    """Write the record as one line that GitHub does not show."""
    text = record.model_dump_json(exclude_defaults=True, ensure_ascii=True)
    return f"{MARKER}{KIND} {text.translate(ESCAPES)} {CLOSING}"


def record_in(text: str) -> StatusRecord | None:
    """Read the record of a comment; None if it has none, or not exactly one that can be read."""
    found = [*heads(text, KIND)]
    if len(found) != 1:
        return None
    try:
        return StatusRecord.model_validate_json(found[0])
    except ValidationError:
        return None
