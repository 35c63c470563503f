"""Record the health of the daemon: when its poll last ran, and the results of polls and visits."""

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """The health at one moment; times are seconds on a monotonic clock.

    `last_beat` is when the poll last reported that it runs. `failed_repositories` counts all polls
    of a repository that failed, `failing` those in the last poll. `has_succeeded` is set once any
    repository was polled. `undone` counts the visits that did not complete a recorded decision; a
    later poll completes it. `faults` are those of this machine that held due issues at the last
    poll.
    """

    last_beat: float
    repositories: int = 0
    polls: int = 0
    poll_seconds: float = 0.0
    failed_repositories: int = 0
    failing: int = 0
    has_succeeded: bool = False
    visits: int = 0
    undone: int = 0
    faults: tuple[str, ...] = ()


class DaemonHealth:
    """Collects the health of the daemon; safe for threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._snapshot = HealthSnapshot(last_beat=now())

    @property
    def snapshot(self) -> HealthSnapshot:
        """Return the current health."""
        return self._snapshot

    @property
    def seconds_since_beat(self) -> float:
        """Return the seconds since the poll last reported that it runs."""
        return self._now() - self._snapshot.last_beat

    def note_each(self, repositories: Iterable[str]) -> Generator[str]:
        """Yield the repositories, and record at each that the poll still runs."""
        for repository in repositories:
            self._change(lambda known: replace(known, last_beat=self._now()))
            yield repository

    @contextmanager
    def note_poll(self) -> Generator[None]:
        """Record the start, end and duration of the poll in this block."""
        began = self._now()
        self._change(lambda known: replace(known, last_beat=began))
        yield
        ended = self._now()
        self._change(
            lambda known: replace(
                known,
                last_beat=ended,
                polls=known.polls + 1,
                poll_seconds=known.poll_seconds + ended - began,
            )
        )

    def stand_by(self) -> None:
        """Record that this worker runs and that another one polls."""
        self._change(lambda known: replace(known, last_beat=self._now(), has_succeeded=True))

    def asked(self, repositories: int, failed: int) -> None:
        """Record how many repositories a poll read, and how many of them failed."""
        self._change(
            lambda known: replace(
                known,
                repositories=repositories,
                failed_repositories=known.failed_repositories + failed,
                failing=failed,
                has_succeeded=known.has_succeeded or failed < repositories,
            )
        )

    def held(self, faults: Iterable[str]) -> None:
        """Record the faults of this machine that hold due issues."""
        found = tuple(dict.fromkeys(faults))
        self._change(lambda known: replace(known, faults=found))

    def visited(self, *, undone: bool) -> None:
        """Record the end of a visit."""
        self._change(
            lambda known: replace(known, visits=known.visits + 1, undone=known.undone + undone)
        )

    def _change(self, change: Callable[[HealthSnapshot], HealthSnapshot]) -> None:
        with self._lock:
            self._snapshot = change(self._snapshot)
