"""The acts of people over GitHub's API, on the simulated GitHub or on `emulate`."""

from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

import requests
from pydantic import BaseModel, Field, JsonValue, TypeAdapter

from mulligan.domain.issue import IssueRef
from mulligan.github.shapes import (
    ANYTHING,
    COMMENT,
    COMMENTS,
    ISSUE,
    PULLS,
    CommentShape,
    IssueShape,
    PullShape,
)
from world.place import MAINTAINER

T = TypeVar("T")


class Target(BaseModel):
    sha: str


class Reference(BaseModel):
    """The commit of a branch."""

    target: Target = Field(alias="object")


REFERENCE = TypeAdapter(Reference)


def token_of(login: str) -> str:
    return f"token-of-{login}"


@dataclass(frozen=True)
class GitHubUsers:
    """The users with a token on the server at `url`, by login."""

    url: str

    def send(
        self, method: str, path: str, body: JsonValue = None, by: str = MAINTAINER
    ) -> requests.Response:
        """Send a request as somebody, whatever comes of it."""
        signed = {"authorization": f"Bearer {token_of(by)}"}
        return requests.request(method, self.url + path, json=body, headers=signed, timeout=120)

    def ask(
        self,
        shape: TypeAdapter[T],
        method: str,
        path: str,
        body: JsonValue = None,
        by: str = MAINTAINER,
    ) -> T:
        """Send a request as somebody; anything but success fails the test."""
        done = self.send(method, path, body, by)
        assert done.ok, f"{method} {path}: {done.text}"
        return shape.validate_json(done.content)

    def read(self, ref: IssueRef) -> IssueShape:
        return self.ask(ISSUE, "GET", path_of(ref))

    def labels(self, ref: IssueRef) -> list[str]:
        return [label.name for label in self.read(ref).labels]

    def comments(self, ref: IssueRef) -> list[CommentShape]:
        return [*self.ask(COMMENTS, "GET", f"{path_of(ref)}/comments?per_page=100")]

    def pulls(self, repository: str) -> list[PullShape]:
        return [*self.ask(PULLS, "GET", f"/repos/{repository}/pulls?state=all")]

    def issue(self, repository: str, title: str, *, by: str = "zoe", **more: JsonValue) -> IssueRef:
        opened = self.ask(
            ISSUE, "POST", f"/repos/{repository}/issues", {"title": title, **more}, by
        )
        return IssueRef(repository, opened.number)

    def comment(self, ref: IssueRef, body: str, by: str = MAINTAINER) -> int:
        return self.ask(COMMENT, "POST", f"{path_of(ref)}/comments", {"body": body}, by).id

    def label(self, ref: IssueRef, name: str = "mulligan", by: str = MAINTAINER) -> IssueRef:
        self.ask(ANYTHING, "POST", f"{path_of(ref)}/labels", {"labels": [name]}, by)
        return ref

    def unlabel(self, ref: IssueRef, name: str = "mulligan", by: str = MAINTAINER) -> None:
        self.ask(ANYTHING, "DELETE", f"{path_of(ref)}/labels/{quote(name, safe='')}", None, by)

    def review(self, pull: IssueRef, words: str, by: str = "wes") -> None:
        """Request changes."""
        where = f"/repos/{pull.repository}/pulls/{pull.number}/reviews"
        self.ask(ANYTHING, "POST", where, {"event": "REQUEST_CHANGES", "body": words}, by)


def path_of(ref: IssueRef) -> str:
    return f"/repos/{ref.repository}/issues/{ref.number}"
