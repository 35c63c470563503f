"""Lay out statistics for people, the same for a terminal and for a page. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from mulligan.domain.figures import AgentFigures, Cost, Figures, Frequent, Stats
from mulligan.domain.issue import Stage
from mulligan.retry.words import TITLES, counted

UNKNOWN, NOTHING = "unknown", "–"
CENT = 0.01
MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Point:
    """One figure: what it is, and what is to be known about it."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. The first column names the row, the others are figures but for `words` of them.

    `shares` has for each row how long its bar is, from 0 to 1; it is empty where there are none.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[float, ...] = ()
    note: str = ""
    words: int = 0


def points(stats: Stats) -> list[Point]:
    """Give the figures that come first."""
    of, cost = stats.overall, stats.overall.cost
    return [
        Point("issues taken", f"{of.taken:,}", f"{of.tried:,} with an attempt"),
        Point("pull requests", f"{of.published:,}", f"{of.closed:,} closed without being merged"),
        Point("merged", f"{of.merged:,}", f"{rate(of.merged, of.taken)} of the issues taken"),
        Point("waiting for a person", f"{of.stages.get(Stage.HITL, 0):,}", "as of now"),
        Point("attempts that succeeded", rate(of.succeeded, of.counted), _out_of(of)),
        Point("left alone", f"{of.left:,}", "withdrawn, closed or left out by people"),
        Point("until the pull request", lasted(of.to_pull_request), "median, from the request"),
        Point("until the merge", lasted(of.to_merge), "median, from the request"),
        Point("spent", money(cost.usd, cost), _tokens_and_silence(cost)),
        Point(
            "per attempt",
            money(cost.per(of.attempts), cost),
            f"divided by {counted(of.attempts, 'attempt')}",
        ),
        Point("per issue", money(cost.per(of.tried), cost), "divided by those with an attempt"),
        Point(
            "per merged pull request",
            money(cost.per(of.merged), cost),
            f"all that was spent, failed issues too, divided by {of.merged:,} merged",
        ),
    ]


def sheets(stats: Stats) -> list[Sheet]:
    """Give the tables; one that would be empty is left out."""
    found = [
        _places(stats),
        _outcomes(stats),
        _repositories(stats),
        _agents(stats.agents),
        _checks(stats.checks),
        _failures(stats.failures),
    ]
    return [sheet for sheet in found if sheet.rows]


def halves(sheet: Sheet) -> tuple[Sheet, Sheet]:
    """Share the figures of a sheet out to two; both name the rows."""
    middle = (len(sheet.columns) + 2) // 2

    def front(row: tuple[str, ...]) -> tuple[str, ...]:
        return row[:middle]

    def back(row: tuple[str, ...]) -> tuple[str, ...]:
        return (row[0], *row[middle:])

    first, second = (
        replace(sheet, columns=part(sheet.columns), rows=tuple(map(part, sheet.rows)))
        for part in (front, back)
    )
    return first, second


def _places(stats: Stats) -> Sheet:
    return Sheet(
        "Success by attempt",
        ("attempt", "made", "succeeded", "rate"),
        tuple(
            (
                f"{each.place}",
                f"{each.made:,}",
                f"{each.succeeded:,}",
                rate(each.succeeded, each.made),
            )
            for each in stats.places
        ),
        tuple(each.succeeded / each.made for each in stats.places),
        "Attempts are numbered within an epoch; those that cost none are left out.",
    )


def _outcomes(stats: Stats) -> Sheet:
    total = sum(stats.outcomes.values())
    return Sheet(
        "Outcomes of attempts",
        ("outcome", "attempts", "share"),
        tuple((TITLES[each], f"{n:,}", rate(n, total)) for each, n in stats.outcomes.items()),
        tuple(n / total for n in stats.outcomes.values()),
    )


def _repositories(stats: Stats) -> Sheet:
    columns = (
        *("repository", "issues", "attempts", "succeeded", "pull requests", "merged"),
        *("with a person", "spent", "per merged", "until the merge"),
    )
    return Sheet(
        "Repositories",
        columns,
        tuple(_repository(name, of) for name, of in stats.repositories.items()),
    )


def _repository(name: str, of: Figures) -> tuple[str, ...]:
    return (
        name,
        f"{of.taken:,}",
        f"{of.attempts:,}",
        rate(of.succeeded, of.counted),
        f"{of.published:,}",
        f"{of.merged:,}",
        f"{of.stages.get(Stage.HITL, 0):,}",
        money(of.cost.usd, of.cost),
        money(of.cost.per(of.merged), of.cost),
        lasted(of.to_merge),
    )


def _agents(agents: Sequence[AgentFigures]) -> Sheet:
    return Sheet(
        "Agents",
        ("agent", "attempts", "succeeded", "spent", "per attempt", "tokens"),
        tuple(
            (
                each.agent,
                f"{each.attempts:,}",
                rate(each.succeeded, each.counted),
                money(each.cost.usd, each.cost),
                money(each.cost.per(each.attempts), each.cost),
                tokens(each.cost),
            )
            for each in agents
        ),
    )


def _checks(found: Sequence[Frequent]) -> Sheet:
    return Sheet(
        "Checks that fail most often",
        ("check", "repository", "attempts", "issues"),
        tuple((each.check, each.repository, *_often(each)) for each in found),
        words=1,
    )


def _failures(found: Sequence[Frequent]) -> Sheet:
    return Sheet(
        "Failures that come back most often",
        ("failure", "check", "repository", "attempts", "issues"),
        tuple(
            (each.summary or each.fingerprint, each.check, each.repository, *_often(each))
            for each in found
        ),
        note="The same failure is one with the same fingerprint; its first finding names it.",
        words=2,
    )


def _often(each: Frequent) -> tuple[str, str]:
    return f"{each.attempts:,}", f"{each.issues:,}"


def _out_of(of: Figures) -> str:
    free = of.attempts - of.counted
    left_out = f"; {free:,} more cost none" if free else ""
    return f"{of.succeeded:,} of {counted(of.counted, 'attempt')} that counted{left_out}"


def _tokens_and_silence(cost: Cost) -> str:
    return ", ".join([f"{tokens(cost)} tokens", *_silence(cost)])


def _silence(cost: Cost) -> Iterator[str]:
    if cost.silent:
        yield f"{counted(cost.silent, 'attempt')} did not tell the cost"


def money(usd: float | None, cost: Cost) -> str:
    """Write an amount; one of which a part is unknown is the least that it can be."""
    if usd is None:
        return UNKNOWN if cost.usd is None else NOTHING
    written = f"{usd:,.2f}" if usd >= CENT or not usd else f"{usd:.4f}"
    return f"≥ {written} USD" if cost.silent else f"{written} USD"


def tokens(cost: Cost) -> str:
    """Write how many tokens were used."""
    if cost.tokens is None:
        return UNKNOWN
    return f"≥ {cost.tokens:,}" if cost.wordless else f"{cost.tokens:,}"


def rate(part: int, whole: int) -> str:
    """Write a share in percent."""
    return f"{100 * part / whole:.0f} %" if whole else NOTHING


def lasted(time: timedelta | None) -> str:
    """Write a time in its two largest units."""
    if time is None:
        return NOTHING
    seconds = round(time.total_seconds())
    for unit, name, below, smaller in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name} {seconds % unit // below} {smaller}"
    return f"{seconds // MINUTE} min" if seconds >= MINUTE else f"{seconds} s"
