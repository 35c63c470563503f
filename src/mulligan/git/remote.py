"""A repository somewhere else, always named by its literal URL."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from mulligan.git.askpass import access
from mulligan.git.repository import Repository

TRANSFER = timedelta(hours=1)
"""How long a transfer may take; a stalled one is given up after 30 s (http.lowSpeedTime)."""
GLANCE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Remote:
    """Where fetches come from and pushes go to."""

    url: str
    token: str | None = field(default=None, repr=False)

    def fetch(self, into: Repository, refspecs: Sequence[str]) -> None:
        """Fetch what the refspecs name, and the tags on it."""
        with access(self.url, self.token) as way:
            into.run(
                *("fetch", "-q", "--no-auto-maintenance", "--no-write-fetch-head"),
                *("--no-recurse-submodules", "--", self.url, *refspecs),
                patience=TRANSFER,
                access=way,
            )

    def tip(self, through: Repository, ref: str) -> str | None:
        """Read which commit a full ref names there; None where there is no such ref."""
        with access(self.url, self.token) as way:
            finished = through.run(
                "ls-remote", "-q", "--refs", "--", self.url, ref, patience=GLANCE, access=way
            )
        found = re.search(rf"^([0-9a-f]{{40,64}})\t{re.escape(ref)}$", finished.text, re.MULTILINE)
        return found[1] if found else None

    def tips(self, through: Repository, pattern: str) -> dict[str, str]:
        """Read which commits the refs of a pattern name there, such as refs/heads/*."""
        with access(self.url, self.token) as way:
            finished = through.run(
                "ls-remote", "-q", "--refs", "--", self.url, pattern, patience=GLANCE, access=way
            )
        found = re.findall(r"^([0-9a-f]{40,64})\t(\S+)$", finished.text, re.MULTILINE)
        return {name: sha for sha, name in found}

    def delete(self, through: Repository, ref: str, held: str) -> None:
        """Delete a full ref there, unless it is no longer `held`."""
        with access(self.url, self.token) as way:
            through.run(
                *("push", "--porcelain", "--no-verify", f"--force-with-lease={ref}:{held}"),
                *("--", self.url, f":{ref}"),
                patience=TRANSFER,
                access=way,
            )

    def push(self, source: Repository, sha: str, ref: str, held: str | None) -> None:
        """Make a full ref there be `sha`, unless it is no longer `held` (None: not there)."""
        with access(self.url, self.token) as way:
            source.run(
                *("push", "--porcelain", "--no-verify", "--no-recurse-submodules"),
                f"--force-with-lease={ref}:{held or ''}",
                *("--", self.url, f"{sha}:{ref}"),
                patience=TRANSFER,
                access=way,
            )
