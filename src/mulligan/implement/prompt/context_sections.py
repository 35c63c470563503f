"""Assemble the retry context section by section, and cut it to its budget (CONTEXT-1). Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from mulligan.config.policy import ContextLimits
from mulligan.domain.errors import InvariantError
from mulligan.domain.issue_context import IssueContext, Pattern
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.implement.prompt.diff import Location, readable
from mulligan.implement.prompt.feedback import (
    actionable,
    asked_for,
    check_block,
    first_finding,
    holds_first_finding,
    on_github_of,
    other_checks,
    remarks_of,
    what_went_wrong,
    window_of,
)
from mulligan.implement.prompt.outcome_text import ERROR_CHARS, failing, verdict
from mulligan.implement.prompt.patterns import drift, find_patterns, label
from mulligan.implement.prompt.retry_context import (
    BYTES_PER_TOKEN,
    AssembledContext,
    AttemptSummary,
    CheckSummary,
    Cut,
    RetryContext,
    Section,
    render,
)
from mulligan.text.commands import guidance_block
from mulligan.text.escape import Excerpt, one_line

# The parts and how they are put together.

SectionSizes = Mapping[Section, int]
"""The size of each part: lines, attempts, checks or, for WORDS, characters."""

MIN_CONTEXT_BYTES = 500 * BYTES_PER_TOKEN
"""Minimum size of the context beside guidance: that of the smallest budget (CONTEXT-12)."""

VIOLATIONS_SHOWN = 50
VIOLATION_CHARS = 140


@dataclass(frozen=True, slots=True)
class ContextSections:
    """All parts of the context, after the limits of single parts (CONTEXT-5).

    `detailed` is the attempt described in full; `windows` are the outputs of its failing checks,
    and `code` is the source around the reported locations. `remarks` are a reviewer's, and
    `on_github` is the output of checks there. The diff of an open pull request is `standing`.
    """

    case: IssueContext
    detailed: WorkerResultMeta
    earlier: tuple[WorkerResultMeta, ...]
    later: tuple[WorkerResultMeta, ...]
    windows: tuple[Excerpt, ...]
    code: tuple[Excerpt, ...]
    violations: Excerpt
    others: tuple[str, ...]
    advisory: Excerpt
    patterns: tuple[Pattern, ...]
    drift: str | None
    diff: Excerpt
    remarks: Excerpt
    on_github: Excerpt
    standing: bool = False

    @classmethod
    def of(
        cls, case: IssueContext, detailed: WorkerResultMeta, limits: ContextLimits, diff: bytes
    ) -> Self:
        """Build the parts from the records; `diff` is of the attempt described in full."""
        before = [meta for meta in case.history if meta.number < detailed.number]
        shown = min(limits.max_check_output_lines, VIOLATIONS_SHOWN)
        broken = [one_line(rule.message, VIOLATION_CHARS) for rule in detailed.guard_violations]
        feedback = case.status.feedback
        verdict = detailed.verifier_feedback if limits.include_verifier_feedback else None
        return cls(
            case=case,
            detailed=detailed,
            earlier=tuple(meta for meta in before if meta.outcome not in FREE),
            later=tuple(meta for meta in case.history if meta.number > detailed.number),
            windows=tuple(window_of(check, limits) for check in failing(detailed.checks)),
            code=tuple(code_of(check, limits) for check in failing(detailed.checks)),
            violations=Excerpt(tuple(broken)).head(shown),
            others=tuple(other_checks(detailed)),
            advisory=Excerpt.of(verdict or "").within(limits.max_verifier_feedback_chars),
            patterns=find_patterns(case.history),
            drift=drift(case.history),
            diff=readable(
                diff if limits.include_prior_diffs else b"",
                limits.max_diff_lines,
                _named(detailed),
                _named(detailed_attempt(before)) if before else (),
            ),
            remarks=remarks_of(feedback) if feedback else Excerpt(),
            on_github=on_github_of(feedback, limits) if feedback else Excerpt(),
        )

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        """Return every part that was cut to lines."""
        optional = (self.violations, self.advisory, self.diff, self.remarks, self.on_github)
        return (*self.windows, *self.code, *optional)

    def room(self, limits: ContextLimits) -> dict[Section, int]:
        """Return the size of each part, without a limit on the whole."""
        failed = len(failing(self.detailed.checks))
        lines = (len(window.lines) for window in (*self.windows, self.violations))
        return {
            Section.DIFF: len(self.diff.lines),
            Section.EARLIER: min(len(self.earlier), limits.max_prior_attempts),
            Section.OTHERS: len(self.others),
            Section.ADVISORY: len(self.advisory.lines),
            Section.DRIFT: 1 if self.drift else 0,
            Section.PATTERNS: len(self.patterns),
            Section.CODE: max((len(code.lines) for code in self.code), default=0),
            Section.WINDOWS: max(lines),
            Section.ON_GITHUB: len(self.on_github.lines),
            Section.REMARKS: len(self.remarks.lines),
            Section.FINDINGS: failed,
            Section.NAMES: failed,
            Section.WORDS: ERROR_CHARS,
        }


def assemble(
    case: IssueContext, limits: ContextLimits, diff: bytes, *, standing: bool = False
) -> AssembledContext:
    """Assemble the earlier attempts for the next prompt.

    `diff` is of the one described in full, or of the pull request if that is `standing`.

    Raises InvariantError if the text lacks required content.
    """
    parts = replace(
        ContextSections.of(case, detailed_attempt(case.history), limits, diff), standing=standing
    )
    guidance = guidance_block(case.status.request.guidance)
    budget = max(
        limits.max_context_tokens * BYTES_PER_TOKEN, len(guidance.encode()) + MIN_CONTEXT_BYTES
    )
    whole = parts.room(limits)
    room = _fit(parts, whole, budget)
    context = build(parts, room)
    text = render(context)
    check_context(text, parts.detailed, room[Section.FINDINGS], budget, guidance)
    return AssembledContext(
        context=context,
        text=text,
        cuts=(*_over_limits(parts, whole, limits), *_over_budget(whole, room, budget)),
        sources=_sources(parts),
        budget=budget,
        original=_uncut(parts, whole),
    )


def detailed_attempt(history: Sequence[WorkerResultMeta]) -> WorkerResultMeta:
    """Return the attempt to learn from: the agent's last that left evidence, else the last.

    A later attempt in which the agent changed nothing gets one line.
    """
    paid = [meta for meta in history if meta.outcome not in FREE]
    telling = [meta for meta in paid if _left_evidence(meta)]
    return (telling or paid or history)[-1]


def _left_evidence(meta: WorkerResultMeta) -> bool:
    changed = bool(meta.files_modified or failing(meta.checks))
    return changed or meta.outcome not in WITHOUT_EVIDENCE


WITHOUT_EVIDENCE = frozenset(
    {Outcome.ZERO_COMMIT, Outcome.ZERO_DIFF, Outcome.AGENT_CRASHED, Outcome.AGENT_TIMED_OUT}
)
"""Outcomes without evidence, if the agent changed no file."""


def _named(detailed: WorkerResultMeta) -> list[Location]:
    """List the locations in the failures of an attempt: tests and the code under test."""
    failed = failing(detailed.checks)
    found = [finding for check in failed for finding in check.findings]
    shown = [Location(at.file, at.line) for check in failed for at in check.source]
    places = [Location(finding.file, finding.line) for finding in found if finding.file]
    tests = [
        Location((finding.test_id or "").partition(joint)[0])
        for finding in found
        for joint in ("::", " › ")
    ]
    return [*dict.fromkeys([*places, *shown, *(test for test in tests if test.file)])]


def check_context(
    text: str, detailed: WorkerResultMeta, findings: int, budget: int, guidance: str = ""
) -> None:
    """Raise InvariantError unless the text keeps to its budget and has all failures and guidance.

    `findings` is the number of failing checks with more than their names. Of an attempt before the
    loss of the ledger, only the error is known.
    """
    failed = failing(detailed.checks)
    is_bare = (detailed.outcome is Outcome.CHECKS_FAILED and not failed) or (
        detailed.outcome is Outcome.SCOPE_VIOLATION and not detailed.guard_violations
    )
    if is_bare and not detailed.restored:
        raise InvariantError(f"The record of attempt {detailed.number} does not say what failed.")
    for check in failed[:findings]:
        if verdict(check) not in text or not holds_first_finding(text, check):
            raise InvariantError(f"The retry context does not tell how {check.name!r} failed.")
    if len(text.encode()) > budget:
        raise InvariantError(f"The retry context is larger than its budget of {budget} bytes.")
    if guidance not in text:
        raise InvariantError("The retry context does not hold the guidance whole.")


# The parts, each within its own limit (CONTEXT-5).

FILE_CHARS = 200


def code_of(check: CheckResult, limits: ContextLimits) -> Excerpt:
    """Return the code around a check's locations within its limit (CONTEXT-14)."""
    if not limits.include_check_output:
        return Excerpt()
    excerpts = (f"{one_line(at.file, FILE_CHARS)}:{at.line}\n{at.text}" for at in check.source)
    return Excerpt.of("\n\n".join(excerpts)).head(limits.max_code_lines)


# The record of the context.


def build(parts: ContextSections, room: SectionSizes) -> RetryContext:
    """Build the record of the context, with this size for each part."""
    case, detailed = parts.case, parts.detailed
    earlier = parts.earlier[len(parts.earlier) - room[Section.EARLIER] :]
    name = f"Attempt {label(detailed, case.history)}"
    reviewed = str(parts.advisory.head(room[Section.ADVISORY])) or None
    reason = what_went_wrong(detailed, name, parts.later, room[Section.WORDS])
    return RetryContext(
        current_attempt=case.counted + 1,
        max_attempts=case.max_attempts,
        issue=str(case.issue.ref),
        prior_attempts=(
            *(_summary(meta, case, None) for meta in earlier),
            _summary(detailed, case, reviewed),
        ),
        primary_failure_reason=reason,
        actionable_feedback=_feedback(parts, room, reason),
        last_diff="\n".join(parts.diff.lines[: room[Section.DIFF]]) or None,
        cumulative_changes=_cumulative(case),
        patterns=parts.patterns[: room[Section.PATTERNS]],
        drift=parts.drift if room[Section.DRIFT] else None,
        guidance=case.status.request.guidance or None,
        omitted=_omitted(parts, room),
        standing=parts.standing,
    )


def _feedback(parts: ContextSections, room: SectionSizes, told: str) -> str:
    lines, code = room[Section.WINDOWS], room[Section.CODE]
    both = zip(parts.windows, parts.code, strict=True)
    feedback = actionable(
        parts.detailed,
        [(excerpt.head(lines), at.head(code)) for excerpt, at in both][: room[Section.FINDINGS]],
        room[Section.NAMES],
        parts.violations.head(max(1, lines)),
        told,
    )
    others = str(Excerpt(parts.others).head(room[Section.OTHERS]))
    return "\n\n".join(text for text in (_asked(parts, room), feedback, others) if text)


def _asked(parts: ContextSections, room: SectionSizes) -> str:
    feedback = parts.case.status.feedback
    if feedback is None:
        return ""
    remarks = parts.remarks.head(room[Section.REMARKS])
    return asked_for(feedback, remarks, parts.on_github.head(room[Section.ON_GITHUB]))


def _omitted(parts: ContextSections, room: SectionSizes) -> dict[str, int]:
    left_out = {
        Section.DIFF: len(parts.diff.lines) - room[Section.DIFF] + parts.diff.left_out,
        Section.EARLIER: len(parts.earlier) - room[Section.EARLIER],
        Section.PATTERNS: len(parts.patterns) - room[Section.PATTERNS],
        Section.DRIFT: 1 if parts.drift and not room[Section.DRIFT] else 0,
    }
    return {part.value: count for part, count in left_out.items() if count}


def _summary(meta: WorkerResultMeta, case: IssueContext, reviewed: str | None) -> AttemptSummary:
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


CUMULATIVE_FILES = 50


def _cumulative(case: IssueContext) -> str | None:
    """List the files that any attempt changed, with the attempts."""
    changed: dict[str, list[str]] = {}
    for meta in case.history:
        for file in meta.files_modified:
            changed.setdefault(file.path, []).append(str(label(meta, case.history)))
    lines = [f"{path}: attempt {', '.join(numbers)}" for path, numbers in changed.items()]
    return str(Excerpt(tuple(lines)).head(CUMULATIVE_FILES)) or None


# The size of the whole (CONTEXT-6).


def _fit(parts: ContextSections, whole: SectionSizes, budget: int) -> SectionSizes:
    """Cut part after part, each only as far as needed (CONTEXT-6)."""
    room = dict(whole)
    for part in Section:
        if _size(parts, room) > budget:
            room[part] = _largest(parts, room, part, budget)
    return room


def _largest(parts: ContextSections, room: SectionSizes, part: Section, budget: int) -> int:
    """Return the largest size of a part within the budget; 0 even if that is too much."""
    if _size(parts, {**room, part: 0}) > budget:
        return 0
    return bisect_left(
        range(1, room[part] + 1),
        1,
        key=lambda amount: _size(parts, {**room, part: amount}) > budget,
    )


def _size(parts: ContextSections, room: SectionSizes) -> int:
    return len(render(build(parts, room)).encode())


def _uncut(parts: ContextSections, whole: SectionSizes) -> int:
    """Count the bytes without any limit."""
    everyone = {**whole, Section.EARLIER: len(parts.earlier)}
    return _size(parts, everyone) + sum(part.left_out_bytes for part in parts.excerpts)


# Omissions and sources.

UNITS = {
    Section.EARLIER: "attempt",
    Section.FINDINGS: "check",
    Section.NAMES: "check",
    Section.WORDS: "character",
}


def _over_limits(
    parts: ContextSections, whole: SectionSizes, limits: ContextLimits
) -> Iterator[Cut]:
    """Yield the omissions by the limits of single parts (CONTEXT-5)."""
    output = f"max_check_output_lines ({limits.max_check_output_lines})"
    digest = f"max_digest_chars ({limits.max_digest_chars}) or {output}"
    failed = failing(parts.detailed.checks)
    feedback = f"max_verifier_feedback_chars ({limits.max_verifier_feedback_chars})"
    code = f"max_code_lines ({limits.max_code_lines})"
    names = [f"check {check.name!r}" for check in failed]
    outputs = [digest for _ in failed]
    limited = [
        (Section.DIFF.value, parts.diff, f"max_diff_lines ({limits.max_diff_lines})"),
        (Section.ADVISORY.value, parts.advisory, feedback),
        *zip(names, parts.windows, outputs, strict=True),
        *((f"code of {name}", at, code) for name, at in zip(names, parts.code, strict=True)),
        ("scope violations", parts.violations, output),
    ]
    earlier = len(parts.earlier) - whole[Section.EARLIER]
    if earlier:
        limit = f"max_prior_attempts ({limits.max_prior_attempts})"
        yield Cut(Section.EARLIER, earlier, "attempt", limit)
    for section, excerpt, limit in limited:
        if excerpt.left_out_bytes:
            yield Cut(section, excerpt.left_out_bytes, "byte", limit)


def _over_budget(whole: SectionSizes, room: SectionSizes, budget: int) -> Iterator[Cut]:
    """Yield the omissions by the limit of the whole (CONTEXT-6)."""
    for part, amount in whole.items():
        if room[part] < amount:
            unit, limit = UNITS.get(part, "line"), f"the budget of {budget} bytes"
            yield Cut(part, amount - room[part], unit, limit)


def _sources(parts: ContextSections) -> tuple[str, ...]:
    """List the sources of the feedback: guidance, then mechanical sources, then advice."""
    present = {
        "guidance": bool(parts.case.status.request.guidance),
        **{f"check:{check.name}": True for check in failing(parts.detailed.checks)},
        "scope": bool(parts.detailed.guard_violations),
        "outcome": not failing(parts.detailed.checks) and not parts.detailed.guard_violations,
        "review": bool(parts.remarks.lines),
        "github": bool(parts.on_github.lines),
        "verifier": bool(parts.advisory.lines),
        "diff": bool(parts.diff.lines),
    }
    return tuple(source for source, is_present in present.items() if is_present)


# The prompt of a fix round: the task again, and the checks that fail on the change.

BANNER = "Fix round {round} of {most}: read *Failing checks* before you start."
OPENING = """\
The worktree holds your change so far, as the commit `HEAD` of Mulligan's; keep what is good of \
it. These checks fail on it. Fix them; the checks then run again on the files that you leave."""


def failing_checks(failed: Sequence[CheckResult], limits: ContextLimits) -> str:
    """Describe the checks that fail on the change."""
    blocks = [
        check_block(check, window_of(check, limits), code_of(check, limits)) for check in failed
    ]
    return "\n\n".join(["# Failing checks", OPENING, *blocks])


def fix_sections(prompt: str, position: tuple[int, int], feedback: str) -> dict[str, str]:
    """Return the parts of the prompt; `position` is (this round, most rounds), `prompt` the first.

    The prompt has them one after the other, with an empty line between two.
    """
    number, most = position
    return {
        "banner": BANNER.format(round=number, most=most),
        "first_prompt": prompt.rstrip(),
        "failing_checks": feedback,
    }
