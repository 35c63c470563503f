"""GitHub's answers: JSON, errors, pages of lists and ETags. Pure."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self, TypeVar
from urllib.parse import urlencode

T = TypeVar("T")

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

Shape = dict[str, Json]

DOCS = "https://docs.github.com/rest"

NOT_MODIFIED = 304

PER_PAGE = 30

MAX_PER_PAGE = 100


@dataclass(eq=False)
class ErrorReply(Exception):  # noqa: N818 - an answer, not an error
    """An answer other than success; `errors` are the entries of a 422."""

    status: int
    message: str
    errors: Sequence[Mapping[str, str] | str] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer before it is sent: JSON, a `page` for a browser, or the `content` of a file."""

    status: int
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    page: str = ""
    content: bytes = b""

    @property
    def raw(self) -> bytes:
        """Return the body in bytes."""
        if self.body is None:
            return self.content or self.page.encode()
        return json.dumps(self.body, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def of(cls, refused: ErrorReply) -> Self:
        """Return an error in GitHub's format."""
        body: Shape = {"message": refused.message}
        if refused.errors:
            body["errors"] = list(refused.errors)
        if refused.url:
            body["url"] = refused.url
        body["documentation_url"] = DOCS
        body["status"] = str(refused.status)
        return cls(refused.status, body, refused.headers)


# GitHub's errors.


class Resource(StrEnum):
    """GitHub's names of the things that can be invalid."""

    COMMENT = "IssueComment"
    ISSUE = "Issue"
    LABEL = "Label"
    PULL = "PullRequest"
    REACTION = "Reaction"
    REVIEW = "PullRequestReview"


def not_found() -> ErrorReply:
    """Return the error for an object that does not exist or that the user may not see."""
    return ErrorReply(404, "Not Found")


def forbidden() -> ErrorReply:
    """Return the error for a user who may read but not change this."""
    return ErrorReply(403, "Must have admin rights to Repository.")


def invalid(resource: Resource, name: str, code: str = "invalid") -> ErrorReply:
    """Return the error for a field that is missing, invalid or taken."""
    return ErrorReply(
        422, "Validation Failed", [{"resource": resource, "field": name, "code": code}]
    )


def unprocessable(resource: Resource, message: str) -> ErrorReply:
    """Return the error for a valid request that cannot be done, with the reason."""
    return ErrorReply(
        422, "Validation Failed", [{"resource": resource, "code": "custom", "message": message}]
    )


# Pages of a list, and ETags.


def page_of(
    items: Sequence[T], shape: Callable[[T], Json], query: Mapping[str, str], address: str
) -> Reply:
    """Return one page of a list, with a Link header to the others."""
    per_page = min(_number(query.get("per_page"), PER_PAGE), MAX_PER_PAGE)
    page = _number(query.get("page"), 1)
    last = max(1, -(-len(items) // per_page))
    shown = items[(page - 1) * per_page : page * per_page]
    return Reply(200, [shape(item) for item in shown], links(query, address, page, last))


def links(query: Mapping[str, str], address: str, page: int, last: int) -> dict[str, str]:
    """Return the Link header; none for a list of one page."""
    targets = dict[str, int]()
    if page > 1:
        targets["prev"] = min(page - 1, last)
    if page < last:
        targets.update(next=page + 1, last=last)
    if page > 1:
        targets["first"] = 1
    parts = [
        f'<{address}?{urlencode({**query, "page": number})}>; rel="{relation}"'
        for relation, number in targets.items()
    ]
    return {"link": ", ".join(parts)} if parts else {}


def _number(text: str | None, default: int) -> int:
    """Parse a positive number; like GitHub, use the default for anything else."""
    return int(text) if text and text.isdecimal() and int(text) > 0 else default


def etag(raw: bytes, token: str) -> str:
    """Return the ETag of a body; GitHub's differ from token to token."""
    digest = hashlib.sha256(token.encode() + b"\0" + raw).hexdigest()
    return f'W/"{digest}"'


def matches(if_none_match: str, current: str) -> bool:
    """Return whether a request's ETags match the current one, by weak comparison."""
    wanted = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return "*" in wanted or current.removeprefix("W/") in wanted


# The record of requests.


class Request(NamedTuple):
    """An answered request; `counted` is whether it counted towards the rate limit."""

    method: str
    path: str
    status: int
    counted: bool


class Exchange(NamedTuple):
    """A request and its answer in full."""

    request: Request
    query: Mapping[str, str]
    sent: bytes
    answered: bytes
