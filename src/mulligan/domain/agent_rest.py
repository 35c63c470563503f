"""How long an agent starts no run after its account or its program failed (OUTCOME-6). Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from mulligan.domain.result import Rest, RestKind

REFUSED_WAIT = timedelta(hours=1)
"""The wait after a refused login, key, credit or model: a person must act."""

FIRST_WAIT = timedelta(minutes=5)
"""The wait after another failure; it doubles with each further one."""

LONGEST_WAIT = timedelta(hours=1)


def rest_after(found: Rest, before: Rest | None, asked: timedelta | None = None) -> Rest:
    """Return when the next run may start; `asked` is the service's `Retry-After`.

    `before` is the rest that the run before ended with. One of the same kind is continued.
    """
    again = before is not None and (before.kind, before.account) == (found.kind, found.account)
    count = 1 + before.count if before and again else 1
    until = found.at + max(_wait(found.kind, count), asked or timedelta())
    if before and again and found.kind is not RestKind.ASKED:
        found = found.model_copy(update={"since": before.since, "words": before.words})
    return found.model_copy(update={"count": count, "until": until})


def _wait(kind: RestKind, count: int) -> timedelta:
    if kind is RestKind.ASKED:
        return timedelta()
    if kind is RestKind.REFUSED:
        return REFUSED_WAIT
    # 2**4 times the first wait is more than the longest.
    return min(FIRST_WAIT * 2 ** min(count - 1, 4), LONGEST_WAIT)


def last_rest(runs: Iterable[tuple[datetime, Rest | None]]) -> Rest | None:
    """Return the rest of the agent's latest run; None if that got through.

    `runs` has the start and the rest of each run. A rest counts from the end of its run: a parallel
    run that started later and ended earlier does not hide it.
    """
    latest = max(runs, key=lambda run: run[1].at if run[1] else run[0], default=None)
    return latest[1] if latest else None


def rest_sentence(agent: str, rest: Rest) -> str:
    """Describe why an agent rests, and what ends the rest."""
    if rest.kind is RestKind.ASKED:
        until = f"{rest.until:%Y-%m-%d %H:%M:%S} UTC (`Retry-After`)"
        return f"The model's service asked the agent {agent!r} to wait until {until}."
    at_once = "and at once after `mulligan work` or a change of its configuration"
    return f"{rest_on_issues(agent, rest).removesuffix('.')}, {at_once}."


def rest_on_issues(agent: str, rest: Rest) -> str:
    """Describe on a waiting issue why an agent rests; this stays true until its next good run."""
    often = "every hour" if rest.kind is RestKind.REFUSED else "after waits that grow to an hour"
    return (
        f"The agent {agent!r} has failed since {rest.since:%Y-%m-%d %H:%M} UTC. {rest.words}"
        f" Mulligan tries it {often}."
    )
