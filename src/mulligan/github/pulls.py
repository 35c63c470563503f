"""The one pull request of an issue: found by its branch, opened, brought up to date (SPEC P1)."""

import re

import structlog

from mulligan.config.policy import PullRequestSettings
from mulligan.domain.case import Case, PullRequest
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.errors import UnavailableError, WorldError
from mulligan.github.answers import AlreadyExistsError, NotFoundError, TransientError
from mulligan.github.client import Client
from mulligan.github.drafts import draft_body, draft_title
from mulligan.github.messages import pull_request_body, pull_request_title
from mulligan.github.parts import MARKER
from mulligan.github.queries import READY, READY_MUTATION
from mulligan.github.shapes import ANYTHING, PULL, PULLS, PullShape, leads_to

log = structlog.get_logger()


class Pulls:
    """Opens and updates pull requests; nothing here may open a second one for a branch."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def open(self, case: Case, base_branch: str, settings: PullRequestSettings) -> PullRequest:
        """Open the pull request of the issue's branch, or bring the open one up to date."""
        texts = {"title": pull_request_title(case), "body": pull_request_body(case)}
        found = self._show(case, base_branch, texts, draft=settings.draft)
        if _is_anothers(found, case.status):
            return PullRequest(found.number, found.html_url, elsewhere=True)
        was_ours = case.status.draft_of or case.status.left_draft
        left_draft = ""
        if found.draft and was_ours and not settings.draft:
            left_draft = self._end_draft(found, case.issue.ref)
        self._decorate(found, case, settings)
        return PullRequest(found.number, found.html_url, left_draft)

    def open_draft(self, case: Case, base_branch: str) -> PullRequest:
        """Open it as a draft with work that was not verified, or have the open one say so."""
        texts = {"title": draft_title(case), "body": draft_body(case)}
        found = self._show(case, base_branch, texts, draft=True)
        elsewhere = _is_anothers(found, case.status)
        return PullRequest(found.number, found.html_url, elsewhere=elsewhere)

    def of_another(self, ref: IssueRef, status: IssueStatus) -> str | None:
        """Say that another installation has opened one for the epoch's request, if it has."""
        found = self._find(ref)
        if found is None or not _is_anothers(found, status):
            return None
        return f"Another installation of Mulligan has opened {found.html_url}"

    def _show(
        self, case: Case, base_branch: str, texts: dict[str, str], *, draft: bool
    ) -> PullShape:
        """Have a pull request there that says these texts; another installation's is left alone."""
        ref = case.issue.ref
        wanted = {name: self._client.as_sent(text) for name, text in texts.items()}
        found = self._find(ref)
        if found is None:
            created = {"head": ref.branch, "base": base_branch, "draft": draft}
            found = self._create(ref, {**wanted, **created})
        # A text that people made their own, so that the marker is gone, is left to them.
        ours = MARKER in (found.body or "") and not _is_anothers(found, case.status)
        if ours and not _says(found, wanted):
            found = self._update(found, ref, wanted)
        return found

    def _end_draft(self, pull: PullShape, ref: IssueRef) -> str:
        """Mark a draft as ready for review; say why it stays one, where it cannot be."""
        path = f"/repos/{ref.repository}/pulls/{pull.number}"
        try:
            self._client.mutate(READY, READY_MUTATION, {"pull": pull.node_id}, ref.repository)
        except NotFoundError:
            return "This server has no GraphQL, by which alone a draft is ended."
        except WorldError as error:
            # A failed answer does not mean that it did not happen (SPEC E7).
            if not self._client.read(PULL, path).draft:
                return ""
            if isinstance(error, TransientError):
                raise
            return str(error)
        return ""

    def _find(self, ref: IssueRef) -> PullShape | None:
        """Find the open one; of several the oldest."""
        owner = ref.repository.partition("/")[0]
        query = {"head": f"{owner}:{ref.branch}", "state": "open"}
        pulls = self._client.read_all(PULLS, f"/repos/{ref.repository}/pulls", query)
        ours = [_belongs(pull, ref) for pull in pulls if _is_from(pull, ref)]
        return min(ours, key=lambda pull: pull.number, default=None)

    def _create(self, ref: IssueRef, body: dict[str, object]) -> PullShape:
        try:
            created = self._client.write(PULL, "POST", f"/repos/{ref.repository}/pulls", body)
        except (UnavailableError, AlreadyExistsError):
            # A failed answer does not mean that it did not happen (SPEC E7).
            if found := self._find(ref):
                return found
            raise
        return _belongs(created, ref)

    def _update(self, pull: PullShape, ref: IssueRef, wanted: dict[str, str]) -> PullShape:
        path = f"/repos/{ref.repository}/pulls/{pull.number}"
        try:
            updated = self._client.write(PULL, "PATCH", path, wanted)
        except UnavailableError:
            updated = self._client.read(PULL, path)
            if not _says(updated, wanted):
                raise
        return _belongs(updated, ref)

    def _decorate(self, pull: PullShape, case: Case, settings: PullRequestSettings) -> None:
        """Add labels and ask for reviews; a refusal never stops the publishing."""
        repository = case.issue.ref.repository
        there = {label.name.casefold() for label in pull.labels}
        labels = [name for name in settings.labels if name.casefold() not in there]
        if labels:
            path = f"/repos/{repository}/issues/{pull.number}/labels"
            self._try("labels", case, path, {"labels": labels})
        people = _reviewers(pull, case, settings)
        if people or settings.team_reviewers:
            path = f"/repos/{repository}/pulls/{pull.number}/requested_reviewers"
            asked = {"reviewers": people, "team_reviewers": list(settings.team_reviewers)}
            self._try(
                "reviewers", case, path, {who: names for who, names in asked.items() if names}
            )

    def _try(self, what: str, case: Case, path: str, body: object) -> None:
        try:
            self._client.write(ANYTHING, "POST", path, body)
        except WorldError as error:
            log.warning("left_out", what=what, issue=str(case.issue.ref), reason=str(error))


def _is_anothers(pull: PullShape, status: IssueStatus) -> bool:
    """Tell whether another installation opened it after the act that this one works for."""
    by = re.search(rf"{re.escape(MARKER)}pull-request \S+ by=(\w+) -->", pull.body or "")
    if by is None or by[1] == status.instance or pull.number == status.pull_number:
        return False
    return not pull.created_at or not status.act_at or pull.created_at >= status.act_at


def _reviewers(pull: PullShape, case: Case, settings: PullRequestSettings) -> list[str]:
    """List whom to ask: as configured, else who put the label on; GitHub refuses the author."""
    status = case.status
    by_person = status.act.startswith(("labeled:", "comment:"))
    asker = (status.actor,) if by_person else ()
    author = pull.user.login.casefold() if pull.user else ""
    done = {author, *(account.login.casefold() for account in pull.requested_reviewers)}
    return [
        login
        for login in settings.reviewers or asker
        if login.casefold() not in done and not login.endswith("[bot]")
    ]


def _is_from(pull: PullShape, ref: IssueRef) -> bool:
    """Tell whether it comes from the issue's branch here; a fork may have one of that name too."""
    where = pull.head.repo.full_name if pull.head.repo else ""
    return pull.head.ref == ref.branch and where.casefold() == ref.repository.casefold()


def _belongs(pull: PullShape, ref: IssueRef) -> PullShape:
    if not leads_to(pull.url, f"/repos/{ref.repository}/pulls/{pull.number}"):
        message = (
            f"GitHub gave a pull request of another repository for {ref} ({pull.url}); if the "
            "repository was renamed, write the new name in the configuration."
        )
        raise UnavailableError(message)
    return pull


def _says(pull: PullShape, wanted: dict[str, str]) -> bool:
    body = (pull.body or "").replace("\r\n", "\n").strip()
    return pull.title == wanted["title"] and body == wanted["body"]
