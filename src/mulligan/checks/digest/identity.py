"""Tell whether two failures, in two runs of a command, are the same one (DIGEST-4). Pure."""

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from mulligan.checks.digest.locations import FOREIGN
from mulligan.domain.result import Finding, names_unit

# What no failure is known by

_SECONDS = r"(?:[nµum]?s|secs?|seconds?|mins?|minutes?)"
_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d"
_TOOK = r"in|took|elapsed|time|duration(?:_ms)?"
_NO_HOST = r"(?!(?:com|org|net|io|dev|local|internal|example|test)\b)"
_NAMED = rf"\.{_NO_HOST}[A-Za-z]\w{{0,8}}|\b[A-Z]\w*file|\b[A-Z]\w*\.[a-z]\w*"

POSITIONS = tuple(
    (re.compile(pattern, re.MULTILINE), mark)
    for pattern, mark in (
        # Lines and columns: after a file, in brackets, in words, and beside the lines of a file.
        (rf"({_NAMED}):\d+(?::\d+)?(?!\w)", r"\1"),
        (r"(\.[A-Za-z]\w{0,8})\(\d+(?:,\d+)?\)", r"\1"),
        (r"(?i)\b(lines?|columns?|col)(:? )\d+(?:[-:,]\d+)?", r"\1\2<n>"),
        (r"^\W{0,4}\d+ (?=[|│])", ""),
        # Progress, durations, and when a line was written.
        (r"^ *\[ *\d+(?:%|/\d+)\]|\[ *\d+%\]$", ""),
        (rf" ?[\[(]\d+(?:\.\d+)? ?{_SECONDS}[\])]|\t\d+\.\d+s$", ""),
        (rf"(?i)\b({_TOOK})(:? )\d+\.\d+(?: ?{_SECONDS}\b)?", r"\1\2<t>"),
        (rf"^\W{{0,2}}{_TIME}\S*|{_TIME}\.\d{{3,9}}(?: ?[+-]\d\d:?\d\d|Z)?", "<time>"),
        # Places in memory, and how a text is laid out.
        (r"\b0x[0-9a-fA-F]{9,16}\b|(?<=[\w$])@[0-9a-f]{5,8}\b", "<address>"),
        (r" +", " "),
    )
)
"""What differs between two runs of the same failure, or after a change elsewhere.

Every other value counts, unless it differed between two runs of the same tree.
"""


@lru_cache(maxsize=4096)
def without_positions(text: str) -> str:
    """Leave lines, columns, progress and durations out of a message."""
    for pattern, mark in POSITIONS:
        text = pattern.sub(mark, text)
    return text.strip(" \n")


# Names of failures

FINGERPRINT_DIGITS = 16


def fingerprint(findings: Sequence[Finding], telling: Iterable[str] = ()) -> str:
    """Hash the identities of the findings, or without findings the relevant lines; in hex."""
    root = _common_directory([found.file for found in findings if found.file])
    identities = [identity(found, root) for found in findings] or telling
    return _hash("\n".join(sorted({*map(without_positions, identities)})))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:FINGERPRINT_DIGITS]


def identity(found: Finding, root: str = "") -> str:
    """Return the identity of a finding: its test, or its file, code and message (DIGEST-4)."""
    known = name_of(found, root)
    return known if found.test_id else f"{known}|{without_positions(found.message)}"


def name_of(found: Finding, root: str = "") -> str:
    """Return the name of a finding: its test, or its file and code.

    If the id of a test has no package, class or file, the file in which it fails is part of the
    name.
    """
    file = _stable((found.file or "").replace("\\", "/"), root)
    test = _stable(found.test_id or "", root)
    if test:
        return f"{file}|{test}" if file and not names_unit(test) else test
    return f"{file}|{found.code or ''}"


VOLATILE_IN_NAMES = re.compile(
    r" [\[(]\d[\d.,]* ?[nµum]?s[\])]$|\b0x[0-9a-f]{8,}\b|\btmp\w{6,12}\b"
)
"""What differs between runs in a name. All other numbers are parameters of a test."""


def _stable(name: str, root: str) -> str:
    """Leave out of a path, or of a test's name, what another run or another place changes."""
    return stable_name(name.replace(root, "") if root else name).removeprefix("./")


def stable_name(name: str) -> str:
    """Leave out of a test's name what differs between runs."""
    return VOLATILE_IN_NAMES.sub("", name)


def _common_directory(files: Iterable[str]) -> str:
    """Return the common directory of all absolute paths of the project, with a slash at the end."""
    own = [file.replace("\\", "/") for file in files if not FOREIGN.search(file)]
    absolute = [posixpath.dirname(file) for file in own if re.match(r"/|[A-Za-z]:/", file)]
    if not absolute:
        return ""
    return posixpath.commonpath(absolute).rstrip("/") + "/"


# Lines about failures

MAX_EVIDENCE = 500

ORDINAL = re.compile(r"(?:^|(?<=[\s#/]))\d+(?=[\s/:)]|$)")
"""A number in a list: `2/3 Test #2`, `not ok 2`."""


def evidence_of(lines: Iterable[str]) -> str:
    """Hash each of the lines about failures; empty if there are too many to keep."""
    texts = (ORDINAL.sub("<n>", without_positions(line)) for line in lines)
    hashes = {_hash(text)[:8] for text in texts if text}
    return " ".join(sorted(hashes)) if len(hashes) <= MAX_EVIDENCE else ""


# What differs between two runs of the same tree

ANY = "\ufffc"
"""Stands in a message for whatever differed."""

TOKEN = re.compile(r"[\w.:/+%-]+|\s+|.")
"""A value such as a time, a path or an id is one, so that no part of it stays by chance."""

WORD = re.compile(r"\w")
MAX_TOKENS = 400


def template(one: str, other: str) -> str | None:
    """Return a message with `ANY` for what differs from another; None if most of it does."""
    ours, theirs = TOKEN.findall(one), TOKEN.findall(other)
    if max(len(ours), len(theirs)) > MAX_TOKENS:
        return None
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    same = [token for at, _, size in blocks for token in ours[at : at + size]]
    if 2 * _words(same) < max(_words(ours), _words(theirs)):
        return None
    return "".join(_with_gaps(ours, blocks))


def _with_gaps(ours: Sequence[str], blocks: Iterable[tuple[int, int, int]]) -> Iterator[str]:
    our_end = their_end = 0
    for at, their_at, size in blocks:
        if at > our_end or their_at > their_end:
            yield ANY
        yield from ours[at : at + size]
        our_end, their_end = at + size, their_at + size


def _words(tokens: Iterable[str]) -> int:
    return sum(bool(WORD.match(token)) for token in tokens)


def fits(known: str, message: str) -> bool:
    """Return whether a message is as a template says."""
    first, *parts = known.split(ANY)
    if not parts:
        return message == known
    last, at = parts.pop(), len(first)
    for part in parts:
        at = message.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return message.startswith(first) and message.endswith(last) and at + len(last) <= len(message)
