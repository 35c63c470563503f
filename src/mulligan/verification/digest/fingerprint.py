"""Tell whether two failures are the same, on another day, in another directory. Pure."""

import hashlib
import posixpath
import re
from collections.abc import Iterable, Sequence

from mulligan.domain.result import Finding, names_unit
from mulligan.verification.digest.locations import FOREIGN

LENGTH = 16

VOLATILE = tuple(
    (re.compile(pattern), mark)
    for pattern, mark in (
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b0x[0-9a-fA-F]+\b", "<address>"),
        (
            r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?",
            "<time>",
        ),
        (r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
        (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .{0,16}<time>(?: \d{4})?", "<time>"),
        (
            r"\b\d+(?:\.\d+)? ?(?:[nµum]?s|secs?|seconds?|mins?|minutes?|hours?)\b",
            "<duration>",
        ),
        (r" ?[\[(]<duration>[\])]", ""),
        (r"\bcc[A-Za-z0-9]{6}\.(?=(?:ltrans\d+\.)?(?:o|s|res|out)\b)", "<temporary>."),
        (r"\btmp[._-]?\w{6,12}\b", "<temporary>"),
        (r"(?<![\w.])(?:[A-Za-z]:)?[\\/](?:[\w.@~+=%-]+[\\/])+(?=[\w.@~+=%-])", "<path>/"),
        (r"(?<=[\w)\]]):\d+(?::\d+)?(?=[\s:,)\]]|$)|(?<=\w)\(\d+,\d+\)", ""),
        (r"(?i)\b(line|column|col|char|offset|position|row)s?:? \d+(?:[-:]\d+)?", r"\1 <n>"),
        (r"(?i)\b(pid|tid|process|thread|worker|port|seed|gw|job|session)([ =:#]*)\d+", r"\1\2<n>"),
        (r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\b", "<id>"),
        (r"==\d+==|\[\d{3,}\]", "<n>"),
        (r"\d{6,}", "<n>"),
        (r"\s+", " "),
    )
)
"""What differs between two runs that fail alike, and what is put in its place."""


def normalise(text: str) -> str:
    """Replace what differs between two runs of the same failure."""
    for pattern, mark in VOLATILE:
        text = pattern.sub(mark, text)
    return text.strip()


def fingerprint(findings: Sequence[Finding], telling: Iterable[str] = ()) -> str:
    """Hash what identifies the findings, or where there are none the telling lines; in hex."""
    root = _common_directory([found.file for found in findings if found.file])
    identities = {identity(found, root) for found in findings} or set(map(normalise, telling))
    joined = "\n".join(sorted(identities))
    return hashlib.sha256(joined.encode(errors="replace")).hexdigest()[:LENGTH]


def identity(found: Finding, root: str = "") -> str:
    """Give what a finding is known by: its test, or else its file, code and message (SPEC D4).

    A test whose id names neither package nor class nor file is known by the file it fails in, too.
    """
    if found.test_id and names_unit(found.test_id):
        return normalise(found.test_id)
    file = (found.file or "").replace("\\", "/")
    file = normalise((file.removeprefix(root) if root else file).removeprefix("./"))
    if found.test_id:
        return f"{file}|{normalise(found.test_id)}" if file else normalise(found.test_id)
    return "|".join((file, found.code or "", normalise(found.message)))


def _common_directory(files: Iterable[str]) -> str:
    """Find the directory, ended by a slash, that all absolute paths of the project lie in."""
    own = [file.replace("\\", "/") for file in files if not FOREIGN.search(file)]
    absolute = [posixpath.dirname(file) for file in own if re.match(r"/|[A-Za-z]:/", file)]
    if not absolute:
        return ""
    return posixpath.commonpath(absolute).rstrip("/") + "/"
