"""A tracker of one issue from a file, for a rehearsal without GitHub."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime

from mulligan.config.policy import Labels
from mulligan.domain.command import CommandBatch
from mulligan.domain.errors import GoneError, UnavailableError
from mulligan.domain.feedback import CheckRun, OpenPull, PullState, Review
from mulligan.domain.in_hand import Closers
from mulligan.domain.issue import (
    AuthorisingAct,
    Edit,
    Issue,
    IssueRef,
    Objection,
    OperatorAct,
    RepositoryFacts,
)
from mulligan.domain.restoration import FoundWork
from mulligan.domain.status import IssueStatus
from mulligan.github.authorization import LONG_AGO

HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*")

FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


def split_issue(text: str) -> tuple[str, str] | None:
    """Return title and body; None if there is no heading outside of code blocks."""
    lines, fence = text.splitlines(), ""
    for at, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := HEADING.fullmatch(line)):
            return heading[1], "\n".join([*lines[:at], *lines[at + 1 :]]).strip()
    return None


@dataclass(frozen=True, slots=True)
class NoPulls:
    """Implements the port PullRequests without any pull request."""

    def list_open(self, repository: str) -> Sequence[OpenPull]:
        del repository
        return ()

    def state(self, ref: IssueRef, number: int) -> PullState:
        """Return that it is not open."""
        del ref, number
        return PullState(is_open=False)

    def of_branch(self, ref: IssueRef) -> Sequence[int]:
        del ref
        return ()

    def of_people(self, ref: IssueRef) -> Sequence[int]:
        del ref
        return ()

    def reviews(self, ref: IssueRef, number: int) -> Sequence[Review]:
        del ref, number
        return ()

    def checks(self, ref: IssueRef, head_sha: str) -> Sequence[CheckRun]:
        del ref, head_sha
        return ()

    def log(self, ref: IssueRef, run: CheckRun) -> bytes:
        del ref, run
        return b""


@dataclass(frozen=True, slots=True)
class LocalTracker:
    """Implements the port Tracker for one issue."""

    issue: Issue
    facts: RepositoryFacts

    @property
    def pulls(self) -> NoPulls:
        """Return the pull requests: none."""
        return NoPulls()

    def cached_reads(self) -> AbstractContextManager[None]:
        """Do nothing: the issue does not change."""
        return nullcontext()

    def repository(self, name: str) -> RepositoryFacts:
        """Return the facts that were known at the start."""
        if name != self.facts.name:
            raise GoneError(f"A rehearsal works on {self.facts.name} only, not on {name}.")
        return self.facts

    def recent_repository(self, name: str) -> RepositoryFacts:
        """Return the facts that were known at the start."""
        return self.repository(name)

    def list_labelled(
        self,
        repository: str,
        label: str,
        priority: Sequence[str] = (),
        *,
        with_closed: bool = False,
    ) -> Sequence[IssueRef]:
        """List the issue if it has the label."""
        del priority, with_closed
        ref = self.issue.ref
        carries = label.casefold() in {name.casefold() for name in self.issue.labels}
        return [ref] if carries and ref.repository == repository else []

    def read(self, ref: IssueRef, *, with_comments: bool = False) -> Issue:
        del with_comments
        if ref != self.issue.ref:
            raise GoneError(f"A rehearsal works on {self.issue.ref} only, not on {ref}.")
        return self.issue

    def with_renderings(self, issue: Issue) -> Issue:
        return issue

    def is_upload(self, address: str) -> bool:
        """Return False: nothing is downloaded for a file's addresses."""
        del address
        return False

    def fetch_upload(self, address: str, most: int) -> bytes:
        del most
        raise UnavailableError(f"A rehearsal downloads nothing, and so not {address}.")

    def authorising_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Return None: in a rehearsal, the command is the request."""
        del ref, ready_label

    def blockers(self, ref: IssueRef) -> Sequence[IssueRef]:
        del ref
        return ()

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Return the recorded act: permissions do not change during a rehearsal."""
        del ref
        at = status.request.at or LONG_AGO
        request, act = status.request, status.request.act or OperatorAct()
        return AuthorisingAct(act, request.actor, at, trusted=True, guidance=request.guidance)

    def read_commands(
        self, repository: str, after: int, since: datetime, places: Sequence[IssueRef] = ()
    ) -> CommandBatch:
        """Return no commands: a file has no comments."""
        del repository, since, places
        return CommandBatch(read_to=after)

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        """Return no reason: only a signal withdraws a rehearsal."""
        del ref, status, labels
        return ""

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        """Return "": there is no other installation."""
        del ref, status, labels
        return ""

    def closers(self, repository: str, numbers: Sequence[int]) -> Mapping[int, Closers]:
        """Return nothing: a file has no pull requests."""
        del repository, numbers
        return {}

    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str:
        """Return "": there is no other installation."""
        del ref, status
        return ""

    def find_work(self, ref: IssueRef, labels: Labels) -> FoundWork:
        """Return nothing: a rehearsal is the first work on the issue."""
        del ref, labels
        return FoundWork()

    def state_mark(self, ref: IssueRef, comment: str) -> str:
        """Return no mark: the ledger is the rehearsal's own."""
        del ref, comment
        return ""

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Return None: the file is read only once."""
        del ref, status

    def edits(self, ref: IssueRef, status: IssueStatus) -> Sequence[Edit]:
        """Return none: the file is read only once."""
        del ref, status
        return ()
