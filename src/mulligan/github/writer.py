"""Implement the port TrackerWriter: on GitHub, for a dry run, and for a rehearsal.

Everything that Mulligan writes on issues and pull requests is in this file. A new write is a method
of the port in implement/ports.py, and a method of GitHubWriter and of DryRunWriter here.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import quote

import structlog

from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.command import PendingCommand
from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.domain.issue import Act, CommentAct, IssueRef, LabelAct, Stage
from mulligan.domain.issue_context import IssueContext, PullRequest
from mulligan.github.answered import answered_text, comment_to_answer
from mulligan.github.answers import AlreadyExistsError, NotFoundError
from mulligan.github.check_run import CHECK_RUN_NAME, check_run_text
from mulligan.github.client import Client
from mulligan.github.comments import Comments, OwnComment, StatusComments
from mulligan.github.escalation import escalation_comment, escalation_marker
from mulligan.github.graphql import READY, READY_MUTATION, SHOW_STAGE_MUTATION, STAGE
from mulligan.github.labels import LabelChange, LabelStyle, label_change
from mulligan.github.marks import marker
from mulligan.github.messages import (
    draft_body,
    draft_title,
    label_comment,
    label_marker,
    pull_request_body,
    pull_request_title,
    reply_comment,
    reply_marker,
    status_comment,
    what_changed,
)
from mulligan.github.pull_text import OwnText, PullText, new_text, updated_text
from mulligan.github.pulls import (
    belongs,
    find_any,
    find_open,
    find_published,
    is_elsewhere,
    read_pull,
)
from mulligan.github.removals import Removals, removals, without
from mulligan.github.retries import TransientError
from mulligan.github.shapes import (
    ANYTHING,
    CHECK_RUNS,
    EVENTS,
    ISSUE,
    LABELS,
    NOTE,
    NOTES,
    PULL,
    IssueShape,
    Label,
    NoteShape,
    PullShape,
    same_text,
)
from mulligan.github.tracker import read_issue
from mulligan.implement.ports import Guard, Tracker
from mulligan.text.pull_template import fill

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class GitHubWriter:
    """Implements the port TrackerWriter with GitHub's REST API."""

    client: Client
    own_login: Callable[[], str]
    status_comments: StatusComments

    def guarded(self, guard: Guard) -> "GitHubWriter":
        return replace(self, client=self.client.guarded(guard))

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        change = self._missing(ref, stage, labels)
        while change != LabelChange():
            try:
                return self._apply(ref, change)
            except UnavailableError:
                # After a failed request, the labels may have changed all the same (PUBLISH-2).
                left = self._missing(ref, stage, labels)
                if left == change:
                    raise
                change = left
        return None

    def update_status(self, case: IssueContext) -> str | None:
        known = case.status.effects.status_comment or None
        return self.status_comments.update(case, known, self._comments)

    def show_stage(self, case: IssueContext, stage: Stage, labels: Labels) -> str | None:
        """GraphQL changes all at once; REST has a request for each label to remove.

        REST does what GraphQL leaves undone, and everything if the server has no GraphQL.
        """
        ref, known = case.issue.ref, case.status.effects.status_comment or None
        issue = read_issue(self.client, ref)
        change = label_change([label.name for label in issue.labels], stage, labels)

        def edit(comment: OwnComment, text: str) -> bool:
            return self._show_at_once(ref, issue, change, comment, text)

        if change != LabelChange() and self.status_comments.edit_at_once(case, known, edit):
            return known
        self.set_stage_labels(ref, stage, labels)
        return self.update_status(case)

    def ask_for_label(self, case: IssueContext, act: Act, reason: str) -> str:
        ref, known = case.issue.ref, case.status.effects.label_request(act) or None
        text = label_comment(case, act, reason)
        return str(self._comments.upsert(ref, label_marker(ref, act), text, known).id)

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        ref = case.issue.ref
        marker = escalation_marker(ref, case.status.epochs)
        comment = self._comments.upsert(ref, marker, escalation_comment(case, escalation))
        if escalation.assignees:
            self._assign(ref, without(escalation.assignees, self._removed(ref).assignees))
        return comment.html_url

    def answer_escalation(self, case: IssueContext) -> None:
        comment = comment_to_answer(case)
        if comment is not None:
            self._comments.revise(case.issue.ref, comment, lambda text: answered_text(text, case))

    def react(self, repository: str, comment: int, reaction: str) -> None:
        path = f"/repos/{repository}/issues/comments/{comment}/reactions"
        try:
            self.client.write(ANYTHING, "POST", path, {"content": reaction})
        except WorldError as error:
            log.info("reaction_not_added", comment=comment, reason=str(error))

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        ref, text = case.issue.ref, reply_comment(case, order, answer)
        return str(self._comments.upsert(ref, reply_marker(ref, str(order.act)), text).id)

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        texts = _texts(case, pull_request_title(case), pull_request_body)
        found, opened = self._open_or_update(case, base_branch, texts, draft=settings.draft)
        if opened.elsewhere or found.state != "open":
            return opened
        was_ours = case.status.pull.draft_of or case.status.pull.left_draft
        left_draft = ""
        if found.draft and was_ours and not settings.draft:
            left_draft = self._end_draft(found, case.issue.ref)
        self._decorate(found, case, settings)
        return replace(opened, left_draft=left_draft)

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Mark an open pull request as unverified."""
        texts = _texts(case, draft_title(case), draft_body)
        return self._open_or_update(case, base_branch, texts, draft=True)[1]

    def answer_thread(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        text = self.client.as_sent(f"{marker('answer', ref)}\n{text}")
        if found := self._answered(ref, number, thread, text):
            return str(found.id)
        path = f"/repos/{ref.repository}/pulls/{number}/comments/{thread}/replies"
        try:
            written = self.client.write(NOTE, "POST", path, {"body": text})
        except NotFoundError as error:
            raise DeniedError(f"The comment {thread} on #{number} was not found.") from error
        except UnavailableError:
            # After a failed request, the reply may exist all the same (PUBLISH-2).
            if found := self._answered(ref, number, thread, text):
                return str(found.id)
            raise
        return str(written.id)

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        named = marker("answer", ref, f"review={review}")
        place = IssueRef(ref.repository, number)
        return str(self._comments.upsert(place, named, f"{named}\n{text}").id)

    def close_issue(self, ref: IssueRef) -> None:
        if read_issue(self.client, ref).state == "open":
            path = f"/repos/{ref.repository}/issues/{ref.number}"
            closed = {"state": "closed", "state_reason": "completed"}
            self.client.write(ISSUE, "PATCH", path, closed)

    def _answered(self, ref: IssueRef, number: int, thread: int, text: str) -> NoteShape | None:
        own = self.own_login().casefold()
        notes = self.client.read_all(NOTES, f"/repos/{ref.repository}/pulls/{number}/comments")
        return next((note for note in notes if _review_says(note, thread, own, text)), None)

    def create_label(self, repository: str, look: LabelStyle) -> None:
        label = {"name": look.name, "color": look.color, "description": look.description}
        self.client.write(ANYTHING, "POST", f"/repos/{repository}/labels", label)

    def find_branch(self, repository: str, head: str) -> PullShape | None:
        """Return the newest pull request of a branch that belongs to no issue."""
        return find_any(self.client, repository, head)

    def propose_branch(
        self, repository: str, head: str, base: str, title: str, body: str
    ) -> PullShape:
        """Open a pull request of a branch that belongs to no issue."""
        pull = {"base": base, "head": head, "title": title, "body": body}
        try:
            return self.client.write(PULL, "POST", f"/repos/{repository}/pulls", pull)
        except (UnavailableError, AlreadyExistsError):
            # After a failed request, the pull request may exist all the same (PUBLISH-2).
            if found := find_any(self.client, repository, head):
                return found
            raise

    @property
    def _comments(self) -> Comments:
        return Comments(self.client, self.own_login)

    def _missing(self, ref: IssueRef, stage: Stage, labels: Labels) -> LabelChange:
        current = [label.name for label in read_issue(self.client, ref).labels]
        return label_change(current, stage, labels)

    def _apply(self, ref: IssueRef, change: LabelChange) -> None:
        if change.add:
            current = self._add_labels(ref.repository, ref.number, change.add)
            carried = {label.name.casefold() for label in current}
            if not carried.issuperset(name.casefold() for name in change.add):
                message = f"GitHub did not add the labels of {ref}; try again later."
                raise UnavailableError(message)
        path = f"/repos/{ref.repository}/issues/{ref.number}/labels"
        for name in change.remove:
            try:
                self.client.remove(LABELS, f"{path}/{quote(name, safe='')}")
            except NotFoundError:
                continue

    def _show_at_once(
        self,
        ref: IssueRef,
        issue: IssueShape,
        change: LabelChange,
        comment: OwnComment,
        text: str,
    ) -> bool:
        """Change labels and comment by GraphQL; return whether all of it was done."""
        text = self.client.as_sent(text)
        nodes = {label.name: label.node_id for label in issue.labels}
        try:
            if change.add:
                there = self.client.read_all(LABELS, f"/repos/{ref.repository}/labels")
                nodes |= {label.name: label.node_id for label in there}
            names = {name.casefold(): node for name, node in nodes.items()}
            add, remove = (
                [names.get(name.casefold(), "") for name in some]
                for some in (change.add, change.remove)
            )
            if not all((issue.node_id, comment.node, *add, *remove)):
                return False
            variables = {
                "issue": issue.node_id,
                "comment": comment.node,
                "body": text,
                "add": add,
                "adds": bool(add),
                "remove": remove,
                "removes": bool(remove),
            }
            done = self.client.mutate(
                STAGE, SHOW_STAGE_MUTATION, variables, ref.repository, "the permission Issues"
            )
        except (UnavailableError, DeniedError) as error:
            log.info("labels_changed_one_by_one", issue=str(ref), reason=str(error))
            return False
        return done.shows(comment.id, text, change.add)

    def _add_labels(
        self, repository: str, number: int, names: Collection[str]
    ) -> Collection[Label]:
        """Add labels to an issue or a pull request; return all its labels."""
        path = f"/repos/{repository}/issues/{number}/labels"
        return self.client.write(LABELS, "POST", path, {"labels": list(names)})

    def _assign(self, ref: IssueRef, assignees: Sequence[str]) -> None:
        if not assignees:
            return
        path = f"/repos/{ref.repository}/issues/{ref.number}/assignees"
        try:
            self.client.write(ANYTHING, "POST", path, {"assignees": list(assignees)})
        except WorldError as error:
            log.warning("pull_request_not_assigned", issue=str(ref), reason=str(error))

    def _open_or_update(
        self, case: IssueContext, base_branch: str, texts: OwnText, *, draft: bool
    ) -> tuple[PullShape, PullRequest]:
        """Open the pull request with this title and text, or update it (PR-7).

        Another installation's stays as it is, and so does one that somebody has closed meanwhile.
        """
        ref = case.issue.ref
        own = texts.mapped(self.client.as_sent)
        # A push is recorded before its pull request is opened: without one there is none of ours.
        pushed = case.status.effects.pushed
        found = find_published(self.client, ref, case.status) if pushed else None
        if found is None:
            new = new_text(own, ref, case.status.instance, case.template)
            found = self._create(ref, base_branch, new, draft=draft)
        elsewhere = is_elsewhere(found, case.status)
        now = PullText(found.title, found.body or "")
        wanted = now
        if found.state == "open" and not elsewhere:
            wanted = updated_text(now, own, ref)
        if not _says(found, wanted):
            found = self._update(found, ref, wanted)
        opened = PullRequest(
            found.number, found.html_url, elsewhere=elsewhere, is_text_kept=wanted.kept
        )
        return found, opened

    def _end_draft(self, pull: PullShape, ref: IssueRef) -> str:
        """Mark a draft as ready for review; return why it stays a draft, or an empty string."""
        try:
            self.client.mutate(READY, READY_MUTATION, {"pull": pull.node_id}, ref.repository)
        except NotFoundError:
            return "Mulligan cannot do that, because this server has no GraphQL API."
        except WorldError as error:
            # After a failed request, it may be ready all the same (PUBLISH-2).
            if not read_pull(self.client, ref.repository, pull.number).draft:
                return ""
            if isinstance(error, TransientError):
                raise
            return str(error)
        return ""

    def _create(
        self, ref: IssueRef, base_branch: str, wanted: PullText, *, draft: bool
    ) -> PullShape:
        pull = {
            "base": base_branch,
            "head": ref.branch,
            "title": wanted.title,
            "body": wanted.body,
            "draft": draft,
        }
        try:
            created = self.client.write(PULL, "POST", f"/repos/{ref.repository}/pulls", pull)
        except (UnavailableError, AlreadyExistsError) as error:
            # After a failed request, the pull request may exist all the same (PUBLISH-2).
            if found := find_open(self.client, ref):
                return found
            if isinstance(error, AlreadyExistsError):
                message = f"GitHub does not list the pull request of {ref.branch} yet"
                raise UnavailableError(f"{message}; try again later.") from error
            raise
        return belongs(created, ref)

    def _update(self, pull: PullShape, ref: IssueRef, wanted: PullText) -> PullShape:
        path = f"/repos/{ref.repository}/pulls/{pull.number}"
        text = {"title": wanted.title, "body": wanted.body}
        try:
            updated = self.client.write(PULL, "PATCH", path, text)
        except UnavailableError:
            updated = read_pull(self.client, ref.repository, pull.number)
            if not _says(updated, wanted):
                raise
        return belongs(updated, ref)

    def _decorate(self, pull: PullShape, case: IssueContext, settings: PullRequestSettings) -> None:
        """Add labels and request reviews; an error does not stop the publishing.

        What a person removed from the pull request is not added again (PR-7).
        """
        repository = case.issue.ref.repository
        existing = {label.name.casefold() for label in pull.labels}
        labels = [name for name in settings.labels if name.casefold() not in existing]
        people, teams = _reviewers(pull, case, settings), list(settings.team_reviewers)
        if (labels or people) and case.status.pull.number == pull.number:
            removed = self._removed(IssueRef(repository, pull.number))
            labels = without(labels, removed.labels)
            people = without(people, removed.reviewers)
        if labels:
            self._try("labels", case, lambda: self._add_labels(repository, pull.number, labels))
        if people or teams:
            path = f"/repos/{repository}/pulls/{pull.number}/requested_reviewers"
            asked = {"reviewers": people} if people else {}
            asked |= {"team_reviewers": teams} if teams else {}
            self._try("reviewers", case, lambda: self.client.write(ANYTHING, "POST", path, asked))
        if settings.check_run:
            self._try("check run", case, lambda: self._show_verdict(case))

    def _removed(self, place: IssueRef) -> Removals:
        """Read what people removed from an issue or a pull request; nothing if that fails."""
        path = f"/repos/{place.repository}/issues/{place.number}/events"
        try:
            events = self.client.read_all(EVENTS, path)
        except WorldError as error:
            log.warning("removals_not_read", issue=str(place), reason=str(error))
            return Removals()
        return removals(events)

    def _show_verdict(self, case: IssueContext) -> None:
        """Create the check run of the verified commit, unless it is there (PR-6)."""
        repository, head = case.issue.ref.repository, case.last.head_sha if case.last else None
        if head is None:
            return
        text = check_run_text(case)
        path = f"/repos/{repository}/commits/{head}/check-runs"
        runs = self.client.read_all(CHECK_RUNS, path)
        if any(each.external_id == text.external_id for each in runs):
            return
        run = {
            "name": CHECK_RUN_NAME,
            "head_sha": head,
            "external_id": text.external_id,
            "status": "completed",
            "conclusion": text.conclusion,
            "output": {
                "title": text.title,
                "summary": text.summary,
                "annotations": [*text.annotations],
            },
        }
        self.client.write(ANYTHING, "POST", f"/repos/{repository}/check-runs", run)

    def _try(self, what: str, case: IssueContext, send: Callable[[], object]) -> None:
        try:
            send()
        except WorldError as error:
            log.warning("request_refused", what=what, issue=str(case.issue.ref), reason=str(error))


class BodyText(Protocol):
    """Writes Mulligan's part of a pull request's text."""

    def __call__(self, case: IssueContext, *, is_described: bool = False) -> str: ...


def _texts(case: IssueContext, title: str, text_of: BodyText) -> OwnText:
    """Write what Mulligan says, also for a template that takes the description."""
    return OwnText(title, text_of(case), what_changed(case.last), text_of(case, is_described=True))


def _unmarked(case: IssueContext, own: OwnText) -> str:
    """Return title and text without marks, for a dry run."""
    filled = fill(case.template, case.issue.ref.number, own.description) if case.template else None
    if filled is None:
        return f"{own.title}\n\n{own.text}"
    return f"{own.title}\n\n{filled.text}\n\n{own.beside if filled.described else own.text}"


def _reviewers(pull: PullShape, case: IssueContext, settings: PullRequestSettings) -> list[str]:
    """Return the reviewers: as configured, else the requester; GitHub refuses the author."""
    status = case.status
    by_person = isinstance(status.request.act, LabelAct | CommentAct)
    asker = (status.request.actor,) if by_person else ()
    author = pull.user.login.casefold() if pull.user else ""
    done = {author, *(account.login.casefold() for account in pull.requested_reviewers)}
    return [
        login
        for login in settings.reviewers or asker
        if login.casefold() not in done and not login.endswith("[bot]")
    ]


def _says(pull: PullShape, wanted: PullText) -> bool:
    return pull.title == wanted.title and same_text(pull.body, wanted.body)


def _review_says(note: NoteShape, thread: int, own: str, text: str) -> bool:
    by_us = note.user is not None and note.user.login.casefold() == own
    return by_us and note.in_reply_to_id == thread and same_text(note.body, text)


# Writers for a dry run and for a rehearsal.


def no_guard() -> None:
    """Allow every write."""


@dataclass(frozen=True)
class DryRunWriter:
    """The port TrackerWriter for a dry run: reports each text once, and writes nothing."""

    tracker: Tracker
    say: Callable[[str], None]
    guard: Guard = no_guard
    labels: dict[IssueRef, LabelChange] = field(default_factory=dict[IssueRef, LabelChange])
    texts: dict[str, str] = field(default_factory=dict[str, str])

    def guarded(self, guard: Guard) -> "DryRunWriter":
        return replace(self, guard=guard)

    def set_stage_labels(self, ref: IssueRef, stage: Stage, labels: Labels) -> None:
        """Report the labels that would be added and removed."""
        before = self.labels.get(ref, LabelChange())
        current = self.tracker.read(ref).labels - set(before.remove) | set(before.add)
        change = label_change(current, stage, labels)
        if change == LabelChange():
            return
        plus, minus = set(change.add), set(change.remove)
        added, removed = set(before.add) - minus | plus, set(before.remove) - plus | minus
        self.labels[ref] = LabelChange(tuple(added), tuple(removed))
        signs = [f"+{name}" for name in change.add] + [f"-{name}" for name in change.remove]
        self._tell(f"Would change the labels of {ref}: {' '.join(signs)}")

    def update_status(self, case: IssueContext) -> str:
        """Report the text of the status comment."""
        ref = case.issue.ref
        self._show("status comment", f"the status comment of {ref}", status_comment(case), ref)
        return case.status.effects.status_comment or "dry-run"

    def show_stage(self, case: IssueContext, stage: Stage, labels: Labels) -> str:
        """Report the labels, and the text of the status comment."""
        self.set_stage_labels(case.issue.ref, stage, labels)
        return self.update_status(case)

    def ask_for_label(self, case: IssueContext, act: Act, reason: str) -> str:
        """Report the text of the comment that asks for the label again."""
        ref, text = case.issue.ref, label_comment(case, act, reason)
        self._show(f"label {act}", f"a comment on {ref} that asks for the label", text, ref)
        return "dry-run"

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Report the text of the escalation comment."""
        ref, epoch = case.issue.ref, case.status.epoch
        text = escalation_comment(case, escalation)
        self._show(f"help {epoch}", f"the escalation comment of {ref}", text, ref)
        return f"dry-run:{ref}:epoch-{epoch}"

    def answer_escalation(self, case: IssueContext) -> None:
        """Report that the escalation comment would say who answered it."""
        self._tell(f"Would mark the escalation comment of {case.issue.ref} as answered.")

    def react(self, repository: str, comment: int, reaction: str) -> None:
        """Report the reaction to a comment."""
        self._tell(f"Would react to comment {comment} of {repository}: {reaction}")

    def reply(self, case: IssueContext, order: PendingCommand, answer: str) -> str:
        """Report the text of the reply to a command."""
        ref, text = case.issue.ref, reply_comment(case, order, answer)
        self._show(f"reply {order.act}", f"a comment on {ref} that answers a command", text, ref)
        return "dry-run"

    def open_pull_request(
        self, case: IssueContext, base_branch: str, settings: PullRequestSettings
    ) -> PullRequest:
        """Report the text of the pull request, which has no number."""
        kind = "a draft pull request" if settings.draft else "a pull request"
        text = _unmarked(case, _texts(case, pull_request_title(case), pull_request_body))
        return self._show_pull(kind, base_branch, text, case.issue.ref)

    def open_draft(self, case: IssueContext, base_branch: str) -> PullRequest:
        """Report the text of the draft, which has no number."""
        text = _unmarked(case, _texts(case, draft_title(case), draft_body))
        return self._show_pull("a draft pull request", base_branch, text, case.issue.ref)

    def answer_thread(self, ref: IssueRef, number: int, thread: int, text: str) -> str:
        """Report the text of the reply."""
        self._tell(f"Would answer comment {thread} on #{number} of {ref.repository}:\n\n{text}")
        return "dry-run"

    def answer_review(self, ref: IssueRef, number: int, review: int, text: str) -> str:
        """Report the text of the reply."""
        self._tell(f"Would answer review {review} on #{number} of {ref.repository}:\n\n{text}")
        return "dry-run"

    def close_issue(self, ref: IssueRef) -> None:
        """Report which issue would be closed."""
        self._tell(f"Would close {ref}.")

    def _show_pull(self, kind: str, base_branch: str, text: str, ref: IssueRef) -> PullRequest:
        what = f"{kind} of {ref.branch} into {base_branch} of {ref.repository}"
        self._show("pull request", what, text, ref)
        return PullRequest(0, f"dry-run:{ref}:pull-request")

    def _show(self, kind: str, what: str, text: str, ref: IssueRef) -> None:
        key = f"{kind} {ref}"
        if self.texts.get(key) != text:
            verb = "change" if key in self.texts else "write"
            self.texts[key] = text
            self._tell(f"Would {verb} {what}:\n\n{text}")

    def _tell(self, text: str) -> None:
        self.guard()
        self.say(text)


NOT_OPENED = "(not opened, since this is a rehearsal)"


class RehearsalWriter(DryRunWriter):
    """The writer for a rehearsal: `say` receives only the escalation comment."""

    def post_escalation(self, case: IssueContext, escalation: Escalation) -> str:
        """Report the escalation comment."""
        self.say(escalation_comment(case, escalation))
        return "the comment is shown below"

    def _show_pull(self, kind: str, base_branch: str, text: str, ref: IssueRef) -> PullRequest:
        """Open nothing: the commit stays on this machine."""
        del kind, base_branch, text, ref
        return PullRequest(0, NOT_OPENED)

    def _tell(self, text: str) -> None:
        """Do not report other writes."""
