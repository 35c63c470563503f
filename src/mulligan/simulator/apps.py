"""The GitHub Apps of the simulated GitHub, and the tokens that act for their installations."""

from dataclasses import dataclass, field
from datetime import datetime

from mulligan.simulator.records import User
from mulligan.simulator.refused import Refused


@dataclass(frozen=True, slots=True)
class App:
    """An app, the account that its comments bear, and where it is installed; names in lower case.

    `public_key` is in PEM form, the other half of the key that GitHub gives once.
    """

    id: int
    user: User
    public_key: str
    installation: int
    repositories: frozenset[str]

    @property
    def slug(self) -> str:
        """Give the name of its page."""
        return self.user.login.removesuffix("[bot]")


@dataclass(frozen=True, slots=True)
class Grant:
    """What one token is good for, and until when."""

    until: datetime
    repositories: frozenset[str]

    def check(self, path: str, now: datetime) -> None:
        """Refuse a request that comes too late, or is for another repository."""
        if self.until <= now:
            raise Refused(401, "Bad credentials")
        root, _, rest = path.lstrip("/").partition("/")
        named = "/".join(rest.lower().split("/")[:2])
        if root == "repos" and named not in self.repositories:
            raise Refused(403, "Resource not accessible by integration")


@dataclass(slots=True)
class Apps:
    """All apps by their id, all their tokens, and manifests by the code of each."""

    known: dict[str, App] = field(default_factory=dict[str, App])
    grants: dict[str, Grant] = field(default_factory=dict[str, Grant])
    manifests: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, app: App) -> None:
        """Make an app known."""
        self.known[str(app.id)] = app
