"""One request on its way through the routes: who asks, for what, and whether they may."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from mulligan.domain.issue import Permission
from mulligan.simulator.fields import Fields
from mulligan.simulator.records import Doer, Issue, Pull, Repository, User
from mulligan.simulator.refused import Refused, no_rights, not_found
from mulligan.simulator.reply import Reply, page_of
from mulligan.simulator.shapes import Json, Place
from mulligan.simulator.world import World

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request; `base` is the address it came to, `user` is None without a token."""

    world: World
    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    base: str
    user: User | None
    token: str = ""

    @property
    def fields(self) -> Fields:
        """Read the body as a JSON object."""
        return Fields.read(self.body)

    def someone(self) -> User:
        """Give the user who asks; 401 without a token."""
        if self.user is None:
            raise Refused(401, "Requires authentication")
        return self.user

    def repository(self) -> Repository:
        """Find the repository; 404 where the user may not see it, a redirect where renamed."""
        full_name = f"{self.params['owner']}/{self.params['repo']}".lower()
        found = self.world.repositories.get(full_name)
        former = self.world.former_names.get(full_name)
        if found is None and former:
            rest = self.path.split("/", 4)[4:]
            raise self.moved("/".join((f"{self.base}/repositories/{former.id}", *rest)))
        if found is None or not found.may_be_seen_by(self.user):
            raise not_found()
        return found

    def moved(self, url: str) -> Refused:
        """Redirect: 301 for reading, 307 for anything else."""
        reading = self.method in {"GET", "HEAD"}
        status, words = (301, "Moved Permanently") if reading else (307, "Temporary Redirect")
        return Refused(status, words, headers={"location": url}, url=url)

    @property
    def place(self) -> Place:
        """Tell where the repository is reached."""
        return Place(self.base, self.repository())

    @property
    def number(self) -> int:
        """Read the number in the path; 404 where it is none."""
        text = self.params["number"]
        if not text.isdecimal():
            raise not_found()
        return int(text)

    def issue(self) -> Issue:
        """Find the issue or pull request; 410 where deleted, a redirect where transferred."""
        found = self.repository().issues.get(self.number)
        if found is None:
            raise not_found()
        if found.deleted:
            raise Refused(410, "This issue was deleted")
        if found.moved_to:
            full_name, number = found.moved_to
            there = f"{self.base}/repos/{full_name}/issues/{number}"
            raise self.moved(there)
        return found

    def pull(self) -> tuple[Issue, Pull]:
        """Find the pull request, as it stands with what was pushed by now."""
        repository = self.repository()
        self.world.follow_branches(repository)
        found = self.issue()
        if found.pull is None:
            raise not_found()
        return found, found.pull

    def doer(self, needed: Permission, refusal: Callable[[], Refused] = no_rights) -> Doer:
        """Let the user change something, given the role for it."""
        by = Doer(self.someone(), self.repository(), self.world.stamps)
        if by.repository.archived:
            raise Refused(403, "Repository was archived so is read-only.")
        if not by.may(needed):
            raise refusal()
        return by

    def since(self) -> datetime | None:
        """Read `since`; 422 where it is no time."""
        text = self.query.get("since")
        if not text:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise Refused(422, "The since parameter is not a valid ISO 8601 time.") from None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def page(self, items: Sequence[T], shape: Callable[[T], Json]) -> Reply:
        """Give the page of a list that was asked for."""
        _, _, rest = self.path.removeprefix("/repos/").partition("/")
        _, _, rest = rest.partition("/")
        # GitHub names the repository by its id in these addresses.
        address = f"{self.base}/repositories/{self.repository().id}/{rest}"
        return page_of(items, shape, self.query, address)


Handler = Callable[[Call], Reply]
"""Answers a call; called with the world's lock held."""
