"""What the runner is told: annotations, outputs, and where its commands are not obeyed. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import Finding, WorkerResultMeta
from mulligan.domain.spending import spent_by
from mulligan.domain.status import IssueStatus
from mulligan.retry.words import failing
from mulligan.text.escape import one_line

MOST = 10
"""Annotations of one kind that GitHub shows of a step."""
LONG = 500


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one issue: where it stands, and the attempts of its epoch.

    `counted` is how many of them cost one.
    """

    status: IssueStatus
    history: Sequence[WorkerResultMeta]
    counted: int

    @property
    def cost(self) -> str:
        """Give what the agents reported in dollars; nothing where they did not."""
        usd = spent_by(self.history).usd
        return f"{usd:.2f}" if usd else ""


def silenced(token: str) -> tuple[str, str]:
    """Give the lines before and after a text that may hold commands, which are then not obeyed."""
    return f"::stop-commands::{token}", f"::{token}::"


def annotations(told: Sequence[Told], problems: Sequence[str]) -> Iterator[str]:
    """Give the commands that show on the run what failed where, and what came of it."""
    yield from [_command("error", problem, title="Mulligan") for problem in problems][:MOST]
    yield from [line for each in told for line in _of_checks(each)][:MOST]
    for each in told:
        ref, status = str(each.status.issue), each.status
        if status.stage is Stage.HITL:
            yield _command("warning", status.reason, title=f"{ref} needs a person")
        if status.stage is Stage.REVIEW and status.pull_request:
            yield _command("notice", status.pull_request, title=f"{ref} is in review")


def _of_checks(told: Told) -> Iterator[str]:
    last = told.history[-1] if told.history else None
    if last is None or last.outcome is not Outcome.CHECKS_FAILED:
        return
    for check in failing(last.checks):
        title = f"{told.status.issue}, attempt {last.attempt}: {check.name}"
        for found in check.findings:
            yield _command("error", found.summary, title=title, **_where(found))


def _where(found: Finding) -> Mapping[str, str]:
    if not found.file:
        return {}
    place = {"file": found.file, "line": found.line, "col": found.column}
    return {name: str(value) for name, value in place.items() if value}


def _command(name: str, message: str, **properties: str) -> str:
    """Write a workflow command; whatever stands in it cannot become another one."""
    named = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {named}::{_escaped(one_line(message, LONG))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(one_line(text, LONG)).replace(":", "%3A").replace(",", "%2C")


def outputs(told: Sequence[Told], artifacts: str, delimiter: str) -> str:
    """Write the outputs for the runner's file; those of one issue are of the last one worked on."""
    last = told[-1] if told else None
    values = {**_values(last), "results": _results(told), "artifacts": artifacts}
    return "".join(f"{name}<<{delimiter}\n{value}\n{delimiter}\n" for name, value in values.items())


def _results(told: Sequence[Told]) -> str:
    return json.dumps([_values(each) for each in told])


def _values(told: Told | None) -> Mapping[str, str]:
    names = ("issue", "stage", "outcome", "attempts", "pull-request", "cost")
    if told is None:
        return dict.fromkeys(names, "")
    status = told.status
    found = (
        str(status.issue),
        status.stage.value,
        status.outcome.value if status.outcome else "",
        str(told.counted),
        status.pull_request or "",
        told.cost,
    )
    return dict(zip(names, found, strict=True))
