"""Make untrusted text safe to show and to pass on: visible, cut, on one line, or fenced. Pure."""

import hashlib
import re
from dataclasses import dataclass
from itertools import accumulate, count, takewhile
from typing import Self

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")

BREAK = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")

HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control, bidirectional, zero-width and other invisible characters."""

MARK_LENGTH = 12


def visible(text: str) -> str:
    """Remove invisible characters and terminal colours; normalise line ends to a newline."""
    return HIDDEN.sub("", BREAK.sub("\n", ANSI.sub("", text)))


def one_line(text: str, limit: int) -> str:
    """Fold text into one line of at most `limit` characters, cut with `…`, without escaping."""
    folded = " ".join(visible(text).split())
    return folded if len(folded) <= limit else folded[: limit - 1].rstrip() + "…"


def code_block(text: str, info: str = "") -> str:
    """Format text as a Markdown code block, its fence longer than any run of backticks inside."""
    shown = visible(text).strip("\n")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{info}\n{shown}\n{mark}"


def fence(kind: str, text: str) -> str:
    """Mark text in a prompt as untrusted, and name its source, `kind` (TRUST-4, CONTEXT-13).

    The mark is a hash of the text that does not occur in it: equal texts give equal bytes, and no
    text can contain its own end mark.
    """
    return enclose("untrusted", kind, text)


def enclose(tag: str, kind: str, text: str) -> str:
    """Mark text with another `tag`, in the same way as `fence`."""
    shown = visible(text).strip("\n")
    mark, source = mark_of(shown), one_line(kind, 60).replace('"', "'")
    return f'<{tag}-{mark} from="{source}">\n{shown}\n</{tag}-{mark}>'


def mark_of(text: str, length: int = MARK_LENGTH) -> str:
    """Return a hash of a text with `length` hex digits that does not occur in the text."""
    tries = (hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()[:length] for salt in count())
    return next(mark for mark in tries if mark not in text)


def omitted(lines: int) -> str:
    """Return the line that replaces omitted lines (CONTEXT-6)."""
    return f"[... {lines} {'line' if lines == 1 else 'lines'} omitted]"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines that are kept, and the number of lines and UTF-8 bytes omitted after them."""

    lines: tuple[str, ...] = ()
    left_out: int = 0
    left_out_bytes: int = 0

    @classmethod
    def of(cls, text: str) -> Self:
        """Return a whole text, without invisible characters and outer empty lines."""
        shown = visible(text).strip("\n")
        return cls(tuple(shown.split("\n")) if shown else ())

    def head(self, most: int) -> "Excerpt":
        """Keep at most `most` lines."""
        cut = self.lines[most:]
        return Excerpt(
            self.lines[:most], self.left_out + len(cut), self.left_out_bytes + _size(cut)
        )

    def both_ends(self, most: int) -> "Excerpt":
        """Keep at most `most` lines of both ends, a mark for the others in between included."""
        if len(self.lines) <= most:
            return self
        last = (most - 1) // 2
        first, end = max(1, most - 1 - last), len(self.lines) - last
        cut = self.lines[first:end]
        kept = (*self.lines[:first], omitted(len(cut)), *self.lines[end:])
        return Excerpt(kept, self.left_out, self.left_out_bytes + _size(cut))

    def within(self, most: int) -> "Excerpt":
        """Keep the lines that fit into `most` characters; cut a longer first line."""
        sizes = accumulate(len(line) + 1 for line in self.lines)
        kept = len(list(takewhile(lambda size: size <= most + 1, sizes)))
        if kept or not self.lines:
            return self.head(kept)
        first, rest = self.lines[0], self.head(1)
        cut = max(0, most - 1)
        lost = rest.left_out_bytes + len(first[cut:].encode())
        return Excerpt((f"{first[:cut]}…",), rest.left_out, lost)

    def __str__(self) -> str:
        return "\n".join([*self.lines, omitted(self.left_out)] if self.left_out else self.lines)


def _size(lines: tuple[str, ...]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


LAST_LINES = 15
"""How much of the output of a failed setup command is shown where it failed."""

LINE_CHARS = 500

BOX = re.compile(r"[\u2500-\u257f]+>? ?")
"""Lines and corners that a tool draws, such as pip's `╰─>`."""


def last_lines(output: str) -> str:
    """Return the last lines of an output that have words, as a terminal shows them."""
    shown = [visible(line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in output.split("\n")]
    words = [BOX.sub("", line).rstrip() for line in shown]
    kept = [line[:LINE_CHARS] for line in words if line.strip()][-LAST_LINES:]
    return "\n".join(kept) or "It printed nothing."
