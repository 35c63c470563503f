"""The statistics as figures, tables and JSON, for the command and the dashboard. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from mulligan.domain.explanation import STAGE_TITLES
from mulligan.domain.issue import Stage
from mulligan.domain.spending import dollars
from mulligan.domain.stats import (
    Cost,
    DurationStats,
    FrequentFailure,
    GroupStats,
    IssueStats,
    RepositoryStats,
    RetryStats,
    Stats,
    TimeStats,
    WeekStats,
)
from mulligan.implement.prompt.outcome_text import TITLES, pluralize

T = TypeVar("T", int, timedelta)

EMPTY = "No statistics yet: the ledger has no issues."

# Figures and tables


@dataclass(frozen=True, slots=True)
class Headline:
    """One figure, with its label and a note."""

    name: str
    value: str
    note: str = ""


class PlotKind(StrEnum):
    """How a plot draws its series."""

    BARS = "bars"
    STACKED = "stacked"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of a table's figures; each of the `series` has a value for each of the `labels`."""

    kind: PlotKind
    labels: tuple[str, ...]
    series: Mapping[str, tuple[float | None, ...]]
    unit: str = ""


@dataclass(frozen=True, slots=True)
class StatsTable:
    """A table. The first column names the row; all others but `words` of them are figures.

    `shares` has the length of each row's bar, from 0 to 1; it is empty if there are no bars.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    shares: tuple[float, ...] = ()
    note: str = ""
    words: int = 0
    plot: Plot | None = None

    @property
    def slug(self) -> str:
        """Return the title as a part of an address."""
        return self.title.lower().replace(" ", "-")


def points(stats: Stats) -> list[Headline]:
    """Return the main figures that were measured."""
    found = [*_of_issues(stats), *_of_cost(stats), *_of_time(stats), *_of_retries(stats)]
    return [each for each in found if each.value not in {UNKNOWN, NOTHING}]


def _of_issues(stats: Stats) -> list[Headline]:
    of = stats.overall
    return [
        Headline("issues taken", f"{of.taken:,}", f"{of.tried:,} with an attempt"),
        Headline("pull requests", f"{of.published:,}", f"{of.closed:,} closed without a merge"),
        Headline("merged", f"{of.merged:,}", f"{rate(of.merged, of.taken)} of the issues taken"),
        Headline("waiting for human review", f"{of.stages.get(Stage.HITL, 0):,}", "now"),
        Headline("escalated", f"{of.escalated:,}", "issues handed to a maintainer in this period"),
        Headline(
            "stopped",
            f"{of.left:,}",
            f"withdrawn, closed or skipped; {of.skipped:,} skipped by a maintainer",
        ),
    ]


def _of_cost(stats: Stats) -> list[Headline]:
    of, cost = stats.overall, stats.overall.cost
    silent = f"{pluralize(cost.without_cost, 'attempt')} did not report the cost"
    return [
        Headline(
            "spent",
            money(cost.usd, cost),
            f"{tokens(cost)} tokens{f', {silent}' if cost.without_cost else ''}",
        ),
        Headline("tokens", tokens(cost) if cost.usd is None else NOTHING, silent),
        Headline(
            "per attempt",
            money(cost.per(of.attempts), cost),
            f"divided by {pluralize(of.attempts, 'attempt')}",
        ),
        Headline("per issue", money(cost.per(of.tried), cost), "divided by those with an attempt"),
        Headline(
            "per merged pull request",
            money(cost.per(of.merged), cost),
            f"total spent, including failed issues, divided by {of.merged:,} merged",
        ),
    ]


def _of_time(stats: Stats) -> list[Headline]:
    of, times = stats.overall, stats.times
    return [
        Headline(
            "time in failed attempts",
            rate(times.failed, times.attempts),
            f"{duration_text(times.failed)} of {duration_text(times.attempts)}",
        ),
        Headline(
            "until the pull request", duration_text(of.to_pull_request), "median, from the request"
        ),
        Headline("until the merge", duration_text(of.to_merge), "median, from the request"),
    ]


def _of_retries(stats: Stats) -> list[Headline]:
    of, tried = stats.overall, stats.retries
    return [
        Headline("attempts that succeeded", rate(of.succeeded, of.counted), _out_of(of)),
        Headline(
            "retried, then succeeded",
            rate(tried.issues_succeeded, tried.issues),
            f"{tried.issues_succeeded:,} of {pluralize(tried.issues, 'issue')}; "
            f"{tried.succeeded:,} of {tried.made:,} retries succeeded",
        ),
        Headline(
            "size of a retry context",
            NOTHING if tried.mean_bytes is None else f"{tried.mean_bytes:,} bytes",
            _context_note(tried),
        ),
    ]


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One line of an answer; `share` is the length of its bar, from 0 to 1, None without one."""

    name: str
    value: str
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question: a figure, its meaning, and the lines that explain it."""

    question: str
    value: str
    meaning: str
    lines: tuple[AnswerLine, ...]


NOT_MEASURED = "not measured"


def answers(stats: Stats) -> list[Answer]:
    """Answer what became of the issues, what a merge cost, and where the time goes."""
    return [_fates(stats), _price(stats), _delays(stats)]


def _fates(stats: Stats) -> Answer:
    of, now = stats.overall, stats.overall.stages
    counts = {
        "merged": of.merged,
        "in review now": now.get(Stage.REVIEW, 0),
        "waiting for human review now": now.get(Stage.HITL, 0),
        "waiting or running now": now.get(Stage.READY, 0) + now.get(Stage.RUNNING, 0),
        "pull request closed without a merge": of.closed,
        "stopped (withdrawn, closed or skipped)": of.left,
    }
    return Answer(
        "What came of the issues?",
        f"{of.merged:,} merged",
        f"{pluralize(of.taken, 'issue')} taken",
        tuple(
            AnswerLine(name, f"{count:,}", min(1, count / of.taken) if of.taken else None)
            for name, count in counts.items()
            if count
        ),
    )


def _price(stats: Stats) -> Answer:
    of, cost = stats.overall, stats.overall.cost
    per_merge = cost.per(of.merged)
    if cost.usd is None and (cost.without_cost or of.merged):
        value, meaning = NOT_MEASURED, "The agents did not report what they cost."
    elif per_merge is None:
        value, meaning = "nothing merged", "No pull request was merged in this period."
    else:
        value = money(per_merge, cost)
        meaning = f"for each of {of.merged:,} merged, including the cost of all failures"
    return Answer(
        "What did a merged pull request cost?",
        value,
        meaning,
        _measured(
            {
                "spent": money(cost.usd, cost),
                "for each attempt": money(cost.per(of.attempts), cost),
                "attempts for each merge": _per(of.attempts, of.merged, "{:.1f}"),
                "tokens for each merge": _per(cost.tokens, of.merged, "{:,.0f}"),
                "attempts that did not report the cost": f"{cost.without_cost or NOTHING}",
            }
        ),
    )


def _delays(stats: Stats) -> Answer:
    of, times = stats.overall, stats.times
    whole = sum(times.steps.values(), timedelta())
    steps = [
        AnswerLine(_STEP_NAMES.get(name, name), duration_text(took), took / whole)
        for name, took in times.steps.items()
    ]
    worst = [f"{each.check}, {each.repository}" for each in stats.checks[:1]]
    others = {
        "median from request to pull request": duration_text(of.to_pull_request),
        "median from request to merge": duration_text(of.to_merge),
        "check that fails most": worst[0] if worst else NOTHING,
    }
    value, meaning = NOT_MEASURED, "No attempt ended in this period."
    if times.attempts:
        value = f"{rate(times.failed, times.attempts)} in failed attempts"
        meaning = f"{duration_text(times.failed)} of {duration_text(times.attempts)} of attempts"
    return Answer("Where is time lost?", value, meaning, (*steps, *_measured(others)))


def _measured(values: Mapping[str, str]) -> tuple[AnswerLine, ...]:
    shown = {name: text for name, text in values.items() if text not in {UNKNOWN, NOTHING}}
    return tuple(AnswerLine(name, text) for name, text in shown.items())


def _per(total: int | None, count: int, form: str) -> str:
    return form.format(total / count) if total and count else NOTHING


_STEP_NAMES = {"wait": "waiting to start", "other": "git, GitHub and other"}


def stats_tables(stats: Stats) -> list[StatsTable]:
    """Return the tables that have rows."""
    found = [
        _weeks(stats.weeks),
        _costs(stats.weeks),
        _places(stats),
        _feedback(stats.retries),
        _durations(stats.durations),
        _steps(stats.times),
        _context(stats.retries),
        _outcomes(stats),
        _repositories(stats),
        _groups("Agents", "agent", stats.agents),
        _groups("Labels", "label", stats.labels),
        _checks(stats.checks),
        _failures(stats.failures),
        _issues(stats.issues),
    ]
    return [sheet for sheet in found if sheet.rows]


def split_table(sheet: StatsTable) -> tuple[StatsTable, StatsTable]:
    """Split the figures of a sheet into two tables; both name the rows."""
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


def _weeks(weeks: Sequence[WeekStats]) -> StatsTable:
    labels = tuple(f"{each.monday:%Y-%m-%d}" for each in weeks)
    return StatsTable(
        "Outcomes by week",
        ("week from", "succeeded", "failed", "not counted", "rate"),
        tuple(
            (
                label,
                f"{each.succeeded:,}",
                f"{each.failed:,}",
                f"{each.free:,}",
                rate(each.succeeded, each.succeeded + each.failed),
            )
            for label, each in zip(labels, weeks, strict=True)
        ),
        note="Attempts by the Monday of their week (UTC). Some failures cost no attempt.",
        plot=Plot(
            PlotKind.STACKED,
            labels,
            {
                "succeeded": tuple(each.succeeded for each in weeks),
                "failed": tuple(each.failed for each in weeks),
                "not counted": tuple(each.free for each in weeks),
            },
        ),
    )


def _costs(weeks: Sequence[WeekStats]) -> StatsTable:
    labels = tuple(f"{each.monday:%Y-%m-%d}" for each in weeks)
    return StatsTable(
        "Cost of a merged pull request by week",
        ("week from", "merged", "spent", "per merged"),
        tuple(
            (
                label,
                f"{each.merged:,}",
                money(each.cost.usd, each.cost),
                money(each.cost.per(each.merged), each.cost),
            )
            for label, each in zip(labels, weeks, strict=True)
        ),
        note="The cost of all attempts of a week, divided by the pull requests merged in it.",
        plot=Plot(
            PlotKind.BARS,
            labels,
            {"USD per merged": tuple(each.cost.per(each.merged) for each in weeks)},
            "USD",
        ),
    )


def _durations(found: Sequence[DurationStats]) -> StatsTable:
    total = sum(each.attempts for each in found)
    labels = tuple(
        f"< {each.below.total_seconds() / MINUTE:.0f} min" if each.below else "longer"
        for each in found
    )
    return StatsTable(
        "Durations of attempts",
        ("took", "attempts", "share"),
        tuple(
            (label, f"{each.attempts:,}", rate(each.attempts, total))
            for label, each in zip(labels, found, strict=True)
        ),
        note="Each attempt is in the first row that fits.",
        plot=Plot(PlotKind.BARS, labels, {"attempts": tuple(each.attempts for each in found)}),
    )


def _steps(times: TimeStats) -> StatsTable:
    total = sum(times.steps.values(), timedelta())
    return StatsTable(
        "Time by step",
        ("step", "time", "share"),
        tuple(
            (_STEP_NAMES.get(name, name), duration_text(took), rate(took, total))
            for name, took in times.steps.items()
        ),
        tuple(took / total for took in times.steps.values()),
        note="The wait is the time before each attempt; the others are parts of the attempts.",
    )


def _places(stats: Stats) -> StatsTable:
    return StatsTable(
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
        "Numbered within each round of attempts. Attempts that cost none are excluded.",
        plot=Plot(
            PlotKind.STACKED,
            tuple(f"{each.place}" for each in stats.places),
            {
                "succeeded": tuple(each.succeeded for each in stats.places),
                "failed": tuple(each.made - each.succeeded for each in stats.places),
            },
        ),
    )


def _feedback(retries: RetryStats) -> StatsTable:
    found = retries.feedback
    return StatsTable(
        "Success by kind of feedback",
        ("feedback", "attempts", "succeeded", "rate"),
        tuple(
            (
                each.feedback,
                f"{each.attempts:,}",
                f"{each.succeeded:,}",
                rate(each.succeeded, each.attempts),
            )
            for each in found
        ),
        tuple(each.succeeded / each.attempts for each in found),
        "Attempts with a retry context, by its sources. Most have several sources.",
        plot=Plot(
            PlotKind.ROWS,
            tuple(each.feedback for each in found),
            {"succeeded": tuple(100 * each.succeeded / each.attempts for each in found)},
            "%",
        ),
    )


def _context(retries: RetryStats) -> StatsTable:
    total = sum(retries.sections.values())
    return StatsTable(
        "Content of the retry contexts",
        ("section", "bytes", "share"),
        tuple(
            (name.replace("_", " "), f"{n:,}", rate(n, total))
            for name, n in retries.sections.items()
        ),
        tuple(n / total for n in retries.sections.values()),
    )


MAX_ISSUES = 20


def _issues(found: Sequence[IssueStats]) -> StatsTable:
    more = len(found) - MAX_ISSUES
    return StatsTable(
        "Issues by attempts",
        ("issue", "last outcome", "stage", "attempts", "retries", "spent"),
        tuple(
            (
                str(each.issue),
                TITLES[each.outcome],
                STAGE_TITLES[each.stage] if each.stage else NOTHING,
                f"{each.attempts:,}",
                f"{each.retries:,}",
                money(each.cost.usd, each.cost),
            )
            for each in found[:MAX_ISSUES]
        ),
        note=f"{pluralize(more, 'issue')} with fewer attempts: see --json." if more > 0 else "",
        words=2,
    )


def _context_note(tried: RetryStats) -> str:
    total = sum(tried.sections.values())
    largest = [
        f"; {rate(size, total)} {name.replace('_', ' ')}" for name, size in tried.sections.items()
    ]
    return f"mean of {pluralize(tried.contexts, 'retry context')}{''.join(largest[:1])}"


def _outcomes(stats: Stats) -> StatsTable:
    total = sum(stats.outcomes.values())
    return StatsTable(
        "Outcomes of attempts",
        ("outcome", "attempts", "share"),
        tuple((TITLES[each], f"{n:,}", rate(n, total)) for each, n in stats.outcomes.items()),
        tuple(n / total for n in stats.outcomes.values()),
    )


def _repositories(stats: Stats) -> StatsTable:
    columns = (
        *("repository", "issues", "attempts", "succeeded", "pull requests", "merged"),
        *("human review", "spent", "per merged", "until the merge"),
    )
    return StatsTable(
        "Repositories",
        columns,
        tuple(
            (
                name,
                f"{of.taken:,}",
                f"{of.attempts:,}",
                rate(of.succeeded, of.counted),
                f"{of.published:,}",
                f"{of.merged:,}",
                f"{of.stages.get(Stage.HITL, 0):,}",
                money(of.cost.usd, of.cost),
                money(of.cost.per(of.merged), of.cost),
                duration_text(of.to_merge),
            )
            for name, of in stats.repositories.items()
        ),
    )


def _groups(title: str, column: str, groups: Sequence[GroupStats]) -> StatsTable:
    return StatsTable(
        title,
        (
            column,
            "attempts",
            "succeeded",
            "merged",
            "median time",
            "spent",
            "per attempt",
            "tokens",
        ),
        tuple(
            (
                each.name,
                f"{each.attempts:,}",
                rate(each.succeeded, each.counted),
                f"{each.merged:,}",
                duration_text(each.took),
                money(each.cost.usd, each.cost),
                money(each.cost.per(each.attempts), each.cost),
                tokens(each.cost),
            )
            for each in groups
        ),
    )


def _checks(found: Sequence[FrequentFailure]) -> StatsTable:
    return StatsTable(
        "Checks that fail most often",
        ("check", "repository", "attempts", "issues"),
        tuple((each.check, each.repository, *_often(each)) for each in found),
        words=1,
    )


def _failures(found: Sequence[FrequentFailure]) -> StatsTable:
    return StatsTable(
        "Failures that come back most often",
        ("failure", "check", "repository", "attempts", "issues"),
        tuple(
            (each.summary or each.fingerprint, each.check, each.repository, *_often(each))
            for each in found
        ),
        note="The same failure is one with the same fingerprint; its first finding names it.",
        words=2,
    )


def _often(each: FrequentFailure) -> tuple[str, str]:
    return f"{each.attempts:,}", f"{each.issues:,}"


def _out_of(of: RepositoryStats) -> str:
    free = of.attempts - of.counted
    left_out = f"; {free:,} more not counted" if free else ""
    return f"{of.succeeded:,} of {pluralize(of.counted, 'attempt')} that counted{left_out}"


# Amounts, shares and times in words

UNKNOWN, NOTHING = "unknown", "–"
MINUTE, HOUR, DAY = 60, 3600, 86400


def money(usd: float | None, cost: Cost) -> str:
    """Format an amount; if a part is unknown, it is a minimum."""
    if usd is None:
        return UNKNOWN if cost.without_cost else NOTHING
    return f"≥ {dollars(usd)}" if cost.without_cost else dollars(usd)


def tokens(cost: Cost) -> str:
    """Format the number of tokens."""
    if cost.tokens is None:
        return UNKNOWN if cost.without_tokens else NOTHING
    return f"≥ {cost.tokens:,}" if cost.without_tokens else f"{cost.tokens:,}"


def rate(part: T, whole: T) -> str:
    """Format a share in percent."""
    return f"{100 * part / whole:.0f} %" if whole else NOTHING


def duration_text(time: timedelta | None) -> str:
    """Format a duration in its two largest units."""
    if time is None:
        return NOTHING
    seconds = round(time.total_seconds())
    for unit, name, below, smaller in ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name} {seconds % unit // below} {smaller}"
    return f"{seconds // MINUTE} min" if seconds >= MINUTE else f"{seconds} s"


def period(found: Stats) -> str:
    """Format the period of the statistics."""
    if found.since is None:
        return EMPTY
    of = f", issues with the label {found.label}" if found.label else ""
    return f"From {_minute(found.since)} to {_minute(found.until)} UTC{of}."


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


# As JSON


def as_json(found: Stats) -> dict[str, object]:
    """Return the JSON; durations are in seconds, and null is unknown or none."""
    return {
        "since": found.since.isoformat() if found.since else None,
        "until": found.until.isoformat(),
        "label": found.label,
        **_figures(found.overall),
        "outcomes": dict(found.outcomes),
        "by_attempt": [
            {"attempt": each.place, "made": each.made, "succeeded": each.succeeded}
            for each in found.places
        ],
        "failing_checks": [_frequent(each) for each in found.checks],
        "failures": [
            {**_frequent(each), "summary": each.summary, "fingerprint": each.fingerprint}
            for each in found.failures
        ],
        "repositories": {name: _figures(of) for name, of in found.repositories.items()},
        "agents": {each.name: _group(each) for each in found.agents},
        "labels": {each.name: _group(each) for each in found.labels},
        "weeks": [
            {
                "from": of.monday.isoformat(),
                "attempts": {"succeeded": of.succeeded, "failed": of.failed, "free": of.free},
                "merged": of.merged,
                "spent": {
                    **_cost(of.cost),
                    "usd_per_merged_pull_request": of.cost.per(of.merged),
                },
            }
            for of in found.weeks
        ],
        "durations": [
            {"below_seconds": _seconds(each.below), "attempts": each.attempts}
            for each in found.durations
        ],
        "times": {
            "attempts": found.times.attempts.total_seconds(),
            "failed_attempts": found.times.failed.total_seconds(),
            "steps": {name: each.total_seconds() for name, each in found.times.steps.items()},
        },
        "retries": _retry_figures(found.retries),
        "by_issue": [
            {
                "issue": str(of.issue),
                "attempts": of.attempts,
                "retries": of.retries,
                "outcome": of.outcome,
                "stage": of.stage,
                "spent": _cost(of.cost),
            }
            for of in found.issues
        ],
    }


def _retry_figures(of: RetryStats) -> dict[str, object]:
    total = sum(of.sections.values())
    return {
        "made": of.made,
        "succeeded": of.succeeded,
        "issues": of.issues,
        "issues_succeeded": of.issues_succeeded,
        "contexts": of.contexts,
        "mean_context_bytes": of.mean_bytes,
        "context_sections": {
            name: {"bytes": n, "share": n / total} for name, n in of.sections.items()
        },
        "by_feedback": {
            each.feedback: {"attempts": each.attempts, "succeeded": each.succeeded}
            for each in of.feedback
        },
    }


def _figures(of: RepositoryStats) -> dict[str, object]:
    return {
        "issues": {
            "taken": of.taken,
            "tried": of.tried,
            "published": of.published,
            "merged": of.merged,
            "closed": of.closed,
            "left": of.left,
            "skipped": of.skipped,
            "escalated": of.escalated,
        },
        "stages": dict(of.stages),
        "attempts": {"made": of.attempts, "counted": of.counted, "succeeded": of.succeeded},
        "spent": {
            **_cost(of.cost),
            "usd_per_attempt": of.cost.per(of.attempts),
            "usd_per_issue": of.cost.per(of.tried),
            "usd_per_merged_pull_request": of.cost.per(of.merged),
        },
        "median_seconds": {
            "to_pull_request": _seconds(of.to_pull_request),
            "to_merge": _seconds(of.to_merge),
        },
    }


def _cost(cost: Cost) -> dict[str, object]:
    return {
        "usd": cost.usd,
        "tokens": cost.tokens,
        "attempts_without_cost": cost.without_cost,
        "attempts_without_tokens": cost.without_tokens,
    }


def _group(each: GroupStats) -> dict[str, object]:
    return {
        "attempts": {"made": each.attempts, "counted": each.counted, "succeeded": each.succeeded},
        "merged": each.merged,
        "median_seconds": _seconds(each.took),
        "spent": {**_cost(each.cost), "usd_per_attempt": each.cost.per(each.attempts)},
    }


def _frequent(each: FrequentFailure) -> dict[str, object]:
    return {
        "repository": each.repository,
        "check": each.check,
        "attempts": each.attempts,
        "issues": each.issues,
    }


def _seconds(time: timedelta | None) -> float | None:
    return time.total_seconds() if time else None
