"""Keep the beginning of an output that may be a report, while it passes by."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mulligan.verification.digest.reports.documents import looks_structured

LOOK = 64 * 1024
LARGEST = 8 * 1024 * 1024
"""Bytes; of an output that is longer no report is read."""


@dataclass(slots=True)
class Kept:
    """Chunks of an output that may be a report; none where it is too long or is none."""

    chunks: list[bytes] = field(default_factory=list[bytes])
    room: int = LARGEST

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks as they are; keep them as long as there is room."""
        for position, chunk in enumerate(chunks):
            if position == 0 and not looks_structured(chunk[:LOOK].decode(errors="replace")):
                self.room = 0
            self.room -= len(chunk)
            if self.room >= 0:
                self.chunks.append(chunk)
            else:
                self.chunks.clear()
            yield chunk

    @property
    def text(self) -> str:
        """What was kept, its lines numbered as in the output."""
        return b"\n".join(self.chunks).decode(errors="replace")
