"""Count what is left out of a text, and take out invisible characters (TRUST-4). Pure."""

import re
from collections import Counter
from enum import StrEnum

from mulligan.text.escape import ANSI, HIDDEN


class Hidden(StrEnum):
    """Kinds of content that is left out; the last two stay in the text and are only counted."""

    WORD = "words_not_shown"
    """Of comments, titles, attributes and the like, those of markup included."""
    ELEMENT = "hidden_elements"
    EMPTY_LINK = "empty_links"
    LONG_TARGET = "long_link_targets"
    IMAGE = "images"
    FORMULA = "formulas"
    DIAGRAM = "diagrams"
    TOO_DEEP = "nested_too_deep"
    TAG_CHARACTER = "tag_characters"
    VARIATION_SELECTOR = "variation_selectors"
    BIDIRECTIONAL = "bidirectional_controls"
    ZERO_WIDTH = "zero_width"
    CONTROL = "control_characters"
    CUT = "bytes_over_the_limit"
    COLLAPSED = "collapsed_details"
    TARGET = "link_targets"


Counts = Counter[Hidden]


UNSEEN = re.compile(f"{ANSI.pattern}|{HIDDEN.pattern}")

CHARACTERS = (
    (Hidden.TAG_CHARACTER, re.compile("[\U000e0000-\U000e00ff]")),
    (Hidden.VARIATION_SELECTOR, re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u180b-\u180f]")),
    (Hidden.BIDIRECTIONAL, re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")),
    (Hidden.CONTROL, re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")),
    (Hidden.ZERO_WIDTH, re.compile("(?s:.)")),
)
"""The kinds of characters that `UNSEEN` finds; the first match counts, the last is the rest."""


def strip_invisible(text: str, counts: Counts) -> str:
    """Remove invisible characters, and count them by kind."""

    def dropped(found: re.Match[str]) -> str:
        counts[next(kind for kind, pattern in CHARACTERS if pattern.match(found[0]))] += 1
        return ""

    return UNSEEN.sub(dropped, text)
