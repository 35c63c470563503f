"""The parts of a retry context, and the record of as much of each as there is room for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from mulligan.config.policy import ContextLimits
from mulligan.domain.case import Case
from mulligan.domain.outcome import FREE
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.retry.diff import readable
from mulligan.retry.feedback import actionable, first_finding, other_checks, what_went_wrong
from mulligan.retry.layout import AttemptSummary, CheckSummary, Part, RetryContext
from mulligan.retry.patterns import drift, label, observe
from mulligan.retry.remarks import asked_for, on_github_of, remarks_of
from mulligan.retry.words import ERROR_CHARS, failing
from mulligan.text.escape import one_line
from mulligan.text.excerpt import Excerpt

VIOLATION_CHARS = 140
CUMULATIVE_FILES = 50
FILE_CHARS = 200

Room = Mapping[Part, int]
"""How much of each part goes in: lines, attempts, checks or, for WORDS, characters."""


@dataclass(frozen=True, slots=True)
class Parts:
    """All that may be told, after the limits of single parts (SPEC C7).

    `told` is the attempt told in full; `windows` are what its failing checks printed, and `code`
    is what stands around the places that they name. `remarks` are a reviewer's, and `on_github` is
    what checks there printed; the diff is `standing` where it is the open pull request's.
    """

    case: Case
    told: WorkerResultMeta
    earlier: tuple[WorkerResultMeta, ...]
    later: tuple[WorkerResultMeta, ...]
    windows: tuple[Excerpt, ...]
    code: tuple[Excerpt, ...]
    violations: Excerpt
    others: tuple[str, ...]
    advisory: Excerpt
    patterns: tuple[str, ...]
    drift: str | None
    diff: Excerpt
    remarks: Excerpt
    on_github: Excerpt
    standing: bool = False

    @classmethod
    def of(cls, case: Case, told: WorkerResultMeta, limits: ContextLimits, diff: bytes) -> Self:
        """Take the parts from the records; `diff` is of the attempt told in full."""
        before = [meta for meta in case.history if meta.number < told.number]
        shown = limits.max_check_output_lines
        broken = [one_line(rule.message, VIOLATION_CHARS) for rule in told.guard_violations]
        feedback = case.status.feedback
        said = told.verifier_feedback if limits.include_verifier_feedback else None
        return cls(
            case=case,
            told=told,
            earlier=tuple(meta for meta in before if meta.outcome not in FREE),
            later=tuple(meta for meta in case.history if meta.number > told.number),
            windows=tuple(window_of(check, limits) for check in failing(told.checks)),
            code=tuple(code_of(check, limits) for check in failing(told.checks)),
            violations=Excerpt(tuple(broken)).head(shown),
            others=tuple(other_checks(told)),
            advisory=Excerpt.of(said or "").within(limits.max_verifier_feedback_chars),
            patterns=observe(case.history),
            drift=drift(case.history),
            diff=readable(diff if limits.include_prior_diffs else b"", limits.max_diff_lines),
            remarks=remarks_of(feedback) if feedback else Excerpt(),
            on_github=on_github_of(feedback, limits) if feedback else Excerpt(),
        )

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        """Give every part that was cut to lines."""
        told = (self.violations, self.advisory, self.diff, self.remarks, self.on_github)
        return (*self.windows, *self.code, *told)

    def room(self, limits: ContextLimits) -> dict[Part, int]:
        """Say how much there is to tell, were there no limit to the whole."""
        failed = len(failing(self.told.checks))
        lines = (len(window.lines) for window in (*self.windows, self.violations))
        return {
            Part.DIFF: len(self.diff.lines),
            Part.EARLIER: min(len(self.earlier), limits.max_prior_attempts),
            Part.OTHERS: len(self.others),
            Part.ADVISORY: len(self.advisory.lines),
            Part.DRIFT: 1 if self.drift else 0,
            Part.PATTERNS: len(self.patterns),
            Part.CODE: max((len(code.lines) for code in self.code), default=0),
            Part.WINDOWS: max(lines),
            Part.ON_GITHUB: len(self.on_github.lines),
            Part.REMARKS: len(self.remarks.lines),
            Part.FINDINGS: failed,
            Part.NAMES: failed,
            Part.WORDS: ERROR_CHARS,
        }


def window_of(check: CheckResult, limits: ContextLimits) -> Excerpt:
    """Take as much of a check's digest as may be told."""
    if not limits.include_check_output:
        return Excerpt()
    digest = Excerpt.of(check.digest).within(limits.max_digest_chars)
    return digest.head(limits.max_check_output_lines)


def code_of(check: CheckResult, limits: ContextLimits) -> Excerpt:
    """Take as much of the code around a check's places as may be told (SPEC C16)."""
    if not limits.include_check_output:
        return Excerpt()
    told = (f"{one_line(at.file, FILE_CHARS)}:{at.line}\n{at.text}" for at in check.source)
    return Excerpt.of("\n\n".join(told)).head(limits.max_code_lines)


def build(parts: Parts, room: Room) -> RetryContext:
    """Make the record of what is told, where there is so much room for each part."""
    case, told = parts.case, parts.told
    earlier = parts.earlier[len(parts.earlier) - room[Part.EARLIER] :]
    name = f"Attempt {label(told, case.history)}"
    reviewed = str(parts.advisory.head(room[Part.ADVISORY])) or None
    return RetryContext(
        current_attempt=case.counted + 1,
        max_attempts=case.max_attempts,
        issue=str(case.issue.ref),
        prior_attempts=(
            *(_summary(meta, case, None) for meta in earlier),
            _summary(told, case, reviewed),
        ),
        primary_failure_reason=what_went_wrong(told, name, parts.later, room[Part.WORDS]),
        actionable_feedback=_feedback(parts, room),
        last_diff="\n".join(parts.diff.lines[: room[Part.DIFF]]) or None,
        cumulative_changes=_cumulative(case),
        patterns=parts.patterns[: room[Part.PATTERNS]],
        drift=parts.drift if room[Part.DRIFT] else None,
        guidance=case.status.guidance or None,
        omitted=_omitted(parts, room),
        standing=parts.standing,
    )


def _feedback(parts: Parts, room: Room) -> str:
    lines, code = room[Part.WINDOWS], room[Part.CODE]
    both = zip(parts.windows, parts.code, strict=True)
    told = actionable(
        parts.told,
        [(said.head(lines), at.head(code)) for said, at in both][: room[Part.FINDINGS]],
        room[Part.NAMES],
        parts.violations.head(max(1, lines)),
    )
    others = str(Excerpt(parts.others).head(room[Part.OTHERS]))
    return "\n\n".join(text for text in (_asked(parts, room), told, others) if text)


def _asked(parts: Parts, room: Room) -> str:
    feedback = parts.case.status.feedback
    if feedback is None:
        return ""
    remarks = parts.remarks.head(room[Part.REMARKS])
    return asked_for(feedback, remarks, parts.on_github.head(room[Part.ON_GITHUB]))


def _omitted(parts: Parts, room: Room) -> dict[str, int]:
    left_out = {
        Part.DIFF: len(parts.diff.lines) - room[Part.DIFF] + parts.diff.left_out,
        Part.EARLIER: len(parts.earlier) - room[Part.EARLIER],
        Part.PATTERNS: len(parts.patterns) - room[Part.PATTERNS],
        Part.DRIFT: 1 if parts.drift and not room[Part.DRIFT] else 0,
    }
    return {part.value: count for part, count in left_out.items() if count}


def _summary(meta: WorkerResultMeta, case: Case, reviewed: str | None) -> AttemptSummary:
    return AttemptSummary(
        attempt_number=label(meta, case.history),
        outcome=meta.outcome,
        error=meta.error,
        commits=meta.commits,
        duration_ms=meta.duration_ms,
        check_results=tuple(
            CheckSummary(
                name=check.name,
                passed=check.passed,
                exit_code=check.exit_code,
                output_excerpt="" if check.passed or check.preexisting else first_finding(check),
            )
            for check in meta.checks
        ),
        verifier_outcome=meta.verifier_outcome,
        verifier_feedback=reviewed,
        files_modified=tuple(file.path for file in meta.files_modified),
        diff_summary=meta.diff_summary,
    )


def _cumulative(case: Case) -> str | None:
    """List the files that any attempt changed, and which did."""
    changed: dict[str, list[str]] = {}
    for meta in case.history:
        for file in meta.files_modified:
            changed.setdefault(file.path, []).append(str(label(meta, case.history)))
    lines = [f"{path}: attempt {', '.join(numbers)}" for path, numbers in changed.items()]
    return str(Excerpt(tuple(lines)).head(CUMULATIVE_FILES)) or None
