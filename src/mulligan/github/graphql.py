"""GraphQL for what REST lacks: edits of texts, the token's account, joined writes. Pure."""

from collections.abc import Collection, Iterable
from typing import TypeVar

from pydantic import AwareDatetime, Field, OnErrorOmit, TypeAdapter, ValidationError

from mulligan.domain.errors import ForbiddenError, UnavailableError, WorldError
from mulligan.github.answers import (
    MAX_MESSAGE_CHARS,
    NotFoundError,
    parsed,
)
from mulligan.github.retries import GRAPHQL_FAILURE, GRAPHQL_LIMIT, TransientError, retry_after
from mulligan.github.shapes import Account, Answer, Label, Shape, Words, same_text
from mulligan.text.escape import one_line

T = TypeVar("T")

UNDEFINED_FIELD = "undefinedField"
"""The code of GitHub's error for a field that an older server does not have."""

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
"""Reads the edits of an issue's text, page by page; the events have those of the title."""

COMMENT_EDITS_QUERY = """\
query($id: ID!) {
  node(id: $id) {
    ... on IssueComment {
      databaseId
      body
      author { __typename login ... on User { databaseId } }
      lastEditedAt
      editor { __typename login ... on User { databaseId } }
      userContentEdits(first: 100) {
        pageInfo { hasNextPage endCursor }
        nodes { editedAt editor { __typename login ... on User { databaseId } } }
      }
    }
  }
}"""
"""A comment with its last edits, newest first."""

CLOSERS_FRAGMENT = """
fragment Closers on Issue {
  number
  updatedAt
  closedByPullRequestsReferences(first: 20) {
    nodes {
      number
      url
      state
      isDraft
      headRefName
      headRepository { nameWithOwner }
      author { __typename login ... on User { databaseId } }
    }
  }
}"""


def closers_query(numbers: Iterable[int]) -> str:
    """Return the query for the pull requests that close each of some issues."""
    issues = "\n".join(f"    i{each}: issue(number: {each}) {{ ...Closers }}" for each in numbers)
    return (
        "query($owner: String!, $name: String!) {\n"
        f"  repository(owner: $owner, name: $name, followRenames: false) {{\n{issues}\n  }}\n}}"
        f"{CLOSERS_FRAGMENT}"
    )


VIEWER_QUERY = "query { viewer { __typename login } }"
"""Reads the account of a token; REST does not return it for an App's token."""


READY_MUTATION = """\
mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) {
    pullRequest { number isDraft }
  }
}"""
"""Marks a draft as ready for review; REST ignores `draft: false` in an update."""


SHOW_STAGE_MUTATION = """\
mutation(
  $issue: ID!, $comment: ID!, $body: String!
  $add: [ID!]!, $adds: Boolean!, $remove: [ID!]!, $removes: Boolean!
) {
  added: addLabelsToLabelable(input: {labelableId: $issue, labelIds: $add}) @include(if: $adds) {
    labelable { labels(first: 100) { nodes { name } } }
  }
  removed: removeLabelsFromLabelable(
    input: {labelableId: $issue, labelIds: $remove}
  ) @include(if: $removes) {
    labelable { labels(first: 100) { nodes { name } } }
  }
  edited: updateIssueComment(input: {id: $comment, body: $body}) {
    issueComment { databaseId body }
  }
}"""
"""Changes the labels of an issue and a comment. GraphQL carries out mutations one after another."""


class Actor(Shape):
    """An account; GraphQL omits the `[bot]` that REST adds to an App's login."""

    kind: str = Field(alias="__typename")
    login: str = Field(min_length=1)
    number: int | None = Field(default=None, alias="databaseId")

    @property
    def account(self) -> Account:
        """Return the account as REST has it."""
        suffix = "" if self.kind != "Bot" or self.login.endswith("[bot]") else "[bot]"
        return Account(login=f"{self.login}{suffix}", id=self.number, type=self.kind)


class Change(Shape):
    """One edit of a text; `editor` is None if the account was deleted."""

    at: AwareDatetime = Field(alias="editedAt")
    editor: Actor | None = None


class PageInfo(Shape):
    """Whether there is a next page, and its cursor."""

    more: bool = Field(alias="hasNextPage")
    end: str | None = Field(default=None, alias="endCursor")


class Changes(Shape):
    """One page of edits."""

    page: PageInfo = Field(alias="pageInfo")
    nodes: tuple[Change, ...]


class History(Shape):
    """The edits of an issue's text; GitHub lists its creation as one, once there is another."""

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


class CommentText(Shape):
    """The text of a comment, and who edited it last."""

    number: int = Field(alias="databaseId")
    body: str
    author: Actor | None = None
    last: AwareDatetime | None = Field(alias="lastEditedAt")
    editor: Actor | None = None
    changes: Changes = Field(alias="userContentEdits")


class _Node(Shape):
    node: CommentText


class CommentEditsAnswer(Shape):
    """The answer to COMMENT_EDITS_QUERY."""

    data: _Node


class _HeadRepository(Shape):
    name: str = Field(alias="nameWithOwner")


class CloserShape(Shape):
    """A pull request that closes an issue when it is merged."""

    number: int
    url: str
    state: str
    is_draft: bool = Field(alias="isDraft")
    branch: str = Field(alias="headRefName")
    head: _HeadRepository | None = Field(alias="headRepository")
    author: Actor | None


class _Closing(Shape):
    nodes: tuple[CloserShape, ...]


class ClosersOfIssue(Shape):
    """The pull requests that close an issue, also merged ones."""

    number: int
    updated_at: AwareDatetime = Field(alias="updatedAt")
    closing: _Closing = Field(alias="closedByPullRequestsReferences")


class _ClosersOfIssues(Shape):
    repository: dict[str, ClosersOfIssue]


class ClosersAnswer(Shape):
    """The answer to `closers_query`, by the alias of each issue."""

    data: _ClosersOfIssues


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


class _Written(Shape):
    number: int = Field(alias="databaseId")
    body: str


class _Edited(Shape):
    comment: _Written = Field(alias="issueComment")


class _Labels(Shape):
    nodes: tuple[Label, ...]


class _Labelable(Shape):
    labels: _Labels


class _Labelled(Shape):
    labelable: _Labelable


class _Stage(Shape):
    edited: _Edited
    added: _Labelled | None = None


class StageAnswer(Shape):
    """The answer to SHOW_STAGE_MUTATION."""

    data: _Stage

    def shows(self, comment: str, text: str, labels: Collection[str]) -> bool:
        """Return whether the comment has the text, and the issue the labels that were added."""
        added = self.data.added
        carried = {label.name.casefold() for label in added.labelable.labels.nodes} if added else ()
        written = self.data.edited.comment
        is_added = {name.casefold() for name in labels} <= set(carried)
        return is_added and str(written.number) == comment and same_text(written.body, text)


class _Extensions(Shape):
    code: Words = ""


class _Problem(Shape):
    type: Words = ""
    message: Words = ""
    extensions: _Extensions = _Extensions()


class _Problems(Shape):
    errors: tuple[OnErrorOmit[_Problem], ...] = ()


EDITS = TypeAdapter(EditsAnswer)
COMMENT_EDITS = TypeAdapter(CommentEditsAnswer)
CLOSERS = TypeAdapter(ClosersAnswer)
VIEWER = TypeAdapter(ViewerAnswer)
READY = TypeAdapter(ReadyAnswer)
STAGE = TypeAdapter(StageAnswer)


def answered(shape: TypeAdapter[T], answer: Answer, right: str = "to read issues") -> T:
    """Validate a GraphQL answer, which reports errors with status 200.

    `right` is the permission that the query needs, for the error.
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
    if UNDEFINED_FIELD in {problem.extensions.code for problem in problems}:
        return NotFoundError(f"This server's GraphQL lacks a field ({problems[0].message}).")
    text = one_line("; ".join(problem.message for problem in problems), MAX_MESSAGE_CHARS).rstrip(
        "."
    )
    if GRAPHQL_LIMIT in kinds:
        message = f"GitHub's rate limit stopped {request}; Mulligan continues when it resets."
        return TransientError(message, retry_after(answer))
    if kinds & {"FORBIDDEN", "INSUFFICIENT_SCOPES"}:
        message = f"GitHub forbids {request} ({text}); the token needs {right}."
        return ForbiddenError(message)
    if text.startswith(GRAPHQL_FAILURE):
        return TransientError(f"GitHub failed at {request} ({text}); try again later.")
    return UnavailableError(f"GitHub did not answer {request} ({text}); try again later.")
