"""How the daemon is doing, for whoever asks: that it is alive, and what its polls came to."""

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class HealthSnapshot:
    """What is known at one moment; times are seconds, on a clock that only grows.

    `beat` is when the poll was alive last, `polled` when the last one ended. `unread` counts the
    repositories that could not be polled, `failing` those of the last poll; `served` tells that one
    poll has got through to a repository. `undone` counts the visits that left something undone of
    what was decided, which is done again.
    """

    last_beat: float
    repositories: int = 0
    polls: int = 0
    polled: float | None = None
    poll_seconds: float = 0.0
    failed_repositories: int = 0
    failing: int = 0
    has_succeeded: bool = False
    visits: int = 0
    undone: int = 0


class DaemonHealth:
    """Takes down what the daemon does; safe for threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._vitals = HealthSnapshot(last_beat=now())

    @property
    def snapshot(self) -> HealthSnapshot:
        """Give what is known now."""
        return self._vitals

    @property
    def seconds_since_beat(self) -> float:
        """Give the seconds since the poll was alive last."""
        return self._now() - self._vitals.last_beat

    def note_each(self, repositories: Iterable[str]) -> Generator[str]:
        """Give the repositories one by one, and note that the poll is alive at each."""
        for repository in repositories:
            self._change(lambda known: replace(known, last_beat=self._now()))
            yield repository

    @contextmanager
    def note_poll(self) -> Generator[None]:
        """Note that a poll begins and ends, and how long it took."""
        began = self._now()
        self._change(lambda known: replace(known, last_beat=began))
        yield
        ended = self._now()
        self._change(
            lambda known: replace(
                known,
                last_beat=ended,
                polled=ended,
                polls=known.polls + 1,
                poll_seconds=known.poll_seconds + ended - began,
            )
        )

    def asked(self, repositories: int, failed: int) -> None:
        """Note how many repositories a poll asked, and how many of them could not be."""
        self._change(
            lambda known: replace(
                known,
                repositories=repositories,
                failed_repositories=known.failed_repositories + failed,
                failing=failed,
                has_succeeded=known.has_succeeded or failed < repositories,
            )
        )

    def visited(self, *, undone: bool) -> None:
        """Note that a visit ended."""
        self._change(
            lambda known: replace(known, visits=known.visits + 1, undone=known.undone + undone)
        )

    def _change(self, change: Callable[[HealthSnapshot], HealthSnapshot]) -> None:
        with self._lock:
            self._vitals = change(self._vitals)
