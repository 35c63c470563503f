"""Read pytest: its failed tests with reason and place. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mulligan.checks.digest.blocks import TRACEBACK_FRAME, dedent
from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.findings import MAX_FINDINGS, FindingBlock, Reading, finding
from mulligan.checks.digest.locations import Place, number

# The whole output

MARK = re.compile(
    r"^=+ (?:test session starts|FAILURES|ERRORS|short test summary info) =+$"
    r"|^INTERNALERROR>|pytest\S*: error:|^ImportError while loading conftest"
    r"|^(?:=+ )?(?:\d+ (?:passed|failed|error|deselected)|no tests ran).* in [\d.]+s"
    r"|^(?:FAILED|ERROR) \S+\.py::"
)


TOTALS = re.compile(
    r"^(?:=+ )?(?P<totals>(?:\d+ [a-z]+(?: [a-z]+)?(?:, |(?= in )))+|no tests ran)"
    r"(?P<time> in [\d.]+s)"
)

BAD = re.compile(r"\b(\d++) (?:failed|errors?)\b")


def read_pytest(log: CleanLog) -> Reading:
    """Return the failed tests, or why none ran; nothing if the output is not pytest's."""
    lines = log.lines
    if not any(MARK.search(line) for line in lines):
        return Reading()
    named = list(_summary(lines))
    reasons = blocks(lines)
    failed = list(_failed(named[:MAX_FINDINGS], reasons))
    if not (named and any(map(SUMMARY_TITLE.match, lines))):
        failed += _from_blocks(reasons)
    totals = [found for line in lines if (found := TOTALS.match(line))]
    totals_line = tuple(found["totals"] + found["time"] for found in totals[-1:])
    counts = (sum(map(int, BAD.findall(found["totals"]))) for found in totals)
    count = max(len(named) if len(named) > MAX_FINDINGS else 0, sum(counts))
    claimed = _claimed(lines).union(
        *(range(at, at + 2) for found in failed if (at := found.at) is not None)
    )
    return Reading(tuple(failed), count, totals_line, claimed)


def _claimed(lines: Sequence[str]) -> frozenset[int]:
    """Return the progress, and the lines of each run, from its first mark to its totals."""
    claimed = {at for at, line in enumerate(lines) if VERBOSE.match(line)}
    start = None
    for at, line in enumerate(lines):
        if start is None and MARK.search(line):
            start = at
        if start is not None and (TOTALS.match(line) or at == len(lines) - 1):
            claimed.update(range(start, at + 1))
            start = None
    return frozenset(claimed)


# The blocks beneath FAILURES and ERRORS

TITLE = re.compile(
    r"^=+ (?P<name>test session starts|FAILURES|ERRORS|PASSES|XPASSES|XFAILURES"
    r"|short test summary info|rerun test summary info|warnings summary.*|slowest .*"
    r"|tests? coverage|.* in [\d.]+s.*) =+$"
)

HEADER = re.compile(
    r"^[_―]{3,} (?:ERROR (?:at (?:setup|teardown) of|collecting) )?(?P<name>\S.*?) [_―]{3,}$"
)


@dataclass(frozen=True, slots=True)
class Why:
    """The reason of a failed test; `at` is the index of its line, `origin` the test's file."""

    at: int
    message: tuple[str, ...] = ()
    place: Place | None = None
    source: tuple[str, ...] = ()
    origin: str = ""


def blocks(lines: Sequence[str]) -> dict[str, list[Why]]:
    """Read the blocks by the names above them; tests of one name are in their order."""
    found = defaultdict[str, list[Why]](list)
    header: tuple[str, int] | None = None
    section = ""
    for at, line in enumerate([*lines, "= short test summary info ="]):
        title = TITLE.match(line)
        inside = section in {"FAILURES", "ERRORS"} or line.startswith("―")
        opening = HEADER.match(line) if inside else None
        if header and (title or opening):
            found[header[0]].append(why(lines, header[1], at))
        if title or opening:
            is_error = section.startswith("ERROR") or " at setup of " in line
            kind = "ERRORS" if is_error else "FAILURES"
            header = (block_key(kind, opening["name"]), at) if opening else None
        section = title["name"] if title else section
    return found


def block_key(kind: str, name: str) -> str:
    """Make the key of a block; its first letter separates failures (F) from errors (E)."""
    return f"{kind.removeprefix('SUB')[0]} {name}"


CAPTURED = re.compile(r"^-{3,} (?:Captured|live log) .* -{3,}$")

PLACE = re.compile(r"""^(?P<file>[^\s:'"=][^:'"=]*\.\w+):(?P<line>\d+): ?""")
"""The last line of a block, `file:line: Error`; with --tb=short, the first of each frame."""

SAID = re.compile(r"^E(?:   |$)")


def why(lines: Sequence[str], start: int, end: int) -> Why:
    """Read one block: its last exception, and its last place in the project's own code."""
    stop = next((at for at in range(start, end) if CAPTURED.match(lines[at])), end)
    found = (PLACE.match(lines[at]) for at in range(start, stop))
    places = [Place(place["file"], number(place["line"])) for place in found if place]
    own = [place for place in places if place.is_own]
    origin = (own or places)[0].file if places else ""
    plain = Why(start, place=own[-1] if own else None, origin=origin)
    marked = [at for at in range(start, stop) if SAID.match(lines[at])]
    if not marked:
        return plain
    return _with_said(lines, marked, plain)


def _with_said(lines: Sequence[str], places: Sequence[int], plain: Why) -> Why:
    """Take the message from the last group of lines that begin with E."""
    said = frozenset(places)
    runs = [at for at in places if at - 1 not in said]
    message = dedent([lines[at][4:] for at in places if at >= runs[-1]])
    inner = [frame for text in message if (frame := TRACEBACK_FRAME.match(text))]
    place = Place(inner[-1]["file"], number(inner[-1]["line"])) if inner else plain.place
    if inner:
        message = message[-1:] + message[:-1]
    marked = [line for line in lines[plain.at : runs[-1]] if line.startswith(">")]
    source = [f"> {line[1:].strip()}" for line in marked[-1:]]
    causes = [f"after {lines[at][4:].strip()}" for at in runs[:-1]]
    return Why(runs[-1], message, place, (*source, *causes), plain.origin)


# Tests named by the summary

Entry = tuple[int, str, str, str]
"""Line, id, name of the block, and message."""


def _failed(named: Iterable[Entry], reasons: dict[str, list[Why]]) -> Iterator[FindingBlock]:
    """Yield the tests that the summary names; take out their reasons."""
    for at, test_id, key, message in named:
        waiting = reasons.get(key)
        own = _of_file(test_id, waiting) if waiting else 0
        reason = waiting.pop(own) if waiting else Why(at)
        yield _found(test_id, reason, message)


def _of_file(test_id: str, reasons: Sequence[Why]) -> int:
    """Return which block is about a file: those of tests of one name stand in any order."""
    file = test_id.partition("::")[0]
    return next((at for at, why in enumerate(reasons) if file.endswith(why.origin or "\n")), 0)


def _found(test_id: str, reason: Why, message: str) -> FindingBlock:
    message_lines = reason.message or ((message,) if message else ())
    test_id = _with_directory(test_id, reason.place)
    failed = finding("\n".join(message_lines), reason.place, test_id=test_id)
    where = f" ({reason.place})" if reason.place else ""
    return FindingBlock(failed, reason.at, f"{test_id}{where}", (*message_lines, *reason.source))


def _with_directory(test_id: str, place: Place | None) -> str:
    """Name a test by its file from the root, where pytest ran in a directory below it."""
    file, joint, name = test_id.partition("::")
    own = place.file if place else ""
    return own + joint + name if own[:1] != "/" and own.endswith(f"/{file}") else test_id


SESSION = re.compile(r"^=+ test session starts =+$")
SUMMARY_TITLE = re.compile(r"^=+ short test summary info =+$")

SUMMARY = re.compile(
    r"^(?P<kind>(?:SUB)?FAILED|ERROR)(?P<sub>(?:\[.*?\]| ?\([^)]*\))*) (?P<rest>[^\s(\[].*)$"
)

NODE = re.compile(r"^\S+(?:::|\.py\b)")


def _summary(lines: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries of the short summary."""
    inside, known = False, set[tuple[str, str]]()
    for at, line in enumerate(lines):
        is_title = bool(SUMMARY_TITLE.match(line))
        if SESSION.match(line) or TOTALS.match(line) or (inside and is_title):
            known.clear()
        inside = inside or is_title
        found = SUMMARY.match(line)
        if found is None or not (inside or NODE.match(found["rest"])):
            continue
        node, message = split_entry(found["rest"])
        sub = f" {found['sub'].strip()}" if found["sub"] else ""
        key = block_key(found["kind"], block_name(node) + sub)
        if (node, key) not in known:
            known.add((node, key))
            yield at, node + sub, key, message


VERBOSE = re.compile(
    r"^(?:\[gw\d+\] \[ *\d+%\] (?P<kind>FAILED|ERROR) (?P<node>\S+::.*?)"
    r"|(?P<node2>\S+\.py::.*?) (?P<kind2>FAILED|ERROR))(?: +\[ *\d+%\])?\s*$"
)


def split_entry(text: str) -> tuple[str, str]:
    """Split an entry of the summary into id and message: ids may hold ` - ` within brackets."""
    cut = text.find(" - ")
    while cut >= 0:
        node = text[:cut]
        if "[" not in node or node.endswith("]"):
            return node, text[cut + 3 :].strip()
        cut = text.find(" - ", cut + 1)
    return text.strip(), ""


def block_name(node: str) -> str:
    """Return the name above a block: `TestA.test_b[1::2]` for `f.py::TestA::test_b[1::2]`."""
    path, _, inner = node.partition("::")
    name, bracket, parameters = inner.partition("[")
    return name.replace("::", ".") + bracket + parameters if inner else path


def _from_blocks(reasons: dict[str, list[Why]]) -> Iterator[FindingBlock]:
    """Name the tests by their blocks, for output without a summary or names in the progress."""
    for key, waiting in reasons.items():
        name = key.partition(" ")[2]
        for reason in waiting:
            inner, bracket, parameters = name.partition("[")
            node = inner.replace(".", "::") + bracket + parameters
            test_id = f"{reason.origin}::{node}" if reason.origin else name
            yield _found(test_id, reason, "")
