"""One request: its user, repository and permissions, and the fields of its body."""

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
    """Parse a JSON body of any type."""
    try:
        return _JSON.validate_json(body or b"{}")
    except ValidationError:
        raise ErrorReply(400, "Problems parsing JSON") from None


def names(values: Sequence[JsonValue]) -> list[str]:
    """Return the names in a list of strings, or of objects with a `name`."""
    found = list[str]()
    for value in values:
        name = value.get("name") if isinstance(value, dict) else value
        if not isinstance(name, str):
            raise ErrorReply(422, f"Invalid request.\n\n{value!r} is not a string.")
        found.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a body; a missing or null field reads as None."""

    values: dict[str, JsonValue]

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Parse an object; no body counts as an empty one."""
        value = parse(body)
        if not isinstance(value, dict):
            raise ErrorReply(400, "Body should be a JSON object")
        return cls(value)

    def text(self, name: str) -> str | None:
        """Return a string."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not a string.")

    def required(self, name: str) -> str:
        """Return a required string."""
        value = self.text(name)
        if value is None:
            raise ErrorReply(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if missing."""
        return self.values.get(name) is True

    def number(self, name: str) -> int | None:
        """Return an integer."""
        value = self.values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an integer.")

    def part(self, name: str) -> "Fields":
        """Return an object; an empty one if missing."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an object.")
        return Fields(value)

    def parts(self, name: str) -> list["Fields"]:
        """Return a list of objects; empty if missing."""
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
        """Return a list of strings, or the names of objects, as GitHub accepts for labels."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, list):
            return names(value)
        raise ErrorReply(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an array.")


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request; `base` is the server's address, `user` is None without a token."""

    world: World
    method: str
    path: str
    params: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    base: str
    user: User | None = None
    token: str = ""

    @property
    def fields(self) -> Fields:
        """Return the fields of the JSON body."""
        return Fields.read(self.body)

    def signed_in_user(self) -> User:
        """Return the authenticated user; 401 without a token."""
        if self.user is None:
            raise ErrorReply(401, "Requires authentication")
        return self.user

    def repository(self) -> Repository:
        """Return the repository; 404 if the user may not see it, a redirect if it was renamed."""
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
        """Return a redirect: 301 for reading, 307 for anything else."""
        reading = self.method in {"GET", "HEAD"}
        status, words = (301, "Moved Permanently") if reading else (307, "Temporary Redirect")
        return ErrorReply(status, words, headers={"location": url}, url=url)

    @property
    def urls(self) -> RepositoryUrls:
        """Return the repository's addresses."""
        return RepositoryUrls(self.base, self.repository())

    @property
    def number(self) -> int:
        """Return the number in the path; 404 if it is invalid."""
        text = self.params["number"]
        if not text.isdecimal():
            raise not_found()
        return int(text)

    def issue(self) -> Issue:
        """Return the issue or pull request; 410 if deleted, a redirect if transferred."""
        found = self.repository().issues.get(self.number)
        if found is None:
            raise not_found()
        if found.deleted:
            raise ErrorReply(410, "This issue was deleted")
        if found.moved_to:
            full_name, number = found.moved_to
            raise self.moved(f"{self.base}/repos/{full_name}/issues/{number}")
        return found

    def pull(self) -> tuple[Issue, Pull]:
        """Return the pull request, with all pushes applied."""
        repository = self.repository()
        self.world.follow_branches(repository)
        found = self.issue()
        if found.pull is None:
            raise not_found()
        return found, found.pull

    def actor(self, needed: Permission, refusal: Callable[[], ErrorReply] = forbidden) -> Actor:
        """Return the user as an actor; refuse one whose role is below `needed`."""
        by = Actor(self.signed_in_user(), self.repository(), self.world.stamps)
        if by.repository.archived:
            raise ErrorReply(403, "Repository was archived so is read-only.")
        if not by.may(needed):
            raise refusal()
        return by

    def since(self) -> datetime | None:
        """Return `since`; 422 if it is no time."""
        text = self.query.get("since")
        if not text:
            return None
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise ErrorReply(422, "The since parameter is not a valid ISO 8601 time.") from None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def page(self, items: Sequence[T], shape: Callable[[T], Json]) -> Reply:
        """Return the requested page of a list."""
        _, _, rest = self.path.removeprefix("/repos/").partition("/")
        _, _, rest = rest.partition("/")
        # GitHub's links name the repository by its id.
        address = f"{self.base}/repositories/{self.repository().id}/{rest}"
        return page_of(items, shape, self.query, address)


Handler = Callable[[ApiCall], Reply]
"""Answers a call; called with the world's lock held."""
