"""Find on GitHub what Mulligan did on an issue that the ledger does not know (RESTORE-1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mulligan.config.policy import Labels
from mulligan.domain.command import OPENING, Verb
from mulligan.domain.errors import DeniedError, UnavailableError
from mulligan.domain.issue import AuthorisingAct, CommentAct, IssueRef, LabelAct, Stage, parse_act
from mulligan.domain.restoration import FoundEscalation, FoundPull, FoundWork, StatusRecord
from mulligan.github.answers import NotFoundError, not_found
from mulligan.github.authorization import last_label_event
from mulligan.github.client import Client
from mulligan.github.comments import Comments
from mulligan.github.graphql import COMMENT_EDITS, COMMENT_EDITS_QUERY, CommentText
from mulligan.github.marks import said
from mulligan.github.pulls import find_open, is_from, read_pull
from mulligan.github.shapes import (
    COMMENT,
    REVIEWS,
    CommentShape,
    EventShape,
    IssueShape,
    leads_to,
)
from mulligan.github.status_record import record_in
from mulligan.text.commands import parse

NO_GRAPHQL = "this server does not report who edited a comment"

NO_RECORD = "the status comment has no record"


@dataclass(frozen=True, slots=True)
class WorkReader:
    """Reads Mulligan's own comments, labels and pull request on an issue."""

    client: Client
    comments: Comments
    own_login: Callable[[], str]
    issue: Callable[[IssueRef], IssueShape]
    events: Callable[[IssueRef], list[EventShape]]

    def find(self, ref: IssueRef, labels: Labels) -> FoundWork:
        """Read the comment and its record, which counts only if nobody else edited it."""
        issue, events = self.issue(ref), self.events(ref)
        every = self.comments.list_on(ref) if issue.comments else []
        if issue.comments and not every:
            raise UnavailableError(f"GitHub does not list the comments of {ref}; try again later.")
        own = [each for each in every if self.comments.is_own(each)]
        comment, record, doubt = self._record(ref, _marked(own, ref))
        found = FoundWork(
            comment=comment,
            record=record,
            doubt=doubt,
            escalation=_escalation(ref, own),
            is_labelled=any(self._is_own_label(each, labels) for each in events),
            shown=_shown(issue, labels),
            is_requested=labels.ready.casefold() in _names(issue),
            answered=max((_answered(ref, each) for each in own), default=0),
            last_comment=max((each.id for each in every), default=0),
        )
        if found.is_none:
            return found
        act, pull = self._act(ref, record, events, labels), self._pull(ref, record)
        return replace(found, act=act, pull=pull)

    def state_mark(self, ref: IssueRef, number: str) -> str:
        """Return the mark in a status comment of an issue; empty if others wrote in it."""
        try:
            path = f"/repos/{ref.repository}/issues/comments/{int(number)}"
            comment = self.client.read(COMMENT, path)
        except (NotFoundError, ValueError):
            return ""
        is_here = leads_to(comment.issue_url, f"/repos/{ref.repository}/issues/{ref.number}")
        marked = self.comments.is_own(comment) and _marked([comment], ref)
        record = self._trusted_record(ref, comment)[0] if is_here and marked else None
        return record.state if record else ""

    def _record(
        self, ref: IssueRef, written: Sequence[CommentShape]
    ) -> tuple[str, StatusRecord | None, str]:
        """Read the newest record; two installations wrote one each."""
        best: tuple[str, StatusRecord | None, str] = ("", None, "")
        for comment in written:
            record, doubt = self._trusted_record(ref, comment)
            if record is None:
                return str(comment.id), None, doubt
            if best[1] is None or _order(record) > _order(best[1]):
                best = (str(comment.id), record, "")
        return best

    def _trusted_record(
        self, ref: IssueRef, comment: CommentShape
    ) -> tuple[StatusRecord | None, str]:
        try:
            answer = self.client.query(
                COMMENT_EDITS, COMMENT_EDITS_QUERY, {"id": comment.node_id}, ref.repository
            )
        except NotFoundError:
            return None, NO_GRAPHQL
        except DeniedError as error:
            return None, f"it is not known who edited the status comment: {error}"
        text = answer.data.node
        if stranger := self._stranger(text, comment):
            return None, f"{stranger} edited the status comment"
        record = record_in(text.body)
        return record, "" if record else NO_RECORD

    def _stranger(self, text: CommentText, comment: CommentShape) -> str:
        """Name who wrote or edited a comment last, unless that was Mulligan."""
        edits = [(each.at, each.editor) for each in text.changes.nodes]
        newest = max(edits, key=lambda each: each[0], default=None)
        last = [(text.last, text.editor)] if text.last else []
        accounts = [text.author, *(editor for _, editor in [*last, *([newest] if newest else [])])]
        if text.number != comment.id:
            return "Somebody"
        own = self.own_login().casefold()
        logins = [each.account.login if each else "A deleted account" for each in accounts]
        return next((login for login in logins if login.casefold() != own), "")

    def _is_own_label(self, event: EventShape, labels: Labels) -> bool:
        if event.event != "labeled" or event.label is None or event.actor is None:
            return False
        stages = {labels.running.casefold(), labels.review.casefold(), labels.hitl.casefold()}
        is_own = event.actor.login.casefold() == self.own_login().casefold()
        return is_own and event.label.name.casefold() in stages

    def _act(
        self,
        ref: IssueRef,
        record: StatusRecord | None,
        events: Sequence[EventShape],
        labels: Labels,
    ) -> AuthorisingAct | None:
        """Read the request that the record names; whether it is trusted is checked later."""
        act = parse_act(record.act) if record else None
        if record and isinstance(act, CommentAct):
            return self._command(ref, act, record.pull or ref.number)
        named = [each for each in events if not isinstance(act, LabelAct) or each.id == act.event]
        event = last_label_event(named, labels.ready)
        if event is None or event.actor is None:
            return None
        by, at = event.actor, event.created_at
        return AuthorisingAct(LabelAct(event.id), by.login, at, trusted=False, actor_id=by.id)

    def _command(self, ref: IssueRef, act: CommentAct, pull: int) -> AuthorisingAct | None:
        """Read the comment that asked for the work, on the issue or its pull request."""
        path = f"/repos/{ref.repository}/issues/comments/{act.comment}"
        try:
            comment = self.client.read(COMMENT, path)
        except NotFoundError as error:
            raise not_found(f"the comment {act.comment} of {ref}") from error
        command, by = parse(comment.body or ""), comment.user
        places = (f"/repos/{ref.repository}/issues/{number}" for number in (ref.number, pull))
        is_here = any(leads_to(comment.issue_url, place) for place in places)
        if command is None or by is None or comment.is_edited or not is_here:
            return None
        if command.verb not in OPENING:
            return None
        guidance = command.text if command.verb is Verb.FIX else ""
        return AuthorisingAct(
            act,
            by.login,
            comment.created_at,
            trusted=False,
            actor_id=by.id,
            guidance=guidance,
        )

    def _pull(self, ref: IssueRef, record: StatusRecord | None) -> FoundPull | None:
        pull = (
            read_pull(self.client, ref.repository, record.pull)
            if record and record.pull
            else find_open(self.client, ref)
        )
        if pull is None:
            return None
        by = pull.user.login.casefold() if pull.user else ""
        path = f"/repos/{ref.repository}/pulls/{pull.number}/reviews"
        reviews = () if record else self.client.read_all(REVIEWS, path)
        return FoundPull(
            number=pull.number,
            url=pull.html_url,
            head_sha=pull.head.sha,
            is_own=is_from(pull, ref) and by == self.own_login().casefold(),
            last_review=max((each.id for each in reviews), default=0),
        )


def _order(record: StatusRecord) -> tuple[bool, int, int]:
    return not record.elsewhere, record.epoch, record.number


def _marked(own: Sequence[CommentShape], ref: IssueRef) -> list[CommentShape]:
    """Return the status comments of an issue."""
    return [each for each in own if said(each.body or "", "status", ref, r"by=(\w+)") is not None]


def _escalation(ref: IssueRef, own: Sequence[CommentShape]) -> FoundEscalation | None:
    found = [
        (int(epoch), each.html_url)
        for each in own
        if (epoch := said(each.body or "", "hitl", ref, "epoch=([0-9]{1,9})"))
    ]
    return FoundEscalation(*max(found)) if found else None


def _answered(ref: IssueRef, comment: CommentShape) -> int:
    return int(said(comment.body or "", "reply", ref, "to=comment:([0-9]{1,18})") or 0)


def _names(issue: IssueShape) -> set[str]:
    return {label.name.casefold() for label in issue.labels}


def _shown(issue: IssueShape, labels: Labels) -> Stage | None:
    stages = (
        (labels.hitl, Stage.HITL),
        (labels.review, Stage.REVIEW),
        (labels.running, Stage.RUNNING),
    )
    carried = _names(issue)
    return next((stage for name, stage in stages if name.casefold() in carried), None)
