"""Write the summary of a run, as Markdown. Pure."""

from collections.abc import Sequence
from datetime import UTC

from mulligan.domain.outcome import FREE
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.spending import spent_by
from mulligan.engine.once import Pass
from mulligan.retry.words import TITLES, counted, span
from mulligan.surfaces.action.commands import Told
from mulligan.surfaces.action.inputs import Runner
from mulligan.text.escape import defuse, one_line, table_cell

HEAD = ("Attempt", "When (UTC)", "Outcome", "Error", "Took", "Cost")
MOST_CHARS = 900_000
"""GitHub takes 1 MiB of a step."""
CUT = "\n\n[… cut: GitHub takes no longer summary]\n"


def summary(told: Sequence[Told], done: Pass, runner: Runner) -> str:
    """Tell what a run came to: each issue with the attempts of its epoch, and what failed."""
    worked = {each.status.issue for each in told}
    skipped = [each for each in done.visits if each.skipped and each.issue not in worked]
    parts = [
        f"## Mulligan\n\nWoken by `{runner.event}`.",
        *(_issue(each, runner.server) for each in told),
        *(f"- {each.issue} was left alone: {_plain(each.skipped or '')}" for each in skipped),
        *([] if told or skipped or done.problems else ["No issue asks for work."]),
        *(f"- **Failed:** {_plain(problem)}" for problem in done.problems),
    ]
    text = "\n\n".join(parts) + "\n"
    return text if len(text) <= MOST_CHARS else text[:MOST_CHARS] + CUT


def _issue(told: Told, server: str) -> str:
    status = told.status
    ref = status.issue
    link = f"{server}/{ref.repository}/issues/{ref.number}"
    lines = [
        f"### [{ref}]({link}) {defuse(one_line(status.title, 200))}",
        f"Stage **{status.stage}**, {counted(told.counted, 'attempt')} spent. "
        f"{_plain(status.reason)}".rstrip(),
        *([f"Pull request: {status.pull_request}"] if status.pull_request else []),
        _table(told.history),
    ]
    return "\n\n".join(line for line in lines if line)


def _table(history: Sequence[WorkerResultMeta]) -> str:
    if not history:
        return ""
    rows = [HEAD, ["---"] * len(HEAD), *map(_row, history)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    free = any(meta.outcome in FREE for meta in history)
    return f"{table}\n\n\\* costs no attempt." if free else table


def _row(meta: WorkerResultMeta) -> Sequence[str]:
    usd = spent_by([meta]).usd
    return (
        f"{meta.attempt}\\*" if meta.outcome in FREE else str(meta.attempt),
        meta.started_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M"),
        TITLES[meta.outcome],
        table_cell(meta.error, 200) or "–",
        span(meta.duration_ms),
        f"${usd:.2f}" if usd else "–",
    )


def _plain(text: str) -> str:
    return defuse(one_line(text, 500))
