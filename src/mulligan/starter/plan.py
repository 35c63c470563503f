"""What `init` would write, and how it differs from what is there. Pure."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that is proposed; `before` is None where there is none yet."""

    path: Path
    text: str
    before: str | None = None

    @property
    def is_new(self) -> bool:
        """Tell whether anything would change."""
        return self.text != self.before

    def diff(self, shown: str) -> Iterator[str]:
        """Give the lines of a unified diff, under the name that is shown for the file."""
        before = (self.before or "").splitlines()
        name = shown if self.before is not None else "/dev/null"
        yield from difflib.unified_diff(before, self.text.splitlines(), name, shown, lineterm="")
