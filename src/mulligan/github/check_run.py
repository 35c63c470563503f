"""The check run on a pull request's head commit, with Mulligan's verdict (PR-6). Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal

from mulligan.domain.issue_context import IssueContext
from mulligan.domain.result import CheckResult, Finding
from mulligan.domain.verification import Verification
from mulligan.github.messages import check_summary
from mulligan.implement.prompt.outcome_text import pluralize, verification_doubt
from mulligan.text.foreign import inert, plain

CHECK_RUN_NAME = "Mulligan"

KEY = "mulligan:"
"""The start of the external id, by which Mulligan knows its own check runs."""

MOST_ANNOTATIONS = 50
"""GitHub's limit for one request."""

MESSAGE_CHARS = 2000

Annotation = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class CheckRunText:
    """A check run of an attempt, as GitHub's API takes it."""

    external_id: str
    conclusion: Literal["success", "neutral"]
    title: str
    summary: str
    annotations: Sequence[Annotation]


def check_run_text(case: IssueContext) -> CheckRunText:
    """Describe the verification of the last attempt, with annotations on lines."""
    number = case.last.attempt if case.last else 0
    checks = case.last.checks if case.last else ()
    found = Verification.of(case.last) if case.last else Verification()
    passed = pluralize(len(found.passed) + len(found.flaky), "check")
    return CheckRunText(
        f"{KEY}{case.issue.ref}/{case.status.epoch}.{number}",
        "neutral" if found.is_weak else "success",
        verification_doubt(found).rstrip(".") or f"Attempt {number}: {passed} passed",
        check_summary(case),
        list(islice(_annotations(checks), MOST_ANNOTATIONS)),
    )


def _annotations(checks: Sequence[CheckResult]) -> Iterator[Annotation]:
    """Yield the failures that did not stop the publication, where the check names a line."""
    for check in checks:
        found = (
            ("warning", "failed, but is not required", check.findings if not check.passed else ()),
            ("warning", "failed, and passed when it ran again", check.unsteady),
            ("notice", "failed before the change, too", check.known),
        )
        for level, how, findings in found:
            yield from (
                _annotation(f"{check.name} {how}", level, finding, finding.file, finding.line)
                for finding in findings
                if finding.file and finding.line and _is_inside(finding.file)
            )


def _is_inside(file: str) -> bool:
    path = PurePosixPath(file)
    return not path.is_absolute() and ".." not in path.parts


def _annotation(title: str, level: str, finding: Finding, path: str, line: int) -> Annotation:
    return {
        "path": path,
        "start_line": line,
        "end_line": line,
        "annotation_level": level,
        "title": inert(title),
        "message": plain(finding.message or finding.summary, MESSAGE_CHARS),
    }
