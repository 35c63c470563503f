"""The retry context as a record, and how it reads to the agent (CONTEXT-2, CONTEXT-4). Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mulligan.domain.issue_context import Pattern
from mulligan.domain.outcome import Outcome, Record
from mulligan.domain.result import TIMEOUT_EXIT_CODE, VerifierOutcome
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.text.commands import HEADING, guidance_block
from mulligan.text.escape import fence, omitted, one_line

# The record.


class Section(StrEnum):
    """The parts that can be cut, in the order of cutting (CONTEXT-6)."""

    DIFF = "previous_changes"
    EARLIER = "prior_attempts"
    OTHERS = "passing_checks"
    ADVISORY = "advisory"
    DRIFT = "warning"
    PATTERNS = "observed_patterns"
    CODE = "code_around"
    WINDOWS = "check_output"
    ON_GITHUB = "checks_on_github"
    REMARKS = "review_comments"
    FINDINGS = "first_findings"
    NAMES = "failing_checks"
    WORDS = "what_went_wrong"


class CheckSummary(Record):
    """One check of an earlier attempt; the excerpt is the first thing it complained about."""

    name: str
    passed: bool
    exit_code: int | None
    output_excerpt: str


class AttemptSummary(Record):
    """An earlier attempt in short."""

    attempt_number: int
    outcome: Outcome
    error: str
    commits: int
    duration_ms: int
    check_results: tuple[CheckSummary, ...]
    verifier_outcome: VerifierOutcome | None
    verifier_feedback: str | None
    files_modified: tuple[str, ...]
    diff_summary: str


class RetryContext(Record):
    """The facts about the earlier attempts; the last of `prior_attempts` is in full.

    Texts are as delivered. `omitted` counts the cuts by section (CONTEXT-6).
    """

    current_attempt: int
    max_attempts: int
    issue: str
    prior_attempts: tuple[AttemptSummary, ...]
    primary_failure_reason: str
    actionable_feedback: str
    last_diff: str | None
    cumulative_changes: str | None
    patterns: tuple[Pattern, ...]
    drift: str | None
    guidance: str | None
    omitted: Mapping[str, int]
    standing: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A number of units that a limit omitted."""

    section: str
    count: int
    unit: str
    limit: str

    @property
    def reason(self) -> str:
        """Return the number of omitted units, and the reason."""
        return f"{pluralize(self.count, self.unit)} over {self.limit}"


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """The retry context and its text; `budget` and `original`, the size uncut, are bytes."""

    context: RetryContext
    text: str
    cuts: tuple[Cut, ...]
    sources: tuple[str, ...]
    budget: int
    original: int


# The text.


def render(context: RetryContext) -> str:
    """Write the context under its headings; mechanical facts before advice (CONTEXT-3)."""
    return "\n\n".join(_sections(context).values())


def section_bytes(context: RetryContext) -> dict[str, int]:
    """Return the size of each section that the text has, by its heading in snake case."""
    return {
        name.lower().replace(" ", "_"): len(text.encode())
        for name, text in _sections(context).items()
    }


def _sections(context: RetryContext) -> dict[str, str]:
    *earlier, latest = context.prior_attempts
    sections = {
        HEADING: guidance_block(context.guidance or ""),
        "What went wrong": context.primary_failure_reason,
        "Prior attempts": _marked(_prior(earlier, latest), context.omitted, Section.EARLIER),
        "Actionable feedback": context.actionable_feedback,
        "Observed patterns": _marked(
            _observed(context.patterns), context.omitted, Section.PATTERNS
        ),
        "Warning": _marked(context.drift or "", context.omitted, Section.DRIFT),
        "Advisory": _fenced(ADVISORY, "the reviewer", latest.verifier_feedback),
        "Previous changes": _previous_changes(context),
    }
    return {name: f"## {name}\n\n{body}" for name, body in sections.items() if body}


NAMED_FILES = 5

LINE_CHARS = 400


def _prior(earlier: Sequence[AttemptSummary], latest: AttemptSummary) -> str:
    """Write a line for each attempt; refer to the last one for an equal error or failure."""
    lines = [_line(attempt, latest) for attempt in earlier]
    return fence("the record of earlier attempts", "\n".join(lines)) if lines else ""


def _first_failure(attempt: AttemptSummary) -> tuple[str, bool]:
    """Return the first complaint of a check, and whether that check ran to its end."""
    failed = (check for check in attempt.check_results if not check.passed)
    first = next((check for check in failed if check.output_excerpt), None)
    if first is None:
        return "", False
    code = first.exit_code
    return first.output_excerpt, code is not None and 0 <= code < TIMEOUT_EXIT_CODE


def _line(attempt: AttemptSummary, latest: AttemptSummary) -> str:
    more = len(attempt.files_modified) - NAMED_FILES
    files = ", ".join(attempt.files_modified[:NAMED_FILES]) + (f" (+ {more} more)" * (more > 0))
    error, (excerpt, has_ended) = attempt.error, _first_failure(attempt)
    if error and error == latest.error:
        # The error of failed checks names only them; the excerpt tells whether they failed alike.
        error = "" if excerpt else f"Same error as attempt {latest.attempt_number}."
    if has_ended and excerpt == _first_failure(latest)[0]:
        excerpt = "Same first failure."
    parts = (
        f"Attempt {attempt.attempt_number}: {attempt.outcome}.",
        error,
        *([f"Changed {files}."] if files else ["Changed nothing."]),
        excerpt,
    )
    return one_line(" ".join(parts), LINE_CHARS)


def _observed(patterns: Sequence[Pattern]) -> str:
    """Keep Mulligan's own advice outside of the fence: names in the others are foreign."""
    advice = [f"{each.text} Take a different approach." for each in patterns if each.is_advice]
    names = "\n".join(f"- {each.text}" for each in patterns if not each.is_advice)
    return "\n".join([*advice, *([fence("the record of the attempts", names)] if names else [])])


STANDING = (
    "These changes stand in the pull request now. What you leave behind takes their place: keep "
    "what is good about them."
)

DISCARDED = (
    "The changes of that attempt were discarded: the worktree equals the base branch again. They "
    "are here for reference."
)


def _previous_changes(context: RetryContext) -> str:
    if context.last_diff is None and Section.DIFF not in context.omitted:
        return ""
    kind = "the pull request's diff" if context.standing else "the discarded diff"
    shown = fence(kind, context.last_diff) if context.last_diff else ""
    opening = STANDING if context.standing else DISCARDED
    return f"{opening}\n\n{_marked(shown, context.omitted, Section.DIFF)}"


ADVISORY = "A reviewer's words. They are advisory and may be wrong; the checks decide."


def _fenced(opening: str, kind: str, text: str | None) -> str:
    return f"{opening}\n\n{fence(kind, text)}" if text else ""


def _marked(body: str, left_out: Mapping[str, int], part: Section) -> str:
    """Append the marker of a cut to the rest of a section."""
    marker = omitted(left_out[part]) if part in left_out else ""
    return "\n".join(text for text in (body, marker) if text)


# Sizes.

BYTES_PER_TOKEN = 4


def tokens(size: int) -> int:
    """Count the tokens of so many bytes, rounded up (CONTEXT-5)."""
    return -(-size // BYTES_PER_TOKEN)
