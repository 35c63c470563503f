"""Who asked for work, whether they may, and whether that still stands (SPEC L5, T1, T2)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import structlog

from mulligan.config.policy import Labels
from mulligan.domain.eligibility import CHANGED_BY_SOMEBODY
from mulligan.domain.issue import AuthorisingAct, Edits, Issue, IssueRef, Objection
from mulligan.domain.repository import RepositoryFacts
from mulligan.domain.status import IssueStatus
from mulligan.errors import GoneError, UnavailableError, WorldError
from mulligan.github.client import Client
from mulligan.github.edits import EditsReader
from mulligan.github.shapes import EVENTS, Account, EventShape, IssueShape, leads_to
from mulligan.github.trust import (
    TrustReader,
    latest_labelling,
    number_of,
    settlement,
    unlabelled_since,
)

ARCHIVED = "Its repository was archived; unarchive it, then take the label off and put it on again."
LONG_AGO = datetime.min.replace(tzinfo=UTC)

log = structlog.get_logger()

ReadIssue = Callable[[IssueRef], IssueShape]
"""Reads an issue afresh; GoneError where it is gone."""


class Place(Protocol):
    """What else is known of where an issue is, and of who asks."""

    def repository(self, name: str) -> RepositoryFacts: ...
    def own_login(self) -> str: ...
    def proposed_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str | None: ...


class Authority:
    """Reads the events of an issue, and what they are worth."""

    def __init__(
        self,
        client: Client,
        trust: TrustReader,
        place: Place,
        read: ReadIssue,
    ) -> None:
        self._client = client
        self._trust = trust
        self._edits = EditsReader(client, trust)
        self._place = place
        self._read = read

    def act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Find who put the ready label on last, whether that person may, and what came after."""
        try:
            events = self._events(ref)
        except WorldError as error:
            log.warning("events_not_read", issue=str(ref), reason=str(error))
            return None
        event = latest_labelling(events, ready_label)
        if event is None:
            return None
        refusal, act = self._trust.refusal(ref.repository, event.actor), f"labeled:{event.id}"
        at = event.created_at
        return AuthorisingAct(
            act=act,
            actor=event.actor.login if event.actor else "",
            at=at,
            trusted=refusal is None,
            reason=refusal or "",
            actor_id=event.actor.id if event.actor else None,
            edits=Edits() if refusal else self._edits.since(ref, act, at, events),
        )

    def standing(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Rule again on the command that opened the epoch; the operator's own needs no ruling."""
        act = AuthorisingAct(
            status.act,
            status.actor,
            status.act_at or LONG_AGO,
            trusted=True,
            actor_id=status.actor_id,
            guidance=status.guidance,
        )
        if not act.by_comment:
            return act
        if refusal := self._trust.refusal(ref.repository, _account(status)):
            return replace(act, trusted=False, reason=refusal)
        try:
            events = self._events(ref)
        except WorldError as error:
            return replace(act, edits=Edits(unread=str(error)))
        return replace(act, edits=self._edits.since(ref, act.act, act.at, events))

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say why the request of the status's epoch no longer stands (SPEC L5); None if it does."""
        try:
            issue = self._read(ref)
            archived = self._place.repository(ref.repository).archived
        except GoneError as error:
            return str(error)
        if archived:
            return ARCHIVED
        events = self._events(ref)
        if issue.state != "open":
            converted = any(event.event == "converted_to_discussion" for event in events)
            return "It was converted to a discussion." if converted else "The issue was closed."
        return self._taken_off(issue, events, status, labels)

    def handed_over(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str | None:
        """Say by what another installation has settled the epoch's request, or begun to."""
        if status.labelled:
            return None
        found = settlement(self._events(ref), labels, _since_feedback(status), begun=True)
        return _moved_on(found) if found else self._place.proposed_elsewhere(ref, status)

    def _taken_off(
        self, issue: IssueShape, events: list[EventShape], status: IssueStatus, labels: Labels
    ) -> str | None:
        status = _since_feedback(status)
        if found := settlement(events, labels, status):
            return _moved_on(found)
        asked = unlabelled_since(events, labels.ready, status)
        # Mulligan takes this one off itself when an issue waits; the other it never does meanwhile.
        shown = unlabelled_since(events, labels.running, status)
        if status.by_command:
            # After a command, Mulligan may have taken that one off as well, with the stage before.
            asked, shown = [], [*asked, *shown]
        if asked or any(not self._is_own(each) for each in shown):
            is_own = all(self._is_own(each) for each in (*asked, *shown))
            elsewhere = self._place.proposed_elsewhere(status.issue, status) if is_own else None
            return elsewhere or "Its label was taken off."
        # GitHub records no event where a label of the repository is deleted.
        carried = {label.name.casefold() for label in issue.labels}
        if status.act.startswith("labeled:") and labels.ready.casefold() not in carried:
            return f"The label {labels.ready!r} is not on it any more; it was deleted or renamed."
        return None

    def _is_own(self, event: EventShape) -> bool:
        return event.actor is not None and event.actor.login == self._place.own_login()

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Say why the status's epoch is not trusted any more, or its text is another (T1, T2).

        Every permission is asked for anew: nothing that was remembered counts here.
        """
        trust = self._trust.afresh()
        try:
            found = self._read(ref)
        except GoneError as error:
            return Objection(str(error).rstrip("."))
        events = self._events(ref)
        if distrust := _distrust(ref, status, events, trust):
            return Objection(distrust.rstrip("."))
        if Issue(ref, found.title, found.body or "").text_sha256 == status.text_sha256:
            return None
        at = status.act_at or LONG_AGO
        reader = EditsReader(self._client, trust)
        edits = reader.since(ref, status.text_act or status.act, at, events)
        if edits.unread:
            message = f"Whether the text was changed could not be read: {edits.unread}"
            raise UnavailableError(message)
        if edits.by_strangers:
            return Objection(str(edits.by_strangers[-1]), by_edit=True)
        return None if edits.telling else Objection(CHANGED_BY_SOMEBODY, by_edit=True)

    def _events(self, ref: IssueRef) -> list[EventShape]:
        path = f"/repos/{ref.repository}/issues/{ref.number}/events"
        events = self._client.read_all(EVENTS, path)
        for event in events:
            _belongs(event, ref)
        return events


def _distrust(
    ref: IssueRef, status: IssueStatus, events: list[EventShape], trust: TrustReader
) -> str | None:
    """Check again who put the label on; an operator's command needs no check."""
    if status.act.startswith("review:"):
        return _checked(ref, _account(status), trust)
    number = number_of(status.text_act or status.act)
    if number is None and not status.act.startswith("comment:"):
        return None
    if number is None:
        return _checked(ref, _account(status), trust)
    act = next((event for event in events if event.id == number), None)
    if act is None:
        message = f"GitHub does not show who put the label on {ref}; try again later."
        raise UnavailableError(message)
    who = act.actor
    if who and who.id and status.actor_id and who.id != status.actor_id:
        return f"{who.login} is not the account that put the label on; put it on again."
    return _checked(ref, who, trust)


def _checked(ref: IssueRef, who: Account | None, trust: TrustReader) -> str | None:
    try:
        return trust.check(ref.repository, who)
    except WorldError as error:
        message = f"Whether the request is still to be obeyed could not be read: {error}"
        raise UnavailableError(message) from error


def _since_feedback(status: IssueStatus) -> IssueStatus:
    """Count from what the pull request brought back, if it asks for work: the label went before."""
    if status.feedback and (status.act_at or LONG_AGO) <= status.feedback.at:
        return replace(status, act="review", act_at=status.feedback.at)
    return status


def _moved_on(event: EventShape) -> str:
    label = event.label.name if event.label else ""
    return (
        "Another installation of Mulligan, or a person, has moved it on: the label "
        f"{label!r} has taken the place of the request."
    )


def _account(status: IssueStatus) -> Account:
    """Name the account whose command or review opened the epoch."""
    return Account(login=status.actor, id=status.actor_id)


def _belongs(event: EventShape, ref: IssueRef) -> None:
    """Refuse an event of another repository; not every server says where one happened."""
    if event.url and not leads_to(event.url, f"/repos/{ref.repository}/issues/events/{event.id}"):
        message = f"GitHub gave an event of another repository for {ref} ({event.url})."
        raise UnavailableError(message)
