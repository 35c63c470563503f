"""The types of the JSON that commands print and the API returns."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, Field, JsonValue, TypeAdapter

from mulligan.domain.command import Verb
from mulligan.domain.host import Level
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckResult, Finding, WorkerResultMeta


class Row(BaseModel):
    """An object of the output; later versions may add fields."""


class PausedRow(Row):
    """The pause of an issue; `since` is null for the pause of a single issue."""

    scope: Literal["everything", "repository", "issue"]
    by: str
    since: datetime | None


class IssueRow(Row):
    """The state of an issue; `restored` names the source after the loss of a ledger.

    `notes` are sentences about its pull request.
    """

    issue: str
    stage: Stage
    epoch: int
    attempt: int
    outcome: Outcome | None
    reason: str
    pull_request: str | None
    review_until: datetime | None
    notes: tuple[str, ...]
    restored: str = ""


class StatusRow(IssueRow):
    """An issue of `mulligan status`."""

    paused: PausedRow | None


class DecisionRow(Row):
    """A decision; `number` counts the attempts of all epochs."""

    attempt: int | None
    number: int
    epoch: int
    decision: Literal["open_pull_request", "retry", "escalate", "wait", "stand_down"]
    reason: str


class Inspection(IssueRow):
    """An issue with its attempts and decisions."""

    title: str
    attempts: list[WorkerResultMeta]
    decisions: list[DecisionRow]


class ProofRow(Row):
    """The attempts of `inspect --verify`; `broken` lists what does not match its hash."""

    number: int
    broken: list[str]


class RequestRow(Row):
    """Who asked for the work, and whether that person may."""

    actor: str
    act: str
    at: datetime
    trusted: bool


class RuleRow(Row):
    """A rule of eligibility; `reason` is null where the rule is kept."""

    rule: str
    ok: bool
    reason: str | None


class ExplanationRow(Row):
    """Whether an attempt may begin, and why."""

    issue: str
    stage: Stage
    eligible: bool
    summary: str
    asked_by: RequestRow | None
    notes: list[str]
    rules: list[RuleRow]


class SectionRow(Row):
    """A part of a prompt, with its size."""

    name: str
    bytes: int
    tokens: int


class CutRow(Row):
    """A part of a prompt that was shortened, and the limit."""

    section: str
    reason: str


class PromptRow(Row):
    """The next prompt; `hidden` counts the text that a person does not see, by kind."""

    issue: str
    attempt: int
    max_attempts: int
    bytes: int
    tokens: int
    sections: list[SectionRow]
    context_budget_bytes: int | None
    cuts: list[CutRow]
    hidden: dict[str, int]
    prompt: str


class DiagnosisRow(Row):
    """A finding of `doctor`; `fix` is null if all is well."""

    area: str
    level: Level
    message: str
    fix: str | None


class DigestRow(Row):
    """A shortened log; `text` is what an agent reads."""

    passed: bool | None
    count: int
    fingerprint: str
    findings: list[Finding]
    text: str


class CommandRow(Row):
    """A recorded command; `at_work` names the running Mulligan that carries it out."""

    issue: str
    command: Verb
    key: str
    at_work: str | None


class PauseRow(Row):
    """A pause; the repository is null where everything is paused."""

    repository: str | None
    since: datetime


class MistakeRow(Row):
    """A mistake in a configuration file, as far as its place is known."""

    file: str | None
    line: int | None
    key: str | None
    message: str


class ValidityRow(Row):
    """Whether the configuration is valid."""

    valid: bool
    mistakes: list[MistakeRow]


class LearningRow(Row):
    """A fact that prompts contain."""

    id: str
    repository: str
    fact: str
    issue: str
    attempt: int
    noted_at: datetime
    pull_request: str | None
    accepted_by: Literal["operator", "merge"]
    accepted_at: datetime
    expires_at: datetime


class NotedRow(Row):
    """A fact that an agent noted at one issue."""

    id: str
    repository: str
    fact: str
    issue: str
    attempt: int
    noted_at: datetime
    in_force: bool


Amounts = dict[str, float | None]
"""Figures by name; null is unknown or none."""


class AttemptsRow(Row):
    """Attempts that were made, that counted, and that succeeded."""

    made: int
    counted: int
    succeeded: int


class WeekAttemptsRow(Row):
    """Attempts of a week; `free` ones cost none."""

    succeeded: int
    failed: int
    free: int


class SpentRow(Row):
    """What attempts cost, as far as agents reported it; null is unknown."""

    usd: float | None
    tokens: int | None
    attempts_without_cost: int
    attempts_without_tokens: int
    usd_per_attempt: float | None = None
    usd_per_issue: float | None = None
    usd_per_merged_pull_request: float | None = None


class FiguresRow(Row):
    """The figures of all issues, or of a repository; times are in seconds."""

    issues: dict[str, int]
    stages: dict[Stage, int]
    attempts: AttemptsRow
    spent: SpentRow
    median_seconds: Amounts


class GroupRow(Row):
    """The figures of the attempts with an agent, or at issues with a label."""

    attempts: AttemptsRow
    merged: int
    median_seconds: float | None
    spent: SpentRow


class FailingCheckRow(Row):
    """A check that failed."""

    repository: str
    check: str
    attempts: int
    issues: int


class FailureRow(FailingCheckRow):
    """A failure that came back."""

    summary: str
    fingerprint: str


class WeekRow(Row):
    """A week; `from` is its first day."""

    start: date = Field(alias="from")
    attempts: WeekAttemptsRow
    merged: int
    spent: SpentRow


class StatsIssueRow(Row):
    """An issue with its attempts and their cost."""

    issue: str
    attempts: int
    retries: int
    outcome: Outcome
    stage: Stage | None
    spent: SpentRow


class TimesRow(Row):
    """Seconds of all attempts, of those that counted and failed, and of each recorded step."""

    attempts: float
    failed_attempts: float
    steps: dict[str, float]


class StatsRow(FiguresRow):
    """The statistics of a period."""

    since: datetime | None
    until: datetime
    label: str | None
    outcomes: dict[Outcome, int]
    by_attempt: list[dict[str, int]]
    failing_checks: list[FailingCheckRow]
    failures: list[FailureRow]
    repositories: dict[str, FiguresRow]
    agents: dict[str, GroupRow]
    labels: dict[str, GroupRow]
    weeks: list[WeekRow]
    durations: list[Amounts]
    times: TimesRow
    retries: dict[str, JsonValue]
    by_issue: list[StatsIssueRow]


ADAPTERS: Mapping[str, TypeAdapter[object]] = {
    "status": TypeAdapter(list[StatusRow]),
    "inspect": TypeAdapter(Inspection),
    "inspect-verify": TypeAdapter(list[ProofRow]),
    "explain": TypeAdapter(ExplanationRow),
    "prompt": TypeAdapter(PromptRow),
    "stats": TypeAdapter(StatsRow),
    "doctor": TypeAdapter(list[DiagnosisRow]),
    "check": TypeAdapter(list[CheckResult]),
    "digest": TypeAdapter(DigestRow),
    "command": TypeAdapter(CommandRow),
    "pause": TypeAdapter(list[PauseRow]),
    "config-check": TypeAdapter(ValidityRow),
    "learnings": TypeAdapter(list[LearningRow]),
    "learnings-issue": TypeAdapter(list[NotedRow]),
}
"""The output of each command, by the name of its schema."""
