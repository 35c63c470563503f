"""How GitHub says no: one exception that carries the answer. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

DOCS = "https://docs.github.com/rest"


class Resource(StrEnum):
    """What GitHub calls the things that can be invalid."""

    COMMENT = "IssueComment"
    ISSUE = "Issue"
    LABEL = "Label"
    PULL = "PullRequest"
    REACTION = "Reaction"
    REVIEW = "PullRequestReview"


@dataclass(eq=False)
class Refused(Exception):  # noqa: N818 - it is an answer, not an error
    """An answer other than success; `errors` are the entries of a 422."""

    status: int
    message: str
    errors: Sequence[Mapping[str, str] | str] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""


def not_found() -> Refused:
    """Say that it is not there, or not for this user: GitHub does not tell them apart."""
    return Refused(404, "Not Found")


def no_rights() -> Refused:
    """Say that the user may read but not change this."""
    return Refused(403, "Must have admin rights to Repository.")


def invalid(resource: Resource, name: str, code: str = "invalid") -> Refused:
    """Name a field that is missing, invalid or taken."""
    return Refused(422, "Validation Failed", [{"resource": resource, "field": name, "code": code}])


def unprocessable(resource: Resource, message: str) -> Refused:
    """Say in words why a request that is well formed cannot be done."""
    return Refused(
        422, "Validation Failed", [{"resource": resource, "code": "custom", "message": message}]
    )
