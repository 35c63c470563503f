"""How much a command may have, with all that it starts. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a sandbox may have: processes and bytes of memory in all, bytes in a file.

    It is not asked to end itself, but what it started is; all is killed where that has more.
    """

    processes: int
    memory: int
    file_size: int

    def __str__(self) -> str:
        """Write them as the keeper reads them."""
        return f"{self.processes}:{self.memory}:{self.file_size}"
