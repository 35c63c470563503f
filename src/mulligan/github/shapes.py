"""Models of the parts of GitHub's answers that Mulligan reads; other fields are ignored. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    OnErrorOmit,
    TypeAdapter,
    ValidationError,
)

A_SECOND = timedelta(seconds=1)

ANYTHING = TypeAdapter(object)


class Shape(BaseModel):
    """Part of an answer: a missing field is an error, an unknown field is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _text_or_empty(value: object) -> object:
    return value if isinstance(value, str) else ""


Words = Annotated[str, BeforeValidator(_text_or_empty)]


class Account(Shape):
    """A user, bot or organisation."""

    login: str = Field(min_length=1)
    id: int | None = None
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Return whether the account is a bot."""
        return self.type == "Bot" or self.login.endswith("[bot]")


class Label(Shape):
    name: str
    node_id: str = ""


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


Labels = tuple[Annotated[Label, BeforeValidator(_named)], ...]
"""GitHub sends labels as objects, and in some answers as plain names."""


class DependenciesShape(Shape):
    """How many open issues block an issue (https://docs.github.com/rest/issues/issue-dependencies)."""

    blocked_by: int = 0


class IssueShape(Shape):
    """An issue; GitHub lists pull requests as issues too, with `pull_request`."""

    number: int
    title: str
    body: str | None = None
    body_html: str | None = None
    user: Account | None = None
    state: str
    locked: bool = False
    labels: Labels = ()
    comments: int = 0
    pull_request: dict[str, object] | None = None
    issue_dependencies_summary: DependenciesShape | None = None
    html_url: str
    url: str
    node_id: str = ""


class CommentShape(Shape):
    id: int
    body: str | None = None
    body_html: str | None = None
    user: Account | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime | None = None
    html_url: str
    issue_url: str
    node_id: str = ""

    @property
    def is_edited(self) -> bool:
        """Return whether it was edited a second or more after its creation."""
        # GitHub's times are whole seconds; a server with finer ones may write the two a moment
        # apart.
        return self.updated_at is not None and self.updated_at - self.created_at >= A_SECOND


class EventShape(Shape):
    """An event of an issue; `actor` is None if the account was deleted."""

    id: int
    event: str
    actor: Account | None = None
    created_at: AwareDatetime
    label: Label | None = None
    reviewer: Account | None = Field(default=None, alias="requested_reviewer")
    assignee: Account | None = None
    url: str = ""


class PermissionShape(Shape):
    """An account's permission: by role, and by the older names, which have four levels only."""

    permission: str
    role_name: str | None = None
    user: Account | None = None


class HeadRepository(Shape):
    """The repository that a pull request comes from: this one, or a fork."""

    full_name: str


class Head(Shape):
    """The branch that a pull request comes from; `repo` is None if the fork was deleted."""

    ref: str
    repo: HeadRepository | None = None
    sha: str = ""


class BaseRepository(Shape):
    """The repository that a pull request merges into."""

    default_branch: str = ""


class Base(Shape):
    """The branch that a pull request merges into."""

    ref: str
    repo: BaseRepository | None = None


class PullShape(Shape):
    number: int
    title: str
    body: str | None = None
    user: Account | None = None
    head: Head
    labels: Labels = ()
    requested_reviewers: tuple[Account, ...] = ()
    html_url: str
    url: str
    base: Base | None = None
    state: str = "open"
    merged_at: AwareDatetime | None = None
    created_at: AwareDatetime | None = None
    updated_at: AwareDatetime | None = None
    draft: bool = False
    node_id: str = ""
    mergeable_state: Words = ""


class ReviewShape(Shape):
    """A review of a pull request; a pending one has no time."""

    id: int
    user: Account | None = None
    body: Words = ""
    state: str
    submitted_at: AwareDatetime | None = None


class NoteShape(Shape):
    """A comment on a line; `line` is None if the line has left the diff."""

    id: int
    review: int | None = Field(default=None, alias="pull_request_review_id")
    in_reply_to_id: int | None = None
    user: Account | None = None
    body: Words = ""
    path: str
    line: int | None = None
    original_line: int | None = None
    side: str | None = None
    diff_hunk: Words = ""


class Rights(Shape):
    """The account's permissions on a repository; a token may have fewer."""

    push: bool = False


class RepositoryShape(Shape):
    full_name: str
    default_branch: str
    clone_url: str
    archived: bool = False
    has_issues: bool = True
    private: bool = False
    permissions: Rights | None = None


def _list(value: object) -> object:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - pydantic validates it


class Problem(Shape):
    """One error in GitHub's answer to an invalid request."""

    field: Words = ""
    code: Words = ""
    message: Words = ""


class Refusal(Shape):
    """The body of an error answer; missing fields are empty."""

    message: Words = ""
    errors: Annotated[tuple[OnErrorOmit[Problem | str], ...], BeforeValidator(_list)] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """GitHub's response to one request; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def ok(self) -> bool:
        """Return whether the request succeeded."""
        return 200 <= self.status < 300  # noqa: PLR2004 - HTTP status classes

    @property
    def refusal(self) -> Refusal | None:
        """Return the body as that of an error; None if it is not a JSON object."""
        try:
            return Refusal.model_validate_json(self.body)
        except ValidationError:
            return None

    @property
    def sentences(self) -> list[str]:
        """Return `message` and `errors` of an error answer, in any of the shapes GitHub uses."""
        if (refusal := self.refusal) is None:
            return []
        found = [refusal.message]
        for error in refusal.errors:
            parts = [error] if isinstance(error, str) else [error.field, error.code, error.message]
            found.append(" ".join(part for part in parts if part))
        return [text for text in found if text]

    def says(self, *words: str) -> bool:
        """Return whether an error answer has one of these words, in any case."""
        text = " ".join(self.sentences).lower()
        return any(word in text for word in words)


ISSUE = TypeAdapter(IssueShape)

ISSUES = TypeAdapter(tuple[IssueShape, ...])

COMMENT = TypeAdapter(CommentShape)

COMMENTS = TypeAdapter(tuple[CommentShape, ...])

EVENTS = TypeAdapter(tuple[EventShape, ...])

PERMISSION = TypeAdapter(PermissionShape)

PULL = TypeAdapter(PullShape)

NOTE = TypeAdapter(NoteShape)

NOTES = TypeAdapter(tuple[NoteShape, ...])

REVIEWS = TypeAdapter(tuple[ReviewShape, ...])

PULLS = TypeAdapter(tuple[PullShape, ...])

REPOSITORY = TypeAdapter(RepositoryShape)

ACCOUNT = TypeAdapter(Account)

LABEL, LABELS = TypeAdapter(Label), TypeAdapter(tuple[Label, ...])


def leads_to(url: str, path: str) -> bool:
    """Return whether a URL from GitHub ends in `path`, with any host and prefix."""
    return urlsplit(url).path.casefold().endswith(path.casefold())


class AppShape(Shape):
    """The GitHub App that made a check run."""

    slug: str


class OutputShape(Shape):
    """The output of a check run."""

    title: Words = ""
    summary: Words = ""
    text: Words = ""


class SuiteShape(Shape):
    """The check suite of a check run: the run of one workflow."""

    id: int


class CheckRunShape(Shape):
    """A check run; it has a conclusion once it is completed."""

    id: int
    name: str
    status: str
    external_id: Words = ""
    conclusion: str | None = None
    started_at: AwareDatetime | None = None
    completed_at: AwareDatetime | None = None
    app: AppShape | None = None
    check_suite: SuiteShape | None = None
    output: OutputShape = OutputShape()


class StatusShape(Shape):
    """A commit status."""

    id: int
    context: str
    state: str
    description: Words = ""
    updated_at: AwareDatetime | None = None


class AnnotationShape(Shape):
    """An annotation of a check run on a line."""

    path: Words = ""
    start_line: int | None = None
    annotation_level: Words = ""
    message: Words = ""


def _inside(key: str) -> Callable[[object], object]:
    """Return a validator that takes the list out of an object that also has a count."""

    def take(value: object) -> object:
        return value.get(key) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - likewise

    return take


CHECK_RUN = TypeAdapter(CheckRunShape)

CHECK_RUNS = TypeAdapter[tuple[CheckRunShape, ...]](
    Annotated[tuple[CheckRunShape, ...], BeforeValidator(_inside("check_runs"))]
)

STATUSES = TypeAdapter[tuple[StatusShape, ...]](
    Annotated[tuple[StatusShape, ...], BeforeValidator(_inside("statuses"))]
)

ANNOTATIONS = TypeAdapter(tuple[AnnotationShape, ...])


def same_text(body: str | None, text: str) -> bool:
    """Return whether a text on GitHub equals another, ignoring line endings and outer blanks."""
    return (body or "").replace("\r\n", "\n").strip() == text.strip()
