"""Compare the runs of a check with and without a change: what is new, old and flaky. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial, reduce

from mulligan.checks.digest import SHORT_CHARS, digest
from mulligan.checks.digest.findings import clip
from mulligan.checks.digest.identity import (
    ANY,
    fingerprint,
    fits,
    identity,
    name_of,
    template,
    without_positions,
)
from mulligan.checks.digest.qualified_names import is_distinct_file
from mulligan.checks.digest.reports import is_same_test
from mulligan.checks.ran import Excuses, lost_tests, title_of
from mulligan.domain.result import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    CheckKind,
    CheckResult,
    Finding,
    OnBase,
    RanTests,
    names_unit,
)

# The verdict of a check as a function


@dataclass(frozen=True, slots=True)
class Run:
    """What a run of a command left; `reports` are those that its tools wrote."""

    output: bytes
    exit_code: int
    reports: Sequence[bytes] = ()


class Verdict(StrEnum):
    """What a change did to a check."""

    PASSED = "passed"
    FLAKY = "flaky"
    """It failed, and passed on the same tree."""
    PREEXISTING = "preexisting"
    """It fails in the same way without the change."""
    MIXED = "mixed"
    """Some failures are new, and others are not."""
    NEW = "new"
    UNKNOWN = "unknown"
    """It fails on both trees, and the failures cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A verdict, and the names of the failures; `missing` tests ran without the change only."""

    verdict: Verdict
    new: tuple[str, ...] = ()
    preexisting: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def compare(
    *, change: Sequence[Run], base: Sequence[Run], changed_files: Sequence[str] = ()
) -> Comparison:
    """Compare one or two runs with a change to one or two runs without it.

    `changed_files` are paths: a test of such a file may have another name with the change. Without
    a run of the base, a failure is unknown.
    """
    now = reduce(_again, map(_result_of, change))
    before = reduce(keep_reproduced, map(_result_of, base)) if base else None
    told = before.tests if before and before.tests else RanTests()
    excuses = Excuses(partial(_is_in, {*changed_files}))
    if now.passed:
        judged = Comparison(Verdict.FLAKY if now.flaky else Verdict.PASSED)
    else:
        judged = _judged(now, before)
    missing = lost_tests(told, now.tests, excuses)
    return replace(judged, flaky=_names(now.unsteady), missing=missing)


def _again(first: CheckResult, again: CheckResult) -> CheckResult:
    return first if first.passed else apply_rerun(first, again)


def _judged(now: CheckResult, before: CheckResult | None) -> Comparison:
    """Compare a failed run with the start tree."""
    if before is None:
        return Comparison(Verdict.UNKNOWN)
    if before.passed:
        return Comparison(Verdict.NEW, new=_names(now.findings))
    parts = _told_apart(now, before, ())
    if parts is None:
        return Comparison(Verdict.UNKNOWN)
    known, new = map(_names, parts)
    verdict = Verdict.MIXED if known and new else Verdict.PREEXISTING if known else Verdict.NEW
    return Comparison(verdict, new=new, preexisting=known)


def _names(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(found.name for found in findings)


def _is_in(files: Collection[str], name: str) -> bool:
    """Return whether a test's name begins with one of these files, or with no file at all."""
    return bool(files) and (name.startswith(tuple(files)) or not IN_FILE.match(name))


IN_FILE = re.compile(r"\S+\.\w{1,5}(?:::| › )")


def _result_of(run: Run) -> CheckResult:
    found = digest(run.output, exit_code=run.exit_code, report=run.reports)
    return CheckResult(
        name="",
        kind=CheckKind.TEST,
        command="",
        passed=found.passed,
        exit_code=run.exit_code,
        digest=found.text,
        findings=found.findings,
        count=found.count,
        evidence=found.evidence,
        cut_short=found.cut_short,
        tests=found.tests,
    )


# The parts of a verdict

FINDINGS_IN_FULL = 5

FLAKY = "Flaky: what failed passed when it was run again on the same tree."
BASELINE_INCOMPARABLE = (
    "It fails without this change too; new failures cannot be told apart, so all count. If its "
    "tool stops at the first failure, let it run to the end, for example with `--no-fail-fast`."
)
BASELINE_MISSING = "It could not run without this change, so every failure counts."

BASELINE_CANNOT_RUN = "It ends in the same way without this change."


def apply_rerun(first: CheckResult, again: CheckResult) -> CheckResult:
    """Merge two runs of a check on one tree: a failure in only one of them is flaky (CHECK-3).

    If the two have nothing in common, or their failures cannot be identified, the second counts.
    """
    again = again.model_copy(update={"tests": _in_either(first.tests, again.tests)})
    if again.passed:
        return _as_flaky(first, again, (*first.unsteady, *first.findings))
    both, only_again = _common(again.findings, first.findings)
    _, only_first = _common(first.findings, again.findings)
    once = (*first.unsteady, *only_first, *only_again)
    if not both and _pass(only_first, again) and _pass(only_again, first):
        return _as_flaky(first, again, once)
    if not (both and once and first.names_all and again.names_all):
        return again.model_copy(update={"unsteady": first.unsteady})
    return _with_only(again, both, "").model_copy(update={"unsteady": once})


def _pass(failed_elsewhere: Sequence[Finding], run: CheckResult) -> bool:
    """Return whether tests that failed in one run all passed in another, by its reports."""
    passed = {*run.tests.ran} if run.tests and run.names_all else set[str]()
    return bool(failed_elsewhere) and {found.test_id for found in failed_elsewhere} <= passed


def _as_flaky(first: CheckResult, again: CheckResult, once: Sequence[Finding]) -> CheckResult:
    return first.model_copy(
        update={
            "passed": True,
            "tests": again.tests,
            "flaky": True,
            "exit_code": again.exit_code,
            "timed_out": False,
            "duration_ms": first.duration_ms + again.duration_ms,
            "digest": FLAKY,
            "long_digest": "",
            "findings": (),
            "count": 0,
            "source": (),
            "fingerprint": "",
            "unsteady": (*once,),
        }
    )


def keep_reproduced(first: CheckResult, again: CheckResult) -> CheckResult:
    """Merge two runs on a start tree: only failures in both count (BASELINE-1).

    What differs between the two may differ with the change, too. Only tests that ran in both count
    as those that ran.
    """
    tests = _in_both(first.tests, again.tests)
    if first.passed or again.passed:
        return (first if first.passed else again).model_copy(update={"tests": tests})
    both = (*_reproduced(first.findings, again.findings),)
    unnamed = min(first.unnamed, again.unnamed)
    on_base = OnBase.CANNOT_RUN if _are_stuck_alike(first, again) else OnBase.FAILS
    once, twice = (set(run.evidence.split()) for run in (first, again))
    parts = {
        "findings": both,
        "count": len(both) + unnamed,
        "on_base": on_base,
        "evidence": " ".join(sorted(once & twice)) if once and twice else "",
        "varying": max(len(once - twice), len(twice - once)),
        "tests": tests,
    }
    return again.model_copy(update=parts)


def _in_either(one: RanTests | None, other: RanTests | None) -> RanTests | None:
    if one is None or other is None:
        return one or other
    ran = Counter(one.ran) | Counter(other.ran)
    stopped = (*one.stopped, *other.stopped)
    return RanTests(ran=(*ran.elements(),), skipped=other.skipped, stopped=stopped)


def _in_both(one: RanTests | None, other: RanTests | None) -> RanTests | None:
    if one is None or other is None:
        return None
    ran = Counter(one.ran) & Counter(other.ran)
    return RanTests(ran=(*ran.elements(),), skipped=other.skipped)


def _are_stuck_alike(one: CheckResult, other: CheckResult) -> bool:
    """Return whether two runs both timed out, or could not start for the same reason."""
    if one.timed_out or other.timed_out:
        return one.timed_out and other.timed_out
    is_same = without_positions(one.digest) == without_positions(other.digest)
    return one.exit_code == other.exit_code in {CANNOT_EXECUTE, NOT_FOUND} and is_same


def subtract_baseline(
    failed: CheckResult, before: CheckResult | None, files: Collection[str] = ()
) -> CheckResult:
    """Separate the failures that the start tree already had from the new ones (BASELINE-1).

    `files` are the paths in the repository, which tell if a tool's name for a file is unique.
    """
    if before is None:
        return _with_note(failed, BASELINE_MISSING)
    if before.passed:
        return failed.model_copy(update={"on_base": OnBase.PASSES})
    if before.on_base is OnBase.CANNOT_RUN and _are_stuck_alike(failed, before):
        _, new = _split(failed.findings, before.findings)
        if not new:
            cannot_run = failed.model_copy(update={"on_base": OnBase.CANNOT_RUN})
            return _with_note(cannot_run, BASELINE_CANNOT_RUN)
    fails = failed.model_copy(update={"on_base": OnBase.FAILS})
    parts = _told_apart(failed, before, files)
    return _without_known(fails, *parts) if parts else _with_note(fails, BASELINE_INCOMPARABLE)


Findings = tuple[Finding, ...]


def _told_apart(
    failed: CheckResult, before: CheckResult, files: Collection[str]
) -> tuple[Findings, Findings] | None:
    """Return the failures that a run on the start tree had, too, and the new ones.

    None if they cannot be told apart for certain.
    """
    if not (before.is_complete and before.findings and _names_as_much(failed, before)):
        return None
    known, new = _split(failed.findings, before.findings)
    renamed = _renamed(new, failed, before)
    known, new = (*known, *renamed), tuple(found for found in new if found not in renamed)
    moved = _moved(new, failed, before)
    if moved and not (failed.tests and before.tests):
        return None
    known, new = (*known, *moved), tuple(found for found in new if found not in moved)
    if not all(_is_named(found, files) for found in known):
        return None
    is_as_many = len(known) == len(before.findings)
    if not new and not _is_all_known(failed, before, is_as_many=is_as_many):
        return None
    return known, new


def _without_known(failed: CheckResult, known: Findings, new: Findings) -> CheckResult:
    """Leave out of a result the failures that the start tree had, too."""
    if not known:
        return failed
    note = f"({len(known)} more failed without this change too, and do not count.)"
    left = _with_only(failed, new, note if new else "It fails in the same way without this change.")
    if not all(found.file for found in new):
        # What the tool printed may say more about a failure without a place.
        left = left.model_copy(
            update={"long_digest": f"{left.digest}\n{failed.long_digest or failed.digest}"}
        )
    return left.model_copy(update={"known": known, "preexisting": not new})


def _names_as_much(failed: CheckResult, before: CheckResult) -> bool:
    """Return whether a run names its failures, or as many as a run on the start tree.

    Failures that no finding names must be the same, by all that the output has about failures, and
    not more than before.
    """
    if not failed.unnamed:
        return bool(failed.findings)
    is_same = bool(before.evidence) and _says_no_more(failed, before)
    return bool(failed.findings) and is_same and failed.unnamed <= before.unnamed


def _is_all_known(failed: CheckResult, before: CheckResult, *, is_as_many: bool) -> bool:
    """Return whether a run without a new failure went to its end, and has nothing else to tell.

    A failure may be told in lines that no finding has.
    """
    if not failed.is_complete or (is_as_many and failed.exit_code != before.exit_code):
        return False
    return _says_no_more(failed, before)


def _moved(new: Findings, failed: CheckResult, before: CheckResult) -> Findings:
    """Return the failures that look as if they had moved from another file or class.

    The test is gone there, and was not here. Only reports tell for certain.
    """
    here, there = (
        Counter((*run.tests.ran, *run.tests.stopped))
        if run.tests
        else Counter(found.test_id for found in run.findings if found.test_id)
        for run in (failed, before)
    )
    gone_names, new_names = _alike_in(there - here), _alike_in(here - there)
    gone = [_in_title(found) for found in before.findings if gone_names(found)]
    came = [found for found in new if new_names(found)]
    titled = [*map(_in_title, came)]
    alike = {*map(id, _split(titled, gone)[0])}
    pairs = zip(came, titled, strict=True)
    return tuple(found for found, title in pairs if id(title) in alike)


def _renamed(new: Findings, failed: CheckResult, before: CheckResult) -> Findings:
    """Return the failures that only the output names or places differently.

    The reports have one name for both, or the output of one run has no file for the same name.
    """
    if failed.tests is None or before.tests is None:
        return ()
    here, there = (_alike_in(Counter((*t.ran, *t.stopped))) for t in (failed.tests, before.tests))
    others = [(each, there(each)) for each in before.findings if each.test_id]

    def is_same(found: Finding, names: Sequence[str], other: Finding, there: Sequence[str]) -> bool:
        in_reports = len(names) == 1 and names == there
        in_outputs = found.test_id == other.test_id and not (found.file and other.file)
        return (in_reports or in_outputs) and _is_said_by(_message(other), _message(found))

    named = [(found, here(found)) for found in new if found.test_id]
    return tuple(
        found for found, names in named if any(is_same(found, names, *other) for other in others)
    )


def _alike_in(names: Counter[str]) -> Callable[[Finding], Sequence[str]]:
    """Return what finds a failing test among the names of a report, each as often as it is there.

    The failure may have more of the name: its project, or the directory of its package.
    """
    by_title = defaultdict[str, list[str]](list)
    for name in names.elements():
        by_title[title_of(name)].append(name)

    def alike(found: Finding) -> Sequence[str]:
        name = found.test_id or ""
        titled = by_title[title_of(name)]
        same = [other for other in titled if other == name]
        return same or [other for other in titled if is_same_test(name, other)]

    return alike


def _in_title(found: Finding) -> Finding:
    """Name a test by its title alone."""
    return found.model_copy(update={"test_id": title_of(found.test_id or ""), "file": None})


def _says_no_more(failed: CheckResult, before: CheckResult) -> bool:
    """Compare the lines about failures; as many may differ as between two runs without a change."""
    if not failed.evidence:
        return not before.evidence
    new = set(failed.evidence.split()) - set(before.evidence.split())
    return len(new) <= before.varying


def _is_named(found: Finding, files: Collection[str]) -> bool:
    """Return whether a failure has an identity: a test and its unit, or a file (DIGEST-4).

    Without one, it could be another package's test, or the failure that the agent has to fix.
    """
    named = names_unit(found.test_id or "") or is_distinct_file(found.file)
    return named and not _may_be_another(found, files)


PROJECT = re.compile(r"\[(?!run \d+\])[^\s\]]+\] ")
WORDS = re.compile(r"[\w-]+")
CLASS = re.compile(r"[A-Z]\w*")


def _may_be_another(found: Finding, files: Collection[str]) -> bool:
    """Return whether two files of the repository fit a failure equally well.

    Then a command that ran in two directories may have told about either of them: pytest names
    `tests/test_cart.py` and Maven `CartTest` in whatever project.
    """
    test_id, file = found.test_id or "", (found.file or "").removeprefix("./")
    if PROJECT.match(test_id or found.message) or (file.endswith(".rs") and file in files):
        return False
    if "/" in file:
        return sum(f"/{path}".endswith(f"/{file}") for path in files) > 1
    words = WORDS.findall(test_id)
    stems = {file} if file else {word for word in words if CLASS.fullmatch(word)}
    fits = [
        _words_in_common(words, path)
        for path in files
        if {name := path.rpartition("/")[2], name.partition(".")[0]} & stems
    ]
    return fits.count(max(fits, default=0)) > 1


def _words_in_common(words: Sequence[str], path: str) -> int:
    """Count how many of the last directories of a path follow each other in some words."""
    folders = WORDS.findall(path.rpartition("/")[0])
    joined = "/".join(["", *words, ""])
    return next(n for n in range(len(folders), -1, -1) if _joined(folders, n) in joined)


def _joined(folders: Sequence[str], number: int) -> str:
    return "/".join(["", *folders[len(folders) - number :], ""])


def _message(found: Finding) -> str:
    """Return what a failure says, apart from positions.

    A test that fails with another message than before was affected by the change, and not fixed.
    """
    return without_positions(found.message)


def _is_said_by(known: str, message: str) -> bool:
    """Return whether a message is as before; `known` may be a template."""
    return fits(known, message) or (ANY not in known and _in_order(known) == _in_order(message))


MEMBERS = re.compile(r"\{([^{}]*)\}")


def _in_order(message: str) -> str:
    """Sort the members of sets and maps, which programs print in any order.

    They stand in braces, or each on a line below one that ends with a colon.
    """
    parts = [list[str]()]
    for line in MEMBERS.sub(_sorted_members, message).split("\n"):
        parts[-1].append(line)
        if line.endswith(":"):
            parts.append([])
    first, *listed = parts
    lines = [*first, *(line for part in listed for line in sorted(part, key=_by_kind))]
    return "\n".join(lines)


def _sorted_members(found: re.Match[str]) -> str:
    return "{" + ", ".join(sorted(found[1].split(", "))) + "}"


def _by_kind(line: str) -> tuple[bool, str]:
    """Order the members before the line that opens the next list."""
    return line.endswith(":"), line


def _split(
    findings: Sequence[Finding], others: Iterable[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Split findings into those that `others` has too, each as often as there, and the rest.

    The messages of `others` may be templates.
    """
    remaining = defaultdict[tuple[str, str], list[str]](list)
    for other in others:
        remaining[_key(other)].append(_message(other))
    inside, outside = list[Finding](), list[Finding]()
    for found in findings:
        message, known = _message(found), remaining[_key(found)]
        alike = (text for text in known if _is_said_by(text, message))
        same = min(alike, key=_freedom, default=None)
        if same is not None:
            known.remove(same)
        (outside if same is None else inside).append(found)
    return tuple(inside), tuple(outside)


def _key(found: Finding) -> tuple[str, str]:
    """Return the parts of a failure that hold in every run: its test, or its code, and its file.

    A file outside of the repository may have a random name.
    """
    file = found.file or ""
    return name_of(found), "" if found.test_id and file.startswith("/") else file


def _freedom(text: str) -> int:
    """Count the parts of a template that may be anything."""
    return text.count(ANY)


def _common(
    findings: Sequence[Finding], others: Sequence[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Split findings by their identity: those that `others` has too, and the rest."""
    remaining = Counter(map(identity, others))
    inside, outside = list[Finding](), list[Finding]()
    for found in findings:
        place = inside if remaining[identity(found)] > 0 else outside
        remaining[identity(found)] -= 1
        place.append(found)
    return tuple(inside), tuple(outside)


def _reproduced(first: Sequence[Finding], again: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the failures of two runs of one tree, with `ANY` for what differed in their messages.

    Equal ones belong together first.
    """
    same, rest = _split(again, first)
    yield from same
    _, waiting = _split(first, again)
    known = defaultdict[tuple[str, str], list[str]](list)
    for found in waiting:
        known[_key(found)].append(_message(found))
    for found in rest:
        message, texts = _message(found), known[_key(found)]
        pairs = ((text, template(text, message)) for text in texts)
        text, merged = next(((text, made) for text, made in pairs if made), ("", None))
        if merged is not None:
            texts.remove(text)
            yield found.model_copy(update={"message": merged})


def _with_only(result: CheckResult, findings: Sequence[Finding], note: str) -> CheckResult:
    """Return a result with only these findings, and a digest without the others."""
    places = {(found.file, found.line) for found in findings}
    named_before = len(result.findings) - len(findings)
    return result.model_copy(
        update={
            "findings": tuple(findings),
            "count": max(len(findings), result.count - named_before) if findings else 0,
            "source": tuple(at for at in result.source if (at.file, at.line) in places),
            "digest": _digest_of_findings(findings, note),
            "long_digest": "",
            "fingerprint": fingerprint(findings) if findings else "",
        }
    )


def _digest_of_findings(findings: Sequence[Finding], note: str) -> str:
    """Return a digest of some findings: five in full, then ids, within the usual size."""
    blocks = [_block(found) for found in findings[:FINDINGS_IN_FULL]]
    rest = [f"- {found.name}" for found in findings[FINDINGS_IN_FULL:]]
    lines, room = list[str](), SHORT_CHARS - len(note) - 30
    for at, block in enumerate([*blocks, *rest]):
        if len(block) + 1 > room:
            lines.append(f"(+ {len(findings) - at} more)")
            break
        lines.append(block)
        room -= len(block) + 1
    return "\n".join([*lines, note] if note else lines)


def _block(found: Finding) -> str:
    place = f" ({found.file}:{found.line})" if found.test_id and found.file else ""
    message = found.message.strip().split("\n")
    lines = [] if message == [""] or found.message in found.summary else message
    heading = found.summary if not lines else (found.test_id or found.summary)
    body = "\n".join(f"    {line}" for line in lines)
    return clip(f"- {heading}{place}\n{body}".rstrip(), SHORT_CHARS // FINDINGS_IN_FULL)


def _with_note(result: CheckResult, note: str) -> CheckResult:
    digest = clip(result.digest, SHORT_CHARS - len(note) - 1)
    long = f"{result.long_digest}\n{note}" if result.long_digest else ""
    return result.model_copy(update={"digest": f"{digest}\n{note}", "long_digest": long})
