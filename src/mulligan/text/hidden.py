"""What of a text nobody sees: its kinds, and the characters among them. Pure."""

import re
from collections import Counter
from enum import StrEnum

from mulligan.text.escape import ANSI, HIDDEN


class Hidden(StrEnum):
    """What was taken out of a text; the last two stay in it and are only counted."""

    COMMENT = "comments"
    INSTRUCTION = "processing_instructions"
    DECLARATION = "declarations"
    ELEMENT = "hidden_elements"
    TAG = "tags"
    ATTRIBUTE = "attributes"
    DEFINITION = "link_definitions"
    TITLE = "link_titles"
    EMPTY_LINK = "empty_links"
    LONG_TARGET = "long_link_targets"
    IMAGE = "images"
    FOOTNOTE = "footnotes"
    CODE_INFO = "code_info"
    TOO_DEEP = "nested_too_deep"
    TAG_CHARACTER = "tag_characters"
    VARIATION_SELECTOR = "variation_selectors"
    BIDIRECTIONAL = "bidirectional_controls"
    ZERO_WIDTH = "zero_width"
    CONTROL = "control_characters"
    CUT = "bytes_over_the_limit"
    COLLAPSED = "collapsed_details"
    TARGET = "link_targets"


KEPT = frozenset({Hidden.COLLAPSED, Hidden.TARGET})
"""What a person sees only after a click: it stays, and is counted."""

Counts = Counter[Hidden]

UNSEEN = re.compile(f"{ANSI.pattern}|{HIDDEN.pattern}")
CHARACTERS = (
    (Hidden.TAG_CHARACTER, re.compile("[\U000e0000-\U000e00ff]")),
    (Hidden.VARIATION_SELECTOR, re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180f]")),
    (Hidden.BIDIRECTIONAL, re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")),
    (Hidden.CONTROL, re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")),
    (Hidden.ZERO_WIDTH, re.compile("(?s:.)")),
)
"""The kinds of what `UNSEEN` finds; the first that matches, so the last is the rest."""


def without_unseen(text: str, counts: Counts) -> str:
    """Take out the characters that nobody sees, and count them."""

    def dropped(found: re.Match[str]) -> str:
        counts[next(kind for kind, pattern in CHARACTERS if pattern.match(found[0]))] += 1
        return ""

    return UNSEEN.sub(dropped, text)
