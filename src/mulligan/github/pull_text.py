"""Mulligan's part of a pull request's text, and what people wrote around or instead of it. Pure.

Two marks enclose the part: the first of its kind, and the last, since people write around it. The
last one holds the checksums of the title and the text that Mulligan wrote: whatever differs from
them is a person's. The checksums are in the text itself, so one request writes both, and they
outlive the ledger. Only people who may edit the text anyway can forge them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from mulligan.domain.issue import IssueRef
from mulligan.github.marks import MARKER, mark_in, marker
from mulligan.github.messages import UNVERIFIED
from mulligan.text.pull_template import fill

CHECKSUM_CHARS = 12

START, END = "text", "pull-request"

DESCRIPTION, DESCRIBED = "description", "described"
"""The kinds of the marks around the description in the repository's template."""

MAX_CHARS = 65_000
"""GitHub accepts 65,536 characters."""

AUTHOR = re.compile(r"\S+ by=(\w+)(?: title=(\w+) text=(\w+))?")
"""What the last mark says, also as it was before it held checksums."""


@dataclass(frozen=True, slots=True)
class PullText:
    """The title and the text of a pull request; `kept`: a person's text is in place of ours."""

    title: str
    body: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class OwnText:
    """What Mulligan writes: the title, and its part of the text.

    If the repository's template takes the `description`, the part is `beside` it.
    """

    title: str
    text: str
    description: str = ""
    beside: str = ""

    def mapped(self, change: Callable[[str], str]) -> "OwnText":
        """Return the same with each text changed."""
        return OwnText(*map(change, (self.title, self.text, self.description, self.beside)))


def new_text(own: OwnText, ref: IssueRef, instance: str, template: str = "") -> PullText:
    """Return the title, and the text with its marks, for a pull request that Mulligan opens.

    The repository's template stands before Mulligan's part, as if a person had written it.
    """
    filled = fill(template, ref.number, _described(own.description, ref)) if template else None
    text = own.beside if filled and filled.described else own.text
    part = _marked(text, ref, instance, (_checksum(own.title), _checksum(text)))
    whole = f"{filled.text}\n\n{part}" if filled else part
    if len(whole) > MAX_CHARS:
        # Mulligan's part alone always fits.
        return new_text(own, ref, instance)
    return PullText(own.title, whole)


def updated_text(now: PullText, own: OwnText, ref: IssueRef) -> PullText:
    """Bring a pull request up to date, but keep what a person changed since Mulligan wrote it.

    Text outside the marks stays. So does the whole part if somebody edited it, and everything if
    the marks are gone. So does the description in the template. A title that somebody changed
    stays, without the mark of unverified work once the work is verified.
    """
    title, found = own.title, _own_part(now.body)
    if found is None:
        return PullText(_verified(now.title, title), now.body, kept=True)
    before, written, after, (instance, title_sum, text_sum) = found
    described = _updated_description(before, own.description, ref)
    text = own.text if described is None else own.beside
    if described is not None:
        before = described
    is_title_ours = _checksum(now.title) == title_sum
    is_text_ours = _checksum(written) == text_sum
    sums = (
        _checksum(title) if is_title_ours else title_sum,
        _checksum(text) if is_text_ours else text_sum,
    )
    part = _marked(text if is_text_ours else written, ref, instance, sums)
    return PullText(
        title if is_title_ours else _verified(now.title, title),
        f"{before}{part}{after}",
        kept=not is_text_ours,
    )


def _described(description: str, ref: IssueRef) -> str:
    """Return the description with its marks; the second one holds its checksum."""
    start = f"{MARKER}{DESCRIPTION} {ref}: Mulligan updates the text down to the next mark. -->"
    return f"{start}\n{description}\n\n{marker(DESCRIBED, ref, f'text={_checksum(description)}')}"


def _updated_description(before: str, description: str, ref: IssueRef) -> str | None:
    """Replace the description before Mulligan's part, unless a person edited it.

    None if there is no description.
    """
    lines = before.split("\n")
    kinds = [mark.kind if (mark := mark_in(line)) else "" for line in lines]
    if DESCRIPTION not in kinds or DESCRIBED not in kinds:
        return None
    start, end = kinds.index(DESCRIPTION), kinds.index(DESCRIBED)
    written = "\n".join(lines[start + 1 : end])
    if f"text={_checksum(written)}" not in lines[end]:
        return before
    return "\n".join((*lines[:start], _described(description, ref), *lines[end + 1 :]))


def opened_by(body: str) -> str | None:
    """Return the installation that a text names as its author, if any."""
    last = _last(body.splitlines())
    return last[1][0] if last else None


def _own_part(body: str) -> tuple[str, str, str, tuple[str, str, str]] | None:
    """Split a text into what stands before, in and after Mulligan's part, and its checksums."""
    lines = body.replace("\r\n", "\n").split("\n")
    end, sums = _last(lines) or (0, ("", "", ""))
    start = next((at for at in range(end) if _is_start(lines[at])), None)
    if start is None or not all(sums):
        return None
    before = "".join(f"{line}\n" for line in lines[:start])
    after = "".join(f"\n{line}" for line in lines[end + 1 :])
    return before, "\n".join(lines[start + 1 : end]).rstrip("\n"), after, sums


def _is_start(line: str) -> bool:
    mark = mark_in(line)
    return mark is not None and mark.kind == START


def _last(lines: Sequence[str]) -> tuple[int, tuple[str, str, str]] | None:
    """Return the index of the last line of Mulligan's part, its author and its checksums."""
    for at in reversed(range(len(lines))):
        mark = mark_in(lines[at])
        named = AUTHOR.fullmatch(mark.about) if mark and mark.kind == END else None
        if named:
            return at, (named[1], named[2] or "", named[3] or "")
    return None


def _verified(now: str, wanted: str) -> str:
    return now if wanted.startswith(UNVERIFIED) else now.removeprefix(UNVERIFIED)


def _marked(text: str, ref: IssueRef, instance: str, sums: tuple[str, str]) -> str:
    start = f"{MARKER}{START} {ref}: Mulligan updates the text below, down to its last line. -->"
    end = marker(END, ref, f"by={instance} title={sums[0]} text={sums[1]}")
    return f"{start}\n{text}\n\n{end}"


def _checksum(text: str) -> str:
    return sha256(text.strip().encode()).hexdigest()[:CHECKSUM_CHARS]
