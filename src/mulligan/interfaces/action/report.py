"""Build the Action's annotations, outputs and job summary. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from mulligan.daemon.once import PassResult
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import Finding, WorkerResultMeta
from mulligan.domain.spending import dollars, spent_by
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.outcome_text import (
    attempt_error,
    duration_text,
    failing,
    pluralize,
    title_of,
)
from mulligan.interfaces.action.inputs import Runner
from mulligan.text.escape import one_line
from mulligan.text.foreign import phrase, table_cell

MAX_ANNOTATIONS = 10
"""GitHub shows at most ten annotations of one kind for a step."""

MAX_CELL_CHARS = 500

HEAD = ("Attempt", "When (UTC)", "Outcome", "Error", "Took", "Cost")

MAX_SUMMARY_CHARS = 900_000
"""GitHub accepts 1 MiB per step."""

CUT_MARK = "\n\n[… cut: GitHub does not accept a longer summary]\n"


@dataclass(frozen=True, slots=True)
class IssueReport:
    """An issue's status and the attempts of its epoch; `counted` of them cost an attempt."""

    status: IssueStatus
    history: Sequence[WorkerResultMeta]
    counted: int

    @property
    def cost(self) -> str:
        """Return the agents' cost in USD; empty if they reported none."""
        usd = spent_by(self.history).usd
        return "" if usd is None else f"{usd:.2f}"


def cleaned(done: PassResult, clean: Callable[[str], str]) -> PassResult:
    """Clean what a pass reports; Markdown's escapes would hide a secret or a path from `clean`."""
    visits = (replace(each, skipped=clean(each.skipped)) for each in done.visits)
    return replace(done, visits=tuple(visits), problems=tuple(map(clean, done.problems)))


def with_commands_stopped(token: str) -> tuple[str, str]:
    """Return the lines before and after a text between which the runner ignores commands."""
    return f"::stop-commands::{token}", f"::{token}::"


def annotations(reports: Sequence[IssueReport], problems: Sequence[str]) -> Iterator[str]:
    """Yield workflow commands: errors with their locations, and the stage of each issue."""
    yield from [_command("error", problem, title="Mulligan") for problem in problems][
        :MAX_ANNOTATIONS
    ]
    yield from [line for report in reports for line in _of_checks(report)][:MAX_ANNOTATIONS]
    for report in reports:
        ref, status = str(report.status.issue), report.status
        if status.stage is Stage.HITL:
            yield _command("warning", status.reason, title=f"{ref} needs human review")
        if status.stage is Stage.REVIEW and status.pull.url:
            yield _command("notice", status.pull.url, title=f"{ref} is in review")


def _of_checks(report: IssueReport) -> Iterator[str]:
    last = report.history[-1] if report.history else None
    if last is None or last.outcome is not Outcome.CHECKS_FAILED:
        return
    for check in failing(last.checks):
        title = f"{report.status.issue}, attempt {last.attempt}: {check.name}"
        for found in check.findings:
            yield _command("error", found.summary, title=title, **_where(found))


def _where(found: Finding) -> Mapping[str, str]:
    if not found.file:
        return {}
    place = {"file": found.file, "line": found.line, "col": found.column}
    return {name: str(value) for name, value in place.items() if value}


def _command(name: str, message: str, **properties: str) -> str:
    """Return a workflow command; its message cannot contain another command."""
    named = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {named}::{_escaped(one_line(message, MAX_CELL_CHARS))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(one_line(text, MAX_CELL_CHARS)).replace(":", "%3A").replace(",", "%2C")


def outputs(reports: Sequence[IssueReport], artifacts: str, delimiter: str) -> str:
    """Return the outputs in the format of the runner's file; single values are the last issue's."""
    last = reports[-1] if reports else None
    values = {
        **_values(last),
        "results": json.dumps([*map(_values, reports)]),
        "artifacts": artifacts,
    }
    return "".join(f"{name}<<{delimiter}\n{value}\n{delimiter}\n" for name, value in values.items())


def _values(report: IssueReport | None) -> Mapping[str, str]:
    names = ("issue", "stage", "outcome", "attempts", "pull-request", "cost")
    if report is None:
        return dict.fromkeys(names, "")
    status = report.status
    found = (
        str(status.issue),
        status.stage.value,
        status.outcome.value if status.outcome else "",
        str(report.counted),
        status.pull.url or "",
        report.cost,
    )
    return dict(zip(names, found, strict=True))


def summary(reports: Sequence[IssueReport], done: PassResult, runner: Runner) -> str:
    """Return the job summary: each issue with the attempts of its epoch, and the failures."""
    worked = {each.status.issue for each in reports}
    skipped = [each for each in done.visits if each.skipped and each.issue not in worked]
    parts = [
        f"## Mulligan\n\nStarted by the event `{runner.event}`.",
        *(_issue(each, runner.server) for each in reports),
        *(f"- {each.issue} was skipped: {_plain(each.skipped)}" for each in skipped),
        *(f"- {_plain(reason)}" for reason in done.paused),
        *([] if reports or skipped or done.problems or done.paused else ["No issue is due."]),
        *(f"- {_plain(sentence)}" for sentence in done.waiting),
        *(f"- **Failed:** {_plain(problem)}" for problem in done.problems),
    ]
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= MAX_SUMMARY_CHARS else text[:MAX_SUMMARY_CHARS] + CUT_MARK


def _issue(report: IssueReport, server: str) -> str:
    status = report.status
    ref = status.issue
    link = f"{server}/{ref.repository}/issues/{ref.number}"
    lines = [
        f"### [{ref}]({link}) {phrase(status.text.title, 200)}",
        f"Stage **{status.stage}**, {pluralize(report.counted, 'attempt')} used. "
        f"{_plain(status.reason)}".rstrip(),
        *([f"Pull request: {status.pull.url}"] if status.pull.url else []),
        _table(report.history),
    ]
    return "\n\n".join(line for line in lines if line)


def _table(history: Sequence[WorkerResultMeta]) -> str:
    if not history:
        return ""
    rows = [HEAD, ["---"] * len(HEAD), *map(_row, history)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    free = any(meta.outcome in FREE for meta in history)
    return f"{table}\n\n\\* not counted as an attempt." if free else table


def _row(meta: WorkerResultMeta) -> Sequence[str]:
    usd = spent_by([meta]).usd
    return (
        f"{meta.attempt}\\*" if meta.outcome in FREE else str(meta.attempt),
        meta.started_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
        title_of(meta),
        table_cell(attempt_error(meta), 200) or "–",
        duration_text(meta.duration_ms),
        "–" if usd is None else dollars(usd),
    )


def _plain(text: str) -> str:
    return phrase(text, MAX_CELL_CHARS)
