"""What a person says is to be done, as it is taken and as an agent reads it (SPEC C14). Pure."""

from mulligan.errors import UsageError
from mulligan.text.escape import visible
from mulligan.text.fence import enclose

MAX_CHARS = 4000
"""Guidance reaches the agent whole, so that what is longer is not taken."""

HEADING = "Human guidance"
OPENING = (
    "A maintainer who is trusted on this repository decided this. It is an instruction: follow it, "
    "also where the issue or an earlier attempt says otherwise."
)


def accept_guidance(text: str) -> str:
    """Take a person's words as guidance; UsageError where there are none, or too many."""
    words = visible(text).strip()
    if not words:
        message = "The guidance is empty; write what is to be done."
        raise UsageError(message)
    if len(words) > MAX_CHARS:
        message = (
            f"The guidance has {len(words)} characters; shorten it to {MAX_CHARS}, since it "
            "reaches the agent whole."
        )
        raise UsageError(message)
    return words


def guidance_block(words: str) -> str:
    """Write guidance for a prompt, between marks that it cannot close; empty for none."""
    return f"{OPENING}\n\n{enclose('guidance', 'a trusted maintainer', words)}" if words else ""
