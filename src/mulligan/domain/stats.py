"""Compute the statistics of `mulligan stats` from the ledger. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from itertools import pairwise
from statistics import mean, median
from typing import TypeVar

from mulligan.domain.errors import UsageError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE, Outcome

# The input.


class MilestoneKind(StrEnum):
    """A kind of milestone of an issue."""

    ASKED = "asked"
    PUBLISHED = "published"
    MERGED = "merged"
    CLOSED = "closed"
    LEFT = "left"
    SKIPPED = "skipped"
    ESCALATED = "escalated"


@dataclass(frozen=True, slots=True)
class Milestone:
    """When a milestone was recorded; `asked_at` is the time of the request."""

    issue: IssueRef
    kind: MilestoneKind
    at: datetime
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A required check that failed an attempt; `summary` is its first finding."""

    check: str
    fingerprint: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class RetryContextEntry:
    """The retry context of one attempt: its bytes, those of each section, and its sources."""

    size: int
    sections: Mapping[str, int]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttemptEntry:
    """One completed attempt. `runs` counts its agent runs.

    `costs` and `tokens` have one entry for each run that reported them. `context` is None if the
    attempt had no retry context. `steps` has the time of each step, and of the wait before; it is
    empty if the attempt did not record them.
    """

    issue: IssueRef
    epoch: int
    number: int
    at: datetime
    outcome: Outcome
    agent: str = ""
    runs: int = 0
    costs: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    failures: tuple[Failure, ...] = ()
    context: RetryContextEntry | None = None
    took: timedelta | None = None
    steps: Mapping[str, timedelta] = field(default_factory=dict[str, timedelta])


@dataclass(frozen=True, slots=True)
class LedgerHistory:
    """The ledger's attempts, milestones and stages, in its order; `since` is its first event.

    `labels` has the labels of an issue when Mulligan last read it.
    """

    since: datetime | None
    attempts: Sequence[AttemptEntry]
    milestones: Sequence[Milestone]
    stages: Sequence[tuple[IssueRef, Stage]]
    labels: Mapping[IssueRef, tuple[str, ...]] = field(
        default_factory=dict[IssueRef, tuple[str, ...]]
    )


# The results.


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of attempts as far as agents reported it; None if none did, or none ran.

    `without_cost` and `without_tokens` count the attempts with a run that did not report them.
    """

    usd: float | None
    tokens: int | None
    without_cost: int
    without_tokens: int

    def per(self, count: int) -> float | None:
        """Return the dollars for each of `count`; None if unknown."""
        return None if self.usd is None or not count else self.usd / count


@dataclass(frozen=True, slots=True)
class AttemptPosition:
    """The results of the attempts that were the `place`-th to count in their epoch."""

    place: int
    made: int
    succeeded: int


@dataclass(frozen=True, slots=True)
class FrequentFailure:
    """A frequent failure: its number of attempts and issues; `summary` is empty for a check."""

    repository: str
    check: str
    attempts: int
    issues: int
    summary: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryStats:
    """The numbers of one repository, or of all; stages count the issues that are there now."""

    taken: int
    published: int
    merged: int
    closed: int
    left: int
    skipped: int
    escalated: int
    stages: dict[Stage, int]
    tried: int
    attempts: int
    counted: int
    succeeded: int
    cost: Cost
    to_pull_request: timedelta | None
    to_merge: timedelta | None


@dataclass(frozen=True, slots=True)
class FeedbackStats:
    """The attempts whose retry context had feedback of this kind, and those that succeeded."""

    feedback: str
    attempts: int
    succeeded: int


@dataclass(frozen=True, slots=True)
class RetryStats:
    """The retries: attempts that counted, after an attempt of the issue that failed and counted.

    `issues` counts the issues with a retry, `issues_succeeded` those whose last retry succeeded.
    `contexts` counts the retry contexts, `mean_bytes` is their mean size, and `sections` has the
    bytes of each section in those that recorded them.
    """

    made: int
    succeeded: int
    issues: int
    issues_succeeded: int
    contexts: int
    mean_bytes: int | None
    sections: dict[str, int]
    feedback: tuple[FeedbackStats, ...]


@dataclass(frozen=True, slots=True)
class IssueStats:
    """One issue with an attempt: `outcome` is of its last attempt, `stage` is the current one."""

    issue: IssueRef
    attempts: int
    retries: int
    outcome: Outcome
    stage: Stage | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class GroupStats:
    """The numbers of one agent, or of one label; `took` is the median of its attempts.

    `merged` counts the group's issues whose pull request was merged.
    """

    name: str
    attempts: int
    counted: int
    succeeded: int
    merged: int
    cost: Cost
    took: timedelta | None


@dataclass(frozen=True, slots=True)
class WeekStats:
    """The numbers of the week that begins on `monday` (UTC); `free` attempts cost none."""

    monday: date
    succeeded: int
    failed: int
    free: int
    merged: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class DurationStats:
    """The attempts that took less than `below`, and not less than the bucket before; None: more."""

    below: timedelta | None
    attempts: int


@dataclass(frozen=True, slots=True)
class TimeStats:
    """The sum of attempts' times: of all, and of those that counted and failed.

    `steps` has the time of each step, the longest first, of the attempts that recorded them.
    """

    attempts: timedelta
    failed: timedelta
    steps: dict[str, timedelta]


@dataclass(frozen=True, slots=True)
class Stats:
    """All statistics; `since` is the start of the period, None for an empty ledger.

    With a `label`, they count only the issues that have it.
    """

    since: datetime | None
    until: datetime
    label: str | None
    overall: RepositoryStats
    outcomes: dict[Outcome, int]
    places: tuple[AttemptPosition, ...]
    checks: tuple[FrequentFailure, ...]
    failures: tuple[FrequentFailure, ...]
    repositories: dict[str, RepositoryStats]
    agents: tuple[GroupStats, ...]
    labels: tuple[GroupStats, ...]
    weeks: tuple[WeekStats, ...]
    durations: tuple[DurationStats, ...]
    times: TimeStats
    retries: RetryStats
    issues: tuple[IssueStats, ...]


# The computation.

MICROSECOND = timedelta(microseconds=1)

T = TypeVar("T")

K = TypeVar("K", bound=Hashable)


def summarise(
    all_of_it: LedgerHistory,
    now: datetime,
    since: datetime | None = None,
    label: str | None = None,
) -> Stats:
    """Count the records at or after `since`, or all of them; with a `label`, of its issues only.

    Raises UsageError if no issue has the label.
    """
    if label is not None:
        all_of_it = _labelled(label, all_of_it)
    # Keep earlier milestones: durations begin at them.
    recent = [each for each in all_of_it.attempts if _is_in(each.at, since)]
    found = replace(all_of_it, attempts=recent)
    begin = all_of_it.since
    failed = [(each, failure) for each in recent for failure in each.failures]
    merged = {
        each.issue
        for each in all_of_it.milestones
        if each.kind is MilestoneKind.MERGED and _is_in(each.at, since)
    }
    return Stats(
        since=max(begin, since) if begin and since else begin,
        until=now,
        label=label,
        overall=_figures(found, since),
        outcomes=dict(Counter(each.outcome for each in recent).most_common()),
        places=_places(all_of_it.attempts, since),
        checks=_frequent_checks(failed),
        failures=_frequent_failures(failed),
        repositories=_by_repository(found, since),
        agents=_by_agent(recent, merged),
        labels=_by_label(found, merged),
        weeks=_weeks(found, since),
        durations=_durations(recent),
        times=_time_of(recent),
        retries=_retries(all_of_it.attempts, since),
        issues=_issues(all_of_it, since),
    )


def _labelled(label: str, found: LedgerHistory) -> LedgerHistory:
    """Keep the issues with a label; as on GitHub, its case does not matter."""
    named = {
        issue
        for issue, labels in found.labels.items()
        if label.casefold() in map(str.casefold, labels)
    }
    if not named:
        known = sorted({each for labels in found.labels.values() for each in labels})
        near = get_close_matches(label, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "`mulligan stats` lists the labels."
        raise UsageError(f"No issue in the ledger has the label {label!r}. {hint}")
    return _only(named.__contains__, found)


def _by_repository(found: LedgerHistory, since: datetime | None) -> dict[str, RepositoryStats]:
    return {
        name: _figures(_only(lambda issue, name=name: issue.repository == name, found), since)
        for name in sorted({ref.repository for ref, _ in found.stages})
    }


def _only(wanted: Callable[[IssueRef], bool], found: LedgerHistory) -> LedgerHistory:
    return replace(
        found,
        attempts=[each for each in found.attempts if wanted(each.issue)],
        milestones=[each for each in found.milestones if wanted(each.issue)],
        stages=[each for each in found.stages if wanted(each[0])],
    )


def _figures(found: LedgerHistory, since: datetime | None) -> RepositoryStats:
    to_pull_request, to_merge = _times(found.milestones, since)
    recent = [each for each in found.milestones if _is_in(each.at, since)]

    def reached(*kinds: MilestoneKind) -> int:
        """Count the issues that reached a milestone of these kinds, each once."""
        return len({each.issue for each in recent if each.kind in kinds})

    return RepositoryStats(
        taken=reached(MilestoneKind.ASKED),
        published=reached(MilestoneKind.PUBLISHED),
        merged=reached(MilestoneKind.MERGED),
        closed=reached(MilestoneKind.CLOSED),
        left=reached(MilestoneKind.LEFT, MilestoneKind.SKIPPED),
        skipped=reached(MilestoneKind.SKIPPED),
        escalated=reached(MilestoneKind.ESCALATED),
        stages=dict(Counter(stage for _, stage in found.stages)),
        tried=len({each.issue for each in found.attempts}),
        attempts=len(found.attempts),
        counted=sum(map(_counts, found.attempts)),
        succeeded=sum(map(_succeeded, found.attempts)),
        cost=cost_of(found.attempts),
        to_pull_request=_median(to_pull_request),
        to_merge=_median(to_merge),
    )


def cost_of(tries: Sequence[AttemptEntry]) -> Cost:
    """Return the sum of attempts' costs; usage that no agent reported is unknown, not zero."""
    costs = [cost for each in tries for cost in each.costs]
    tokens = [count for each in tries for count in each.tokens]
    silent = sum(len(each.costs) < each.runs for each in tries)
    wordless = sum(len(each.tokens) < each.runs for each in tries)
    return Cost(
        usd=round(sum(costs), 6) if costs else None,
        tokens=sum(tokens) if tokens else None,
        without_cost=silent,
        without_tokens=wordless,
    )


def _times(
    moments: Iterable[Milestone], since: datetime | None
) -> tuple[list[timedelta], list[timedelta]]:
    """Return the durations from each request to its pull request, and to its merge."""
    taken: dict[MilestoneKind, list[timedelta]] = {
        MilestoneKind.PUBLISHED: [],
        MilestoneKind.MERGED: [],
    }
    for life in _by(lambda moment: moment.issue, moments).values():
        for asked, moment in _answered(life):
            if _is_in(moment.at, since):
                taken[moment.kind].append(moment.at - asked)
    return taken[MilestoneKind.PUBLISHED], taken[MilestoneKind.MERGED]


def _answered(life: Iterable[Milestone]) -> Iterator[tuple[datetime, Milestone]]:
    """Yield the first pull request after each request, and its merge."""
    asked, waits = None, True
    for moment in life:
        match moment.kind:
            case MilestoneKind.ASKED:
                asked = asked or moment.asked_at
            case MilestoneKind.PUBLISHED:
                if asked and waits:
                    yield asked, moment
                waits = False
            case MilestoneKind.ESCALATED:
                continue
            case _:
                if asked and moment.kind is MilestoneKind.MERGED:
                    yield asked, moment
                asked, waits = None, True


def _median(times: Sequence[timedelta]) -> timedelta | None:
    return timedelta(seconds=median(each.total_seconds() for each in times)) if times else None


def _places(tries: Iterable[AttemptEntry], since: datetime | None) -> tuple[AttemptPosition, ...]:
    """Count attempts and successes by the attempt's position in its epoch."""
    made, succeeded = Counter[int](), Counter[int]()
    for epoch in _by(lambda each: (each.issue, each.epoch), filter(_counts, tries)).values():
        for place, each in enumerate(epoch, start=1):
            if _is_in(each.at, since):
                made[place] += 1
                succeeded[place] += _succeeded(each)
    return tuple(AttemptPosition(place, made[place], succeeded[place]) for place in sorted(made))


def _retries(tries: Iterable[AttemptEntry], since: datetime | None) -> RetryStats:
    retries = [each for each in _all_retries(tries) if _is_in(each.at, since)]
    informed = [(each, each.context) for each in tries if each.context and _is_in(each.at, since)]
    last = {each.issue: each for each in retries}
    sizes, sections = [context.size for _, context in informed], Counter[str]()
    for _, context in informed:
        sections.update(context.sections)
    return RetryStats(
        made=len(retries),
        succeeded=sum(map(_succeeded, retries)),
        issues=len(last),
        issues_succeeded=sum(map(_succeeded, last.values())),
        contexts=len(sizes),
        mean_bytes=round(mean(sizes)) if sizes else None,
        sections=dict(sections.most_common()),
        feedback=tuple(_feedback(informed)),
    )


def _all_retries(tries: Iterable[AttemptEntry]) -> Iterator[AttemptEntry]:
    """Yield each attempt that counts whose predecessor of the issue failed."""
    for made in _by(lambda each: each.issue, filter(_counts, tries)).values():
        for before, each in pairwise(made):
            if not _succeeded(before):
                yield each


def kind_of_feedback(source: str) -> str:
    """Return the kind of a feedback source, such as `check` for `check:tests`."""
    return source.partition(":")[0]


def _feedback(
    informed: Iterable[tuple[AttemptEntry, RetryContextEntry]],
) -> Iterator[FeedbackStats]:
    """Count the attempts that cost one, by the kinds of feedback that they had."""
    made, succeeded = Counter[str](), Counter[str]()
    for each, context in informed:
        for kind in {kind_of_feedback(source) for source in context.sources if _counts(each)}:
            made[kind] += 1
            succeeded[kind] += _succeeded(each)
    for kind in sorted(made, key=lambda kind: (-made[kind], kind)):
        yield FeedbackStats(kind, made[kind], succeeded[kind])


def _issues(found: LedgerHistory, since: datetime | None) -> tuple[IssueStats, ...]:
    """Describe the issues with a recent attempt; the ones with the most attempts first."""
    stages = dict(found.stages)
    retries = Counter(each.issue for each in _all_retries(found.attempts) if _is_in(each.at, since))
    recent = (each for each in found.attempts if _is_in(each.at, since))
    issues = [
        IssueStats(
            issue=issue,
            attempts=len(made),
            retries=retries[issue],
            outcome=made[-1].outcome,
            stage=stages.get(issue),
            cost=cost_of(made),
        )
        for issue, made in _by(lambda each: each.issue, recent).items()
    ]
    return tuple(
        sorted(issues, key=lambda of: (-of.attempts, of.issue.repository, of.issue.number))
    )


def _by_agent(
    tries: Iterable[AttemptEntry], merged: Collection[IssueRef]
) -> tuple[GroupStats, ...]:
    ran = _by(lambda each: each.agent, (each for each in tries if each.agent))
    return tuple(_group(name, made, merged) for name, made in sorted(ran.items()))


MAX_LABELS = 30


def _by_label(found: LedgerHistory, merged: Collection[IssueRef]) -> tuple[GroupStats, ...]:
    """Count the attempts at the issues with each label; the labels with the most attempts first."""
    made = defaultdict[str, list[AttemptEntry]](list)
    for each in found.attempts:
        for label in found.labels.get(each.issue, ()):
            made[label].append(each)
    names = sorted(made, key=lambda name: (-len(made[name]), name))
    return tuple(_group(name, made[name], merged) for name in names[:MAX_LABELS])


def _group(name: str, made: Sequence[AttemptEntry], merged: Collection[IssueRef]) -> GroupStats:
    return GroupStats(
        name=name,
        attempts=len(made),
        counted=sum(map(_counts, made)),
        succeeded=sum(map(_succeeded, made)),
        merged=len({each.issue for each in made if each.issue in merged}),
        cost=cost_of(made),
        took=_median([each.took for each in made if each.took is not None]),
    )


MAX_WEEKS = 26
WEEK = timedelta(weeks=1)


def _weeks(found: LedgerHistory, since: datetime | None) -> tuple[WeekStats, ...]:
    """Count by week, without gaps; the last half year at most."""
    made = _by(lambda each: _monday(each.at), found.attempts)
    merges = Counter(
        _monday(each.at)
        for each in found.milestones
        if each.kind is MilestoneKind.MERGED and _is_in(each.at, since)
    )
    known = made.keys() | merges.keys()
    if not known:
        return ()
    last = max(known)
    first = max(min(known), last - (MAX_WEEKS - 1) * WEEK)
    count = (last - first) // WEEK + 1
    mondays = (first + place * WEEK for place in range(count))
    return tuple(_week(monday, made.get(monday, []), merges[monday]) for monday in mondays)


def _week(monday: date, made: Sequence[AttemptEntry], merged: int) -> WeekStats:
    succeeded, counted = sum(map(_succeeded, made)), sum(map(_counts, made))
    return WeekStats(
        monday, succeeded, counted - succeeded, len(made) - counted, merged, cost_of(made)
    )


def _monday(at: datetime) -> date:
    day = at.astimezone(UTC).date()
    return day - timedelta(days=day.weekday())


LIMITS = (*(timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 20, 30, 60, 120)), None)


def _durations(tries: Iterable[AttemptEntry]) -> tuple[DurationStats, ...]:
    taken = [each.took for each in tries if each.took is not None]
    counts = Counter(
        next(limit for limit in LIMITS if limit is None or took < limit) for took in taken
    )
    return tuple(DurationStats(limit, counts[limit]) for limit in LIMITS) if taken else ()


def _time_of(tries: Sequence[AttemptEntry]) -> TimeStats:
    nothing = timedelta()
    steps = Counter[str]()
    for each in tries:
        steps.update({name: took // MICROSECOND for name, took in each.steps.items() if took})
    failed = (each for each in tries if _counts(each) and not _succeeded(each))
    return TimeStats(
        attempts=sum((each.took or nothing for each in tries), nothing),
        failed=sum((each.took or nothing for each in failed), nothing),
        steps={name: spent * MICROSECOND for name, spent in steps.most_common()},
    )


MAX_LISTED = 10

Failed = tuple[AttemptEntry, Failure]


def _frequent_checks(failed: Iterable[Failed]) -> tuple[FrequentFailure, ...]:
    found = _by(lambda each: (each[0].issue.repository, each[1].check), failed)
    return _ranked(_frequent_failure(group) for group in found.values())


def _frequent_failures(failed: Iterable[Failed]) -> tuple[FrequentFailure, ...]:
    """Group failures by their fingerprint; skip failures without one."""
    found = _by(
        lambda each: (each[0].issue.repository, each[1].check, each[1].fingerprint),
        (each for each in failed if each[1].fingerprint),
    )
    named = [(group[-1][1], _frequent_failure(group)) for group in found.values()]
    return _ranked(
        replace(told, summary=failure.summary, fingerprint=failure.fingerprint)
        for failure, told in named
    )


def _frequent_failure(group: Sequence[Failed]) -> FrequentFailure:
    tried, failure = group[-1]
    return FrequentFailure(
        repository=tried.issue.repository,
        check=failure.check,
        attempts=len({(each.issue, each.number) for each, _ in group}),
        issues=len({each.issue for each, _ in group}),
    )


def _ranked(found: Iterable[FrequentFailure]) -> tuple[FrequentFailure, ...]:
    return tuple(
        sorted(
            found,
            key=lambda of: (-of.attempts, -of.issues, of.repository, of.check, of.fingerprint),
        )[:MAX_LISTED]
    )


def _by(key: Callable[[T], K], rows: Iterable[T]) -> dict[K, list[T]]:
    """Group rows by a key, and keep their order."""
    found = defaultdict[K, list[T]](list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _is_in(at: datetime, since: datetime | None) -> bool:
    return since is None or at >= since


def _counts(tried: AttemptEntry) -> bool:
    return tried.outcome not in FREE


def _succeeded(tried: AttemptEntry) -> bool:
    return tried.outcome is Outcome.SUCCEEDED
