"""Follow the ledger from event to event: the last results, and what each running attempt does."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from mulligan.domain.events import (
    AgentStarted,
    AttemptCompleted,
    CheckFinished,
    Decided,
    Event,
    FixRoundStarted,
    Recorded,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.ports import Ledger
from mulligan.text.escape import one_line

LOOKED_BACK = 2000
"""Events that are read when the first page is asked for; a page needs no more than the last few."""

PAGE = 500
MOST_RESULTS = 20
MOST_DOING = 1000


@dataclass(frozen=True, slots=True)
class Lately:
    """The newest results first, what is being done for an issue, and up to which event that is."""

    results: tuple[WorkerResultMeta, ...]
    doing: Mapping[IssueRef, str]
    seq: int


class Recent:
    """Reads each event once, whoever asks; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seq: int | None = None
        self._results: deque[WorkerResultMeta] = deque(maxlen=MOST_RESULTS)
        self._doing = dict[IssueRef, str]()

    def look(self, ledger: Ledger) -> Lately:
        """Read on, and give what is known now."""
        with self._lock:
            seq = max(0, ledger.newest() - LOOKED_BACK) if self._seq is None else self._seq
            while page := ledger.events(after=seq, most=PAGE):
                for recorded in page:
                    self._take(recorded)
                seq = page[-1].seq
            self._seq = seq
            return Lately(tuple(self._results), dict(self._doing), seq)

    def _take(self, recorded: Recorded) -> None:
        ref, event = recorded.issue, recorded.event
        if isinstance(event, AttemptCompleted):
            self._results.appendleft(event.meta)
        if said := doing(event):
            self._doing.pop(ref, None)
            self._doing[ref] = said
            while len(self._doing) > MOST_DOING:
                del self._doing[next(iter(self._doing))]


PLAIN: Mapping[str, str] = {
    "attempt_started": "getting a clean worktree",
    "worktree_reset": "preparing what the agent is told",
    "agent_finished": "looking at what the agent left",
    "attempt_completed": "deciding what follows",
    "publish_started": "publishing the change",
}
"""What an attempt does from an event of a kind on."""


def doing(event: Event) -> str | None:
    """Say what an attempt does from an event on; None where that tells nothing new."""
    match event:
        case AgentStarted(agent=agent):
            return f"the agent {one_line(agent, 40)} works"
        case CheckFinished(check=check):
            how = "passed" if check.passed else "failed"
            return f"verifying: check '{one_line(check.name, 60)}' {how}"
        case FixRoundStarted(number=number, most=most):
            return f"fix round {number} of {most}"
        case Decided(decision=decision):
            return one_line(decision.reason, 120)
        case _:
            return PLAIN.get(event.kind)
