"""A dashboard on loopback, over a ledger that a test writes, and a client without any comfort."""

import http.client
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

from mulligan.config.settings import AllowanceSettings, Budget
from mulligan.daemon.health import DaemonHealth
from mulligan.domain.events import (
    AgentStarted,
    AttemptCompleted,
    AttemptStarted,
    Authorised,
    Decided,
    Escalated,
    IssueSeen,
    Published,
    RetryScheduled,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Decision, Escalate, OpenPullRequest, Outcome, Retry
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.stats import LedgerHistory
from mulligan.github.rate_limits import RateLimitMetrics
from mulligan.interfaces.dashboard.access import DashboardKey, OneTimeKey, key_in
from mulligan.interfaces.dashboard.app import build, serving
from mulligan.interfaces.dashboard.metrics import MetricsRegistry
from mulligan.interfaces.dashboard.state import DashboardState, DashboardStores
from mulligan.interfaces.dashboard.webhook import Webhook
from mulligan.storage.artifacts import FileArtifacts
from mulligan.storage.memory import MemoryLedger
from mulligan.storage.usage import MemoryUsageStore
from mulligan.text.redact import Redactor
from world.ledgers import START, TickingClock
from world.sample_history import sample_month
from world.stories import attempt

JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
LOCAL = "127.0.0.1"
SECRET = "correct-horse-battery-staple"
HOSTS = frozenset({"mulligan.example"})
BUDGET = Budget(day=AllowanceSettings(usd=5))


@dataclass(frozen=True)
class HttpAnswer:
    """A response; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> JsonValue:
        return JSON.validate_json(self.body)


@dataclass
class Dashboard:
    """A dashboard that is served, and everything behind it."""

    port: int
    key: DashboardKey
    link_key: OneTimeKey
    desk: DashboardState
    stores: DashboardStores
    measures: MetricsRegistry
    writable: list[Exception]
    hinted: list[str]

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> HttpAnswer:
        """Send one request, as whoever has the key unless an `authorization` is given."""
        sent = {"authorization": f"Bearer {self.key.secret}"} | headers
        named = {name.replace("_", "-"): value for name, value in sent.items()}
        line = http.client.HTTPConnection(LOCAL, self.port, timeout=120)
        try:
            line.request(method, path, body, named)
            answer = line.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return HttpAnswer(answer.status, found, answer.read())
        finally:
            line.close()

    def ask_without_key(self, path: str, method: str = "GET", **headers: str) -> HttpAnswer:
        """Send one request, as somebody without the key."""
        return self.ask(path, method, authorization="", **headers)

    def begin(self, ref: IssueRef, title: str, url: str = "") -> None:
        """Record a request for an issue, and the start of its first attempt."""
        ledger = self.stores.ledger
        ledger.append(ref, IssueSeen(title=title, url=url))
        ledger.append(ref, Authorised(act="labeled:7", actor="ada", act_at=START))
        self.start(ref, 1)

    def start(self, ref: IssueRef, number: int) -> None:
        """Record the start of an attempt and of its agent."""
        ledger = self.stores.ledger
        ledger.append(ref, AttemptStarted(attempt=number, number=number, worker="here"))
        ledger.append(ref, AgentStarted(agent="claude"))

    def end(self, ref: IssueRef, meta: WorkerResultMeta) -> None:
        """Record the end of an attempt, and the decision after it."""
        ledger, meta = self.stores.ledger, meta.model_copy(update={"issue": str(ref)})
        ledger.append(ref, AttemptCompleted(meta=meta))
        for event in _following(meta):
            ledger.append(ref, event)


def _following(
    meta: WorkerResultMeta,
) -> list[Decided | Published | Escalated | RetryScheduled]:
    if meta.outcome is Outcome.SUCCEEDED:
        url = "https://github.com/octo/one/pull/13"
        published = Published(pull_request=url, number=13, head_sha="c0ffee")
        return [_decided(OpenPullRequest(reason="The check 'tests' passed.")), published]
    if meta.attempt < 3:
        again = RetryScheduled(due=START, reason=meta.error)
        return [_decided(Retry(reason=meta.error)), again]
    said = f"All 3 attempts failed. The last one: {meta.error}"
    asked = Escalated(reason=said, comment="https://github.com/octo/one/issues/1#issuecomment-9")
    return [_decided(Escalate(reason=said)), asked]


def _decided(decision: Decision) -> Decided:
    return Decided(decision=decision)


def tried(number: int, outcome: Outcome = Outcome.CHECKS_FAILED) -> WorkerResultMeta:
    """Record an attempt of an issue."""
    return attempt(number, outcome)


@contextmanager
def serve_dashboard(
    directory: Path,
    *,
    is_starting: bool = False,
    found: DashboardStores | None = None,
    read_history: Callable[[], LedgerHistory] = sample_month,
    webhook_secret: str = "",
    has_link: bool = True,
) -> Generator[Dashboard]:
    """Serve a dashboard over an empty ledger, or what was `found`; `is_starting` is before that."""
    clock = TickingClock()
    artifacts = FileArtifacts(directory / "artifacts")
    stores = found or DashboardStores(
        MemoryLedger(clock), MemoryUsageStore(), artifacts, clock, BUDGET, Redactor((SECRET,))
    )
    wrong = list[Exception]()

    def check_writable() -> None:
        if wrong:
            raise wrong[0]

    desk = DashboardState(
        find_stores=lambda: None if is_starting else stores,
        pulse=DaemonHealth(),
        gauges=RateLimitMetrics(),
        timeout=lambda: 60.0,
        check_writable=check_writable,
        read_history=read_history,
    )
    measures, key, link_key = MetricsRegistry(desk), key_in(directory), OneTimeKey()
    hinted = list[str]()
    hook = Webhook(webhook_secret, lambda name: name == "octo/one" and not hinted.append(name))
    app = build(desk, key, link_key if has_link else None, HOSTS, measures, hook)
    with serving(app, (LOCAL, 0), desk.ending) as where:
        port = int(where.rstrip("/").rpartition(":")[2])
        yield Dashboard(port, key, link_key, desk, stores, measures, wrong, hinted)
