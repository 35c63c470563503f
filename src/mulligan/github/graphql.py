"""What only GraphQL tells: who changed the text of an issue, and whom a token acts as. Pure."""

from typing import TypeVar

from pydantic import AwareDatetime, Field, OnErrorOmit, TypeAdapter, ValidationError

from mulligan.domain.errors import UnavailableError, WorldError
from mulligan.github.answers import (
    MAX_MESSAGE_CHARS,
    Answer,
    ForbiddenError,
    TransientError,
    parsed,
    retry_after,
)
from mulligan.github.shapes import Account, Shape, Words
from mulligan.text.escape import one_line

T = TypeVar("T")

EDITS_QUERY = """\
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name, followRenames: false) {
    nameWithOwner
    issue(number: $number) {
      number
      author { __typename login ... on User { databaseId } }
      lastEditedAt
      includesCreatedEdit
      editor { __typename login ... on User { databaseId } }
      userContentEdits(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { editedAt editor { __typename login ... on User { databaseId } } }
      }
    }
  }
}"""
"""The changes of an issue's text, page by page; those of its title are events."""

VIEWER_QUERY = "query { viewer { __typename login } }"
"""Whom a token acts as; REST does not tell the token of an app."""


READY_MUTATION = """\
mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) {
    pullRequest { number isDraft }
  }
}"""
"""Ends a draft; REST takes `draft: false` of a change, and passes it over."""


class Actor(Shape):
    """An account as GraphQL gives it: an app's bot without the `[bot]` that it has elsewhere."""

    kind: str = Field(alias="__typename")
    login: str = Field(min_length=1)
    number: int | None = Field(default=None, alias="databaseId")

    @property
    def account(self) -> Account:
        """Give it as REST does."""
        suffix = "" if self.kind != "Bot" or self.login.endswith("[bot]") else "[bot]"
        return Account(login=f"{self.login}{suffix}", id=self.number, type=self.kind)


class Change(Shape):
    """One change of a text; `editor` is None once the account was deleted."""

    at: AwareDatetime = Field(alias="editedAt")
    editor: Actor | None = None


class PageInfo(Shape):
    """Whether there is more, and where."""

    more: bool = Field(alias="hasNextPage")
    end: str | None = Field(default=None, alias="endCursor")


class Changes(Shape):
    """One page of changes."""

    page: PageInfo = Field(alias="pageInfo")
    nodes: tuple[Change, ...]


class History(Shape):
    """What is known of an issue's text; the creation is a change too, once there is another."""

    number: int
    author: Actor | None = None
    last: AwareDatetime | None = Field(alias="lastEditedAt")
    editor: Actor | None = None
    has_creation: bool = Field(alias="includesCreatedEdit")
    changes: Changes = Field(alias="userContentEdits")


class _Repository(Shape):
    name: str = Field(alias="nameWithOwner")
    issue: History


class _Edits(Shape):
    repository: _Repository


class EditsAnswer(Shape):
    """The answer to EDITS_QUERY."""

    data: _Edits


class _Viewer(Shape):
    viewer: Actor


class ViewerAnswer(Shape):
    """The answer to VIEWER_QUERY."""

    data: _Viewer


class _Ready(Shape):
    number: int
    is_draft: bool = Field(alias="isDraft")


class _Marked(Shape):
    pull: _Ready = Field(alias="pullRequest")


class _Marking(Shape):
    marked: _Marked = Field(alias="markPullRequestReadyForReview")


class ReadyAnswer(Shape):
    """The answer to READY_MUTATION."""

    data: _Marking


class _Problem(Shape):
    type: Words = ""
    message: Words = ""


class _Problems(Shape):
    errors: tuple[OnErrorOmit[_Problem], ...] = ()


EDITS = TypeAdapter(EditsAnswer)
VIEWER = TypeAdapter(ViewerAnswer)
READY = TypeAdapter(ReadyAnswer)


def answered(shape: TypeAdapter[T], answer: Answer, right: str = "to read issues") -> T:
    """Read an answer of GraphQL's, which says with status 200 that something went wrong.

    `right` is what the token needs for the question.
    """
    request = "POST /graphql"
    if answer.ok and (wrong := _problem(answer, request, right)):
        raise wrong
    return parsed(shape, answer, request)


def _problem(answer: Answer, request: str, right: str) -> WorldError | None:
    try:
        problems = _Problems.model_validate_json(answer.body).errors
    except ValidationError:
        return None
    if not problems:
        return None
    kinds = {problem.type for problem in problems}
    said = one_line("; ".join(problem.message for problem in problems), MAX_MESSAGE_CHARS).rstrip(
        "."
    )
    if "RATE_LIMITED" in kinds:
        message = f"GitHub's rate limit stopped {request}; Mulligan continues when it resets."
        return TransientError(message, retry_after(answer))
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        message = f"GitHub forbids {request} ({said}); the token needs {right}."
        return ForbiddenError(message)
    if said.startswith("Something went wrong"):
        return TransientError(f"GitHub failed at {request} ({said}); try again later.")
    return UnavailableError(f"GitHub did not answer {request} ({said}); try again later.")
