"""Separate new failures from those of the start tree and from flaky ones. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

from mulligan.checks.digest import MAX_CHARS
from mulligan.checks.digest.findings import clip, fingerprint, identity, normalise
from mulligan.checks.digest.qualified_names import is_distinct_file
from mulligan.domain.result import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    CheckResult,
    Finding,
    OnBase,
    names_unit,
)

FINDINGS_IN_FULL = 5

FLAKY = "Flaky: it failed, and passed when it was run again on the same tree."
BASELINE_INCOMPARABLE = (
    "It fails without this change too; new failures cannot be told apart, so all count. If its "
    "tool stops at the first failure, let it run to the end, for example with `--no-fail-fast`."
)
BASELINE_MISSING = "It could not run without this change, so every failure counts."

BASELINE_CANNOT_RUN = "It ends in the same way without this change."

Key = Callable[[Finding], Hashable]


def apply_rerun(first: CheckResult, again: CheckResult) -> CheckResult:
    """Merge two runs of a check on one tree: a failure in only one of them is flaky (CHECK-3).

    If the two have nothing in common, or their failures cannot be identified, the second counts.
    """
    if again.passed:
        return first.model_copy(
            update={
                "passed": True,
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
                "unsteady": (*first.unsteady, *first.findings),
            }
        )
    both, only_again = _split(again.findings, first.findings, identity)
    _, only_first = _split(first.findings, again.findings, identity)
    once = (*first.unsteady, *only_first, *only_again)
    if not (both and once and first.names_all and again.names_all):
        return again.model_copy(update={"unsteady": first.unsteady})
    return _with_only(again, both, "").model_copy(update={"unsteady": once})


def keep_reproduced(first: CheckResult, again: CheckResult) -> CheckResult:
    """Merge two runs on a start tree: only failures in both count (BASELINE-1)."""
    if first.passed or again.passed:
        return first if first.passed else again
    both, _ = _split(again.findings, first.findings, _failure_key)
    unnamed = min(first.unnamed, again.unnamed)
    on_base = OnBase.CANNOT_RUN if _are_stuck_alike(first, again) else OnBase.FAILS
    parts = {"findings": both, "count": len(both) + unnamed, "on_base": on_base}
    return again.model_copy(update=parts)


def _are_stuck_alike(one: CheckResult, other: CheckResult) -> bool:
    """Return whether two runs both timed out, or could not start for the same reason."""
    if one.timed_out or other.timed_out:
        return one.timed_out and other.timed_out
    is_same = normalise(one.digest) == normalise(other.digest)
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
        _, new = _split(failed.findings, before.findings, _failure_key)
        if not new:
            cannot_run = failed.model_copy(update={"on_base": OnBase.CANNOT_RUN})
            return _with_note(cannot_run, BASELINE_CANNOT_RUN)
    fails = failed.model_copy(update={"on_base": OnBase.FAILS})
    return _without_known(fails, before, files)


def _without_known(failed: CheckResult, before: CheckResult, files: Collection[str]) -> CheckResult:
    """Separate the failures that a run on the start tree had, too, from the new ones."""
    if not _comparable(failed, before):
        return _with_note(failed, BASELINE_INCOMPARABLE)
    known, new = _split(failed.findings, before.findings, _failure_key)
    if not known:
        return failed
    if not all(_is_named(found, files) for found in known):
        return _with_note(failed, BASELINE_INCOMPARABLE)
    if not new and failed.exit_code != before.exit_code and len(known) == len(before.findings):
        return _with_note(failed, BASELINE_INCOMPARABLE)
    note = f"({len(known)} more failed without this change too, and do not count.)"
    left = _with_only(failed, new, note if new else "It fails in the same way without this change.")
    if not all(found.file for found in new):
        # What the tool printed may say more about a failure without a place.
        left = left.model_copy(
            update={"long_digest": f"{left.digest}\n{failed.long_digest or failed.digest}"}
        )
    return left.model_copy(update={"known": known, "preexisting": not new})


def _comparable(failed: CheckResult, before: CheckResult) -> bool:
    """Return whether both runs ended by themselves and list every failure.

    Failures that no finding names must be the same, by all that the output has about failures, and
    not more than before.
    """
    is_same = bool(failed.evidence) and failed.evidence == before.evidence
    is_same = is_same and failed.unnamed <= before.unnamed
    return all(run.is_complete and run.findings for run in (failed, before)) and (
        is_same or not failed.unnamed
    )


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


def _failure_key(found: Finding) -> tuple[str, str, str]:
    """Return the key of a failure: its identity (DIGEST-4), its message and its file.

    A test that fails with another message than before was affected by the change, and not fixed.
    """
    return identity(found), normalise(_in_order(found.message)), found.file or ""


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
    findings: Sequence[Finding], others: Iterable[Finding], key: Key
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Split findings into those that `others` has too, each as often as there, and the rest."""
    remaining = Counter(map(key, others))
    inside, outside = list[Finding](), list[Finding]()
    for found in findings:
        place = inside if remaining[key(found)] > 0 else outside
        remaining[key(found)] -= 1
        place.append(found)
    return tuple(inside), tuple(outside)


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
    lines, room = list[str](), MAX_CHARS - len(note) - 30
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
    return clip(f"- {heading}{place}\n{body}".rstrip(), MAX_CHARS // FINDINGS_IN_FULL)


def _with_note(result: CheckResult, note: str) -> CheckResult:
    digest = clip(result.digest, MAX_CHARS - len(note) - 1)
    long = f"{result.long_digest}\n{note}" if result.long_digest else ""
    return result.model_copy(update={"digest": f"{digest}\n{note}", "long_digest": long})
