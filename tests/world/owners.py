"""Installations that own labels on a ref of a repository on this disk, on a clock that is set."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from mulligan.domain.ownership import OwnerRecord
from mulligan.git.remote_ref import RemoteRef, open_remote_ref
from mulligan.git.repository import Remote
from mulligan.storage.owner_ref import (
    OWNER_REF,
    OWNER_TITLE,
    Installation,
    RefOwners,
    parse_records,
)
from world.repositories import git
from world.trackers import FrozenClock


@dataclass
class Steady:
    """Seconds since boot, on the clock of a test."""

    clock: FrozenClock

    def __call__(self) -> float:
        return self.clock.time.timestamp()


@dataclass
class OwnedRemote:
    """A remote with ready labels that installations own; `labels` are the different ones."""

    bare: Path
    clock: FrozenClock
    label: str = "mulligan"
    labels: dict[str, str] = field(default_factory=dict[str, str])

    def owners(
        self, installation: Installation, steady: Callable[[], float] | None = None
    ) -> RefOwners:
        """Give what one process of an installation has."""

        def label(_repository: str) -> str:
            return self.labels.get(installation.id, self.label)

        return RefOwners(installation, self.open_ref, label, steady or Steady(self.clock))

    def open_ref(self, _repository: str) -> AbstractContextManager[RemoteRef]:
        environment = {"PATH": os.environ["PATH"]}
        return open_remote_ref(OWNER_REF, OWNER_TITLE, environment, lambda: Remote(str(self.bare)))

    def stored(self) -> dict[str, str]:
        """Give the owner of each label, as the ref says."""
        return {label: each.installation for label, each in self._records().items()}

    def renewals(self) -> int:
        """Count how often the one record was written."""
        (record,) = self._records().values()
        return record.renewals

    def _records(self) -> dict[str, OwnerRecord]:
        if not git(self.bare, "for-each-ref", OWNER_REF):
            return {}
        text = git(self.bare, "cat-file", "blob", f"{OWNER_REF}:owner.json")
        return parse_records(text.encode())

    def tip(self) -> str:
        return git(self.bare, "for-each-ref", "--format=%(objectname)", OWNER_REF)
