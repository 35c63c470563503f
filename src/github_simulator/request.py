"""One request: who asks, for what, whether they may, and the fields of its body."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from github_simulator.json_shapes import RepositoryUrls
from github_simulator.records import Actor, Issue, Permission, Pull, Repository, User
from github_simulator.reply import ErrorReply, Json, Reply, forbidden, not_found, page_of
from github_simulator.world import World

T = TypeVar("T")

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def parse(body: bytes) -> JsonValue:
    """Parse a body of any kind."""
    try:
        return _JSON.validate_json(body or b"{}")
    except ValidationError:
        raise ErrorReply(400, "Problems parsing JSON") from None


def names(values: Sequence[JsonValue]) -> list[str]:
    """Read strings, or objects with a `name`."""
    found = list[str]()
    for value in values:
        name = value.get("name") if isinstance(value, dict) else value
        if not isinstance(name, str):
            raise ErrorReply(422, f"Invalid request.\n\n{value!r} is not a string.")
        found.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a body; what is missing or null reads as None."""

    values: dict[str, JsonValue]

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Read an object; no body at all is an empty one."""
        value = parse(body)
        if not isinstance(value, dict):
            raise ErrorReply(400, "Body should be a JSON object")
        return cls(value)

    def text(self, name: str) -> str | None:
        """Read a string."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not a string.")

    def required(self, name: str) -> str:
        """Read a string that must be there."""
        value = self.text(name)
        if value is None:
            raise ErrorReply(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')
        return value

    def flag(self, name: str) -> bool:
        """Read a boolean; missing means false."""
        return self.values.get(name) is True

    def number(self, name: str) -> int | None:
        """Read a whole number."""
        value = self.values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an integer.")

    def parts(self, name: str) -> list["Fields"]:
        """Read a list of objects; missing means an empty one."""
        value = self.values.get(name)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an array.")
        found = list[Fields]()
        for item in items:
            if not isinstance(item, dict):
                raise ErrorReply(422, f"Invalid request.\n\n{item!r} is not an object.")
            found.append(Fields(item))
        return found

    def names(self, name: str) -> list[str] | None:
        """Read a list of strings, or of objects with a `name`, as labels may be given."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, list):
            return names(value)
        raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an array.")


@dataclass(frozen=True, slots=True)
class ApiCall:
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

    def signed_in_user(self) -> User:
        """Give the user who asks; 401 without a token."""
        if self.user is None:
            raise ErrorReply(401, "Requires authentication")
        return self.user

    def repository(self) -> Repository:
        """Find the repository; 404 where the user may not see it, a redirect where renamed."""
        full_name = f"{self.params['owner']}/{self.params['repo']}".lower()
        found = self.world.repositories.get(full_name)
        former = self.world.former_names.get(full_name)
        if found is None and former:
            rest = self.path.split("/", 4)[4:]
            raise self.moved("/".join((f"{self.base}/repositories/{former.id}", *rest)))
        if found is None or not found.is_visible_to(self.user):
            raise not_found()
        return found

    def moved(self, url: str) -> ErrorReply:
        """Redirect: 301 for reading, 307 for anything else."""
        reading = self.method in {"GET", "HEAD"}
        status, words = (301, "Moved Permanently") if reading else (307, "Temporary Redirect")
        return ErrorReply(status, words, headers={"location": url}, url=url)

    @property
    def urls(self) -> RepositoryUrls:
        """Tell where the repository is reached."""
        return RepositoryUrls(self.base, self.repository())

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
            raise ErrorReply(410, "This issue was deleted")
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

    def actor(self, needed: Permission, refusal: Callable[[], ErrorReply] = forbidden) -> Actor:
        """Let the user change something, given the role for it."""
        by = Actor(self.signed_in_user(), self.repository(), self.world.stamps)
        if by.repository.archived:
            raise ErrorReply(403, "Repository was archived so is read-only.")
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
            raise ErrorReply(422, "The since parameter is not a valid ISO 8601 time.") from None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def page(self, items: Sequence[T], shape: Callable[[T], Json]) -> Reply:
        """Give the page of a list that was asked for."""
        _, _, rest = self.path.removeprefix("/repos/").partition("/")
        _, _, rest = rest.partition("/")
        # GitHub names the repository by its id in these addresses.
        address = f"{self.base}/repositories/{self.repository().id}/{rest}"
        return page_of(items, shape, self.query, address)


Handler = Callable[[ApiCall], Reply]
"""Answers a call; called with the world's lock held."""
