"""What keeps the files of an attempt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mulligan.domain.issue import IssueRef
from mulligan.domain.retention import AttemptFiles


class Artifacts(Protocol):
    """The files of an attempt: prompt, logs, diff. See state/artifacts.py, shared_artifacts.py."""

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Give the place of a file that somebody else will write; its directory exists."""
        ...

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Give the artifact name of a file; None where it is not there. Makes nothing."""
        ...

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Keep a file whole or not at all; give its artifact name."""
        ...

    def share(self, path: Path) -> None:
        """Have a file that somebody else has written found by every worker (SPEC A15)."""
        ...

    def name(self, path: Path) -> str:
        """Give the artifact name of a file at a `path` that was given out."""
        ...

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """Read an artifact, or its `last` bytes; UnavailableError where retention took it."""
        ...

    def attempts(self) -> Sequence[AttemptFiles]:
        """List the attempts that have files here, in no order."""
        ...

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files of an attempt, if there are any."""
        ...
