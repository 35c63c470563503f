"""Which checks run on a start tree now, so that no two attempts run the same (BASELINE-1)."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Lock

from mulligan.sandbox.cancellation import wait_for

BaselineKey = tuple[str, str]
"""A repository, and the key of a baseline in it."""


class RunningBaselines:
    """The baselines that an attempt of this process makes now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = dict[BaselineKey, Event]()

    def claim(self, keys: Iterable[BaselineKey]) -> Mapping[BaselineKey, Event]:
        """Claim the keys that no attempt has claimed; return the claims, for `release`."""
        with self._lock:
            claims = {key: Event() for key in keys if key not in self._running}
            self._running |= claims
            return claims

    def release(self, claims: Mapping[BaselineKey, Event]) -> None:
        """End claims, and wake those who wait for them; ignore claims that have ended."""
        with self._lock:
            for key, ended in claims.items():
                if self._running.get(key) is ended:
                    del self._running[key]
                ended.set()

    @contextmanager
    def turn(self, key: BaselineKey, timeout: timedelta) -> Generator[None]:
        """Wait for the attempt that has a key, if any, and claim the key while the block lasts.

        After `timeout`, the block runs without the claim.
        """
        with self._lock:
            running = self._running.get(key)
        if running:
            wait_for(running, timeout.total_seconds())
        claims = self.claim([key])
        try:
            yield
        finally:
            self.release(claims)
