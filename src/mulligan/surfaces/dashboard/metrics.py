"""`/metrics`: what Prometheus may want to know; no series names an issue or a repository."""

from collections.abc import Iterator

import prometheus_client as prometheus

from mulligan.domain.events import AgentFinished, AttemptCompleted, Decided, Event
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.surfaces.dashboard.moment import Moment

DECISIONS = ("open_pull_request", "retry", "escalate", "wait", "stand_down")
CONTENT_TYPE = prometheus.CONTENT_TYPE_LATEST


class Measures:
    """Counts since the start of the process, and looks at the rest when it is asked."""

    def __init__(self, desk: Desk) -> None:
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
        for outcome in Outcome:
            self._attempts.labels(outcome)
        for decision in DECISIONS:
            self._decisions.labels(decision)
        for direction in ("input", "output"):
            self._tokens.labels(direction)
        prometheus.ProcessCollector(registry=registry)
        registry.register(Moment(desk))

    def hear(self, _: IssueStatus, event: Event) -> None:
        """Count an event; a listener of the ledger."""
        match event:
            case AttemptCompleted(meta=meta):
                self._count(meta)
            case AgentFinished(duration_ms=took):
                self._agent_seconds.inc(took / 1000)
            case Decided(decision=decision):
                self._decisions.labels(decision.decision).inc()
            case _:
                return

    def text(self) -> bytes:
        """Write everything in Prometheus' own format."""
        return prometheus.generate_latest(self._registry)

    def _count(self, meta: WorkerResultMeta) -> None:
        self._attempts.labels(meta.outcome).inc()
        self._attempt_seconds.inc(meta.duration_ms / 1000)
        for run in _runs(meta):
            self._cost.inc(run.cost_usd or 0)
            self._tokens.labels("input").inc(run.input_tokens or 0)
            self._tokens.labels("output").inc(run.output_tokens or 0)


def _runs(meta: WorkerResultMeta) -> Iterator[AgentFacts]:
    usages = (meta.agent, *(each.usage for each in meta.fix_rounds))
    return (run for run in usages if run)
