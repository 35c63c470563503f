"""The parts of GitHub's answers that Mulligan reads; everything else is passed over. Pure."""

from collections.abc import Callable
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
)

A_SECOND = timedelta(seconds=1)

ANYTHING = TypeAdapter(object)


class Shape(BaseModel):
    """A fragment of an answer; a missing field is an error, an unknown one is not."""

    model_config = ConfigDict(frozen=True, extra="ignore")


def _words(value: object) -> object:
    return value if isinstance(value, str) else ""


Words = Annotated[str, BeforeValidator(_words)]


class Account(Shape):
    """A person, a bot or an organisation."""

    login: str = Field(min_length=1)
    id: int | None = None
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Tell whether a program acts here."""
        return self.type == "Bot" or self.login.endswith("[bot]")


class Label(Shape):
    """A label, by its name."""

    name: str


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


Labels = tuple[Annotated[Label, BeforeValidator(_named)], ...]
"""GitHub gives labels as objects, and in places as bare names."""


class IssueShape(Shape):
    """An issue; pull requests come as issues too, and have `pull_request`."""

    number: int
    title: str
    body: str | None = None
    user: Account | None = None
    state: str
    locked: bool = False
    labels: Labels = ()
    comments: int = 0
    pull_request: dict[str, object] | None = None
    html_url: str
    url: str


class CommentShape(Shape):
    """A comment on an issue."""

    id: int
    body: str | None = None
    user: Account | None = None
    created_at: AwareDatetime
    updated_at: AwareDatetime | None = None
    html_url: str
    issue_url: str

    @property
    def is_edited(self) -> bool:
        """Tell whether it was changed after it was written: GitHub's times are whole seconds."""
        # A server with finer ones may write the two a moment apart.
        return self.updated_at is not None and self.updated_at - self.created_at >= A_SECOND


class EventShape(Shape):
    """Something that happened to an issue; `actor` is None once the account was deleted."""

    id: int
    event: str
    actor: Account | None = None
    created_at: AwareDatetime
    label: Label | None = None
    url: str = ""


class PermissionShape(Shape):
    """What somebody may do: by role, or in the older words that know four steps only."""

    permission: str
    role_name: str | None = None
    user: Account | None = None


class HeadRepository(Shape):
    """The repository that a pull request comes from: this one, or a fork."""

    full_name: str


class Head(Shape):
    """The branch that a pull request comes from; `repo` is None once a fork was deleted."""

    ref: str
    repo: HeadRepository | None = None
    sha: str = ""


class BaseRepository(Shape):
    """The repository that a pull request goes to."""

    default_branch: str = ""


class Base(Shape):
    """The branch that a pull request goes to."""

    ref: str
    repo: BaseRepository | None = None


class PullShape(Shape):
    """A pull request."""

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
    """A review of a pull request; one that is not submitted yet has no time."""

    id: int
    user: Account | None = None
    body: Words = ""
    state: str
    submitted_at: AwareDatetime | None = None


class NoteShape(Shape):
    """A comment on a line; `line` is None once the line is not in the diff any more."""

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
    """What the asking account may do on a repository; of a token's own limits it says nothing."""

    push: bool = False


class RepositoryShape(Shape):
    """A repository."""

    full_name: str
    default_branch: str
    clone_url: str
    archived: bool = False
    has_issues: bool = True
    permissions: Rights | None = None


def _list(value: object) -> object:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - pydantic looks inside


class Problem(Shape):
    """One of the things that GitHub finds wrong with a request."""

    field: Words = ""
    code: Words = ""
    message: Words = ""


class Refusal(Shape):
    """The body of an answer that is an error; whatever it lacks is empty."""

    message: Words = ""
    errors: Annotated[tuple[OnErrorOmit[Problem | str], ...], BeforeValidator(_list)] = ()


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

LABELS = TypeAdapter(tuple[Label, ...])


def leads_to(url: str, path: str) -> bool:
    """Tell whether a URL of GitHub's is that of `path`, under whatever host and prefix."""
    return urlsplit(url).path.casefold().endswith(path.casefold())


class AppShape(Shape):
    """The GitHub App that made a check run."""

    slug: str


class OutputShape(Shape):
    """What a check run says of itself."""

    title: Words = ""
    summary: Words = ""
    text: Words = ""


class SuiteShape(Shape):
    """What a check run was started with: the run of one workflow."""

    id: int


class CheckRunShape(Shape):
    """A check run; it has a conclusion once it is completed."""

    id: int
    name: str
    status: str
    conclusion: str | None = None
    app: AppShape | None = None
    check_suite: SuiteShape | None = None
    output: OutputShape = OutputShape()


class StatusShape(Shape):
    """A commit status."""

    id: int
    context: str
    state: str
    description: Words = ""


class AnnotationShape(Shape):
    """What a check run says about a line."""

    path: Words = ""
    start_line: int | None = None
    annotation_level: Words = ""
    message: Words = ""


def _inside(key: str) -> Callable[[object], object]:
    """Take the list out of an object that counts it too."""

    def take(value: object) -> object:
        return value.get(key) if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - pydantic looks inside

    return take


CHECK_RUN = TypeAdapter(CheckRunShape)

CHECK_RUNS = TypeAdapter[tuple[CheckRunShape, ...]](
    Annotated[tuple[CheckRunShape, ...], BeforeValidator(_inside("check_runs"))]
)

STATUSES = TypeAdapter[tuple[StatusShape, ...]](
    Annotated[tuple[StatusShape, ...], BeforeValidator(_inside("statuses"))]
)

ANNOTATIONS = TypeAdapter(tuple[AnnotationShape, ...])
