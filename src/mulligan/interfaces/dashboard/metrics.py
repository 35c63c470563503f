"""The content of `/healthz`, `/readyz` and `/metrics`: health problems and metrics."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import prometheus_client as prometheus
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from mulligan import __version__
from mulligan.domain.errors import MulliganError
from mulligan.domain.events import (
    STEP_ENDS,
    AgentFinished,
    AgentStarted,
    AttemptCompleted,
    AttemptStarted,
    Decided,
    Escalated,
    Event,
    FixRoundStarted,
    HumanResponded,
    Resolved,
    Restored,
    RetryContextAssembled,
    WorktreeReset,
)
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import AgentFacts, WorkerResultMeta
from mulligan.domain.stats import kind_of_feedback
from mulligan.domain.status import IssueStatus
from mulligan.interfaces.dashboard.state import DashboardState
from mulligan.interfaces.dashboard.views import WaitsFor, waits_for
from mulligan.sandbox.cancellation import stopping

# Health, for `/healthz` and `/readyz`

REFUSED = "GitHub refused the token. Set a valid one in github.token_file."
FIRST_POLL = "No poll has reached GitHub yet. See Mulligan's log for the reason."
STOPPING = "Mulligan is stopping."


def liveness_problem(state: DashboardState) -> str:
    """Return why the process should be restarted; "" while its poll is alive.

    A fault elsewhere, such as an unreachable GitHub, is no reason: a restart does not fix it. A
    process that is stopping does not poll, and may finish its work.
    """
    quiet = state.pulse.seconds_since_beat
    if quiet <= state.timeout() or stopping():
        return ""
    return f"No poll for {quiet:.0f} s. Restart Mulligan."


def readiness_problems(state: DashboardState) -> list[str]:
    """List the reasons not to start work, as far as known without a trial write."""
    wrong = [problem for problem in (liveness_problem(state),) if problem]
    if stopping():
        wrong.append(STOPPING)
    if not state.pulse.snapshot.has_succeeded:
        wrong.append(FIRST_POLL)
    if state.gauges.refused:
        wrong.append(REFUSED)
    return wrong


def unready(state: DashboardState) -> list[str]:
    """List the reasons not to start work; empty if there are none."""
    wrong = readiness_problems(state)
    try:
        state.check_writable()
    except MulliganError as error:
        wrong.append(str(error))
    return wrong


# Metrics, for `/metrics`

CONTENT_TYPE = prometheus.CONTENT_TYPE_LATEST
RECOVERIES = ("attempt", "issue")
"""An attempt that was interrupted and is repeated; an issue restored from GitHub."""

DECISIONS = ("open_pull_request", "retry", "escalate", "wait", "stand_down")


class LiveMetrics(Collector):
    """A collector of prometheus-client; omits the issues if the ledger cannot be read."""

    def __init__(self, state: DashboardState) -> None:
        self._state = state

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registering does not read the ledger."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, read at the moment of the request."""
        build = GaugeMetricFamily("mulligan_build_info", "Which it is.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        yield from self._polls()
        yield from self._github()
        with suppress(MulliganError):
            yield from self._issues()

    def _polls(self) -> Iterator[Metric]:
        seen = self._state.pulse.snapshot
        yield SummaryMetricFamily(
            "mulligan_poll_duration_seconds",
            "Polls, and their time.",
            seen.polls,
            seen.poll_seconds,
        )
        for name, meaning, count in (
            (
                "mulligan_poll_failures",
                "Repositories that a poll could not read.",
                seen.failed_repositories,
            ),
            ("mulligan_visits", "Visits to issues.", seen.visits),
            ("mulligan_effect_failures", "Visits that left a decision undone.", seen.undone),
        ):
            yield CounterMetricFamily(name, meaning, count)
        for name, meaning, value in (
            (
                "mulligan_poll_quiet_seconds",
                "Seconds since the poll last made progress.",
                self._state.pulse.seconds_since_beat,
            ),
            ("mulligan_repositories", "Repositories that are served.", seen.repositories),
            (
                "mulligan_repositories_failing",
                "Repositories that the last poll could not read.",
                seen.failing,
            ),
        ):
            yield GaugeMetricFamily(name, meaning, value)

    def _github(self) -> Iterator[Metric]:
        gauges = self._state.gauges
        left = GaugeMetricFamily(
            "mulligan_github_rate_limit_remaining",
            "Requests left, as GitHub's last answer had it.",
            labels=["resource"],
        )
        for resource, count in gauges.remaining.items():
            left.add_metric([resource], count)
        yield left
        yield GaugeMetricFamily(
            "mulligan_github_token_refused", "1 while GitHub refuses the token.", gauges.refused
        )

    def _issues(self) -> Iterator[Metric]:
        stores = self._state.stores
        statuses, now = stores.ledger.statuses(), stores.clock.now()
        stages = Counter(each.stage for each in statuses)
        holds = Counter(waits_for(each, now) for each in statuses)
        issues = GaugeMetricFamily("mulligan_issues", "Issues, by stage.", labels=["stage"])
        for stage in Stage:
            issues.add_metric([stage], stages[stage])
        yield issues
        waiting = GaugeMetricFamily(
            "mulligan_issues_waiting", "Waiting issues, by what they wait for.", labels=["hold"]
        )
        for hold in WaitsFor:
            waiting.add_metric([hold], holds[hold])
        yield waiting
        queued = [each for each in statuses if waits_for(each, now) is WaitsFor.QUEUED]
        since = [each.request.at for each in queued if each.request.at]
        oldest = (now - min(since)).total_seconds() if since else 0
        yield GaugeMetricFamily(
            "mulligan_queue_age_seconds", "Seconds since the oldest queued request.", oldest
        )


STEPS: Mapping[type[Event], str] = {
    AttemptStarted: "worktree",
    WorktreeReset: "prompt",
    AgentStarted: "agent",
    AgentFinished: "checks",
    FixRoundStarted: "prompt",
    AttemptCompleted: "decision",
    Decided: "github",
}
"""The step of an issue that an event begins; it lasts until the next of these, or an end."""

STEP_BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800, 3600, 7200)
CONTEXT_BUCKETS = (500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)


class StepClock:
    """Measures the steps of issues in this process, from one event to another."""

    def __init__(self, steps: prometheus.Histogram, now: Callable[[], float]) -> None:
        self._steps, self._now = steps, now
        self._began = dict[IssueRef, tuple[str, float]]()

    def on_event(self, issue: IssueRef, event: Event) -> None:
        """Note the end of a step, and the begin of the next."""
        step = STEPS.get(type(event))
        if step is None and not isinstance(event, STEP_ENDS):
            return
        if before := self._began.pop(issue, None):
            self._steps.labels(before[0]).observe(self._now() - before[1])
        if step:
            self._began[issue] = (step, self._now())


class MetricsRegistry:
    """Counts events since the start of the process, and reads the rest on request."""

    def __init__(self, state: DashboardState) -> None:
        prometheus.disable_created_metrics()
        self._registry = registry = prometheus.CollectorRegistry()

        def counter(name: str, meaning: str, *labels: str) -> prometheus.Counter:
            return prometheus.Counter(f"mulligan_{name}", meaning, labels, registry=registry)

        self._attempts = counter("attempts", "Attempts that ended, by outcome.", "outcome")
        self._decisions = counter("decisions", "What followed attempts.", "decision")
        self._attempt_seconds = counter("attempt_seconds", "Time that attempts took.")
        self._agent_seconds = counter("agent_seconds", "Time that agents ran.")
        self._cost = counter("agent_cost_usd", "What agents cost, as far as they tell.")
        self._tokens = counter("agent_tokens", "Tokens that agents used.", "direction")
        self._escalations = counter("escalations", "Issues handed to a maintainer.")
        self._skipped = counter("issues_skipped", "Issues that a maintainer skipped.")
        self._contexts = counter("retry_contexts", "Retry contexts in prompts.")
        self._context_bytes = counter(
            "retry_context_bytes", "Bytes of the retry contexts, by section.", "section"
        )
        self._feedback = counter(
            "retry_feedback",
            "Attempts that counted and had a retry context, by kind of feedback and result.",
            *("feedback", "result"),
        )
        self._context_size = prometheus.Histogram(
            "mulligan_retry_context_size_bytes",
            "Bytes of each retry context.",
            buckets=CONTEXT_BUCKETS,
            registry=registry,
        )
        self._steps = prometheus.Histogram(
            "mulligan_step_duration_seconds",
            "Time that each step of an attempt took.",
            ["step"],
            buckets=STEP_BUCKETS,
            registry=registry,
        )
        self._clock = StepClock(self._steps, time.monotonic)
        self._recoveries = counter("recoveries", "What continued after a crash or a loss.", "what")
        self._commands = counter("commands", "Commands that were carried out.", "command")
        self._sources = dict[IssueRef, tuple[str, ...]]()
        for step in sorted({*STEPS.values()}):
            self._steps.labels(step)
        for what in RECOVERIES:
            self._recoveries.labels(what)
        for outcome in Outcome:
            self._attempts.labels(outcome)
        for decision in DECISIONS:
            self._decisions.labels(decision)
        for direction in ("input", "output"):
            self._tokens.labels(direction)
        prometheus.ProcessCollector(registry=registry)
        registry.register(LiveMetrics(state))

    def on_event(self, status: IssueStatus, event: Event) -> None:
        """Count an event; a listener of the ledger."""
        self._clock.on_event(status.issue, event)
        match event:
            case AttemptCompleted(meta=meta):
                self._count(meta, self._sources.pop(status.issue, ()))
            case RetryContextAssembled():
                self._sources[status.issue] = event.feedback_sources
                self._contexts.inc()
                self._context_size.observe(event.context_size_bytes)
                for section, size in event.section_bytes.items():
                    self._context_bytes.labels(section).inc(size)
            case AgentFinished(duration_ms=took):
                self._agent_seconds.inc(took / 1000)
            case Escalated():
                self._escalations.inc()
            case Resolved() if not event.ends_pull:
                self._skipped.inc()
            case Restored():
                self._recoveries.labels("issue").inc()
            case HumanResponded(command=command):
                self._commands.labels(command).inc()
            case Decided(decision=decision):
                self._decisions.labels(decision.decision).inc()
            case _:
                return

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return prometheus.generate_latest(self._registry)

    def _count(self, meta: WorkerResultMeta, sources: tuple[str, ...]) -> None:
        if meta.outcome not in FREE:
            result = "succeeded" if meta.outcome is Outcome.SUCCEEDED else "failed"
            for kind in set(map(kind_of_feedback, sources)):
                self._feedback.labels(kind, result).inc()
        if meta.outcome is Outcome.INTERRUPTED:
            self._recoveries.labels("attempt").inc()
        self._attempts.labels(meta.outcome).inc()
        self._attempt_seconds.inc(meta.duration_ms / 1000)
        for run in _runs(meta):
            self._cost.inc(run.cost_usd or 0)
            self._tokens.labels("input").inc(run.input_tokens or 0)
            self._tokens.labels("output").inc(run.output_tokens or 0)


def _runs(meta: WorkerResultMeta) -> Iterator[AgentFacts]:
    usages = (meta.agent, *(each.usage for each in meta.fix_rounds))
    return (run for run in usages if run)
