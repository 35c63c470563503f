"""What metrics there are of this very moment, looked up whenever Prometheus asks."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from mulligan import __version__
from mulligan.domain.issue import Stage
from mulligan.errors import MulliganError
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.surfaces.dashboard.waiting import Hold, hold_of


class Moment(Collector):
    """A collector of prometheus-client; where the ledger cannot be read, its part is left out."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def describe(self) -> Iterable[Metric]:
        """Describe nothing beforehand, so that registering asks nothing."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Give everything, at the moment of asking."""
        build = GaugeMetricFamily("mulligan_build_info", "Which it is.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield from self._polls()
        yield from self._github()
        with suppress(MulliganError):
            yield from self._issues()

    def _polls(self) -> Iterator[Metric]:
        seen = self._desk.pulse.vitals
        yield SummaryMetricFamily(
            "mulligan_poll_duration_seconds",
            "Polls, and their time.",
            seen.polls,
            seen.poll_seconds,
        )
        for name, meaning, count in (
            ("mulligan_poll_failures", "Repositories that a poll could not read.", seen.unread),
            ("mulligan_visits", "Visits to issues.", seen.visits),
            ("mulligan_effect_failures", "Visits that left a decision undone.", seen.undone),
        ):
            yield CounterMetricFamily(name, meaning, count)
        for name, meaning, value in (
            ("mulligan_poll_quiet_seconds", "Since the poll was alive.", self._desk.pulse.quiet),
            ("mulligan_repositories", "Repositories that are served.", seen.repositories),
            ("mulligan_repositories_failing", "Those that the last poll missed.", seen.failing),
        ):
            yield GaugeMetricFamily(name, meaning, value)

    def _github(self) -> Iterator[Metric]:
        gauges = self._desk.gauges
        left = GaugeMetricFamily(
            "mulligan_github_rate_limit_remaining",
            "Requests left, as GitHub's last answer had it.",
            labels=["resource"],
        )
        for resource, count in gauges.left.items():
            left.add_metric([resource], count)
        yield left
        yield GaugeMetricFamily(
            "mulligan_github_token_refused", "1 while GitHub refuses the token.", gauges.refused
        )

    def _issues(self) -> Iterator[Metric]:
        books = self._desk.books
        statuses, now = books.ledger.statuses(), books.clock.now()
        stages = Counter(each.stage for each in statuses)
        holds = Counter(hold_of(each, now) for each in statuses)
        issues = GaugeMetricFamily("mulligan_issues", "Issues, by stage.", labels=["stage"])
        for stage in Stage:
            issues.add_metric([stage], stages[stage])
        yield issues
        waiting = GaugeMetricFamily(
            "mulligan_issues_waiting", "Issues that wait, by what for.", labels=["hold"]
        )
        for hold in Hold:
            waiting.add_metric([hold], holds[hold])
        yield waiting
