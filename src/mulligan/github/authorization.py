"""Check who requested work, if they are trusted (TRUST-1), and if it is withdrawn (LABEL-5)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol
from urllib.parse import quote

import structlog

from mulligan.config.operator import Trust
from mulligan.config.policy import Labels
from mulligan.domain.absence import HELD_AFTER
from mulligan.domain.eligibility import CHANGED_BY_SOMEBODY
from mulligan.domain.errors import GoneError, UnavailableError, UnconfirmedError, WorldError
from mulligan.domain.issue import (
    Act,
    AuthorisingAct,
    CommentAct,
    Edit,
    Edits,
    Issue,
    IssueRef,
    LabelAct,
    Objection,
    OperatorAct,
    Permission,
    RepositoryFacts,
    ReviewAct,
    Stage,
)
from mulligan.domain.meanwhile import TEXT, TITLE
from mulligan.domain.status import IssueStatus
from mulligan.github.answers import NotFoundError, not_found
from mulligan.github.client import Client
from mulligan.github.graphql import EDITS, EDITS_QUERY, Change, History
from mulligan.github.shapes import (
    EVENTS,
    LABEL,
    PERMISSION,
    Account,
    EventShape,
    IssueShape,
    PermissionShape,
    leads_to,
)
from mulligan.implement.ports import Clock

PERMISSION_TTL = timedelta(seconds=60)
"""How long a permission is cached."""

LEGACY_PERMISSIONS = {"push": Permission.WRITE, "pull": Permission.READ}
"""Older role names that some servers send in `permission`."""

MAX_PAGES_OF_EDITS = 10

ARCHIVED = "Its repository was archived; unarchive it, then remove the label and add it again."

LONG_AGO = datetime.min.replace(tzinfo=UTC)

log = structlog.get_logger()

ReadIssue = Callable[[IssueRef], IssueShape]
"""Reads an issue; GoneError if it was deleted or transferred."""


class TrustReader:
    """Reads people's permissions from GitHub; caches each for PERMISSION_TTL."""

    def __init__(self, client: Client, trust: Trust, clock: Clock) -> None:
        self._client = client
        self._trust = trust
        self._clock = clock
        self._listed = {login.casefold() for login in trust.users}
        self._read: dict[tuple[str, str, int | None], tuple[datetime, Permission]] = {}

    def without_cache(self) -> "TrustReader":
        """Return a reader with an empty cache, for one check right before work or a push."""
        return TrustReader(self._client, self._trust, self._clock)

    def refusal(self, repository: str, who: Account | None) -> str:
        """Return why a commenter is not trusted, or ""; a failed read counts as not trusted."""
        try:
            return self.check(repository, who)
        except WorldError as error:
            named = who.login if who else "the account"
            reason = f"The permission of {named} could not be read: {error}"
            log.warning("permission_not_read", repository=repository, reason=reason)
            return reason

    def check(self, repository: str, who: Account | None) -> str:
        """Return why an account is not trusted, and what to do, in a sentence; "" if it is.

        WorldError if its permission cannot be read.
        """
        if who is None:
            return "The account that added the label no longer exists; add the label again."
        if who.login.casefold() in self._listed:
            return ""
        if who.is_bot:
            return f"{who.login} is a bot; add it to trust.users, or ask a person to add the label."
        permission = self._permission(repository, who)
        if permission.reaches(self._trust.permission):
            return ""
        return (
            f"{who.login} has the permission {permission} on {repository}, where "
            f"{self._trust.permission} is needed; ask someone who has it to add the label."
        )

    def check_act(self, repository: str, who: Account, at: datetime) -> str:
        """Return why the author of a comment or review is not trusted, as `check` does.

        If GitHub still does not find the account when the act is a day old, it is not trusted.
        """
        try:
            return self.check(repository, who)
        except UnconfirmedError as error:
            if self._clock.now() - at < HELD_AFTER:
                raise
            return str(error)

    def _permission(self, repository: str, who: Account) -> Permission:
        key, now = (repository.casefold(), who.login.casefold(), who.id), self._clock.now()
        if key in self._read and now - self._read[key][0] < PERMISSION_TTL:
            return self._read[key][1]
        path = f"/repos/{repository}/collaborators/{quote(who.login, safe='')}/permission"
        try:
            answer = self._client.read(PERMISSION, path)
        except NotFoundError as error:
            raise not_found(f"the permission of {who.login} on {repository}") from error
        _require_same_account(answer, who)
        found = permission_of(answer)
        self._read[key] = (now, found)
        return found


def _require_same_account(answer: PermissionShape, who: Account) -> None:
    """Raise UnavailableError for the permission of another account, such as a reused login."""
    user = answer.user
    same_login = user is None or user.login.casefold() == who.login.casefold()
    same_id = user is None or None in {user.id, who.id} or user.id == who.id
    if not same_login or not same_id:
        raise UnavailableError(
            f"GitHub gave the permission of another account for {who.login}; try again later."
        )


def permission_of(answer: PermissionShape) -> Permission:
    """Read the role; a custom role counts as its base, which GitHub sends in `permission`."""
    for role in (answer.role_name, answer.permission):
        if role in set(Permission):
            return Permission(role)
    return LEGACY_PERMISSIONS.get(answer.permission, Permission.NONE)


def last_label_event(events: Iterable[EventShape], label: str) -> EventShape | None:
    """Return the newest `labeled` event of a label; by id, since times may be equal."""
    labelled = [
        event
        for event in events
        if event.event == "labeled"
        and event.label
        and event.label.name.casefold() == label.casefold()
    ]
    return max(labelled, key=lambda event: event.id, default=None)


def number_of(act: Act | None) -> int | None:
    """Return the event id of an act; None if the act is no label event."""
    return act.event if isinstance(act, LabelAct) else None


def unlabelled_since(
    events: Iterable[EventShape], label: str, status: IssueStatus
) -> list[EventShape]:
    """List the `unlabeled` events of a label after the epoch's authorising act."""
    first = number_of(status.request.act)
    return [
        event
        for event in events
        if event.event == "unlabeled"
        and event.label
        and event.label.name.casefold() == label.casefold()
        and (event.id > first if first else _later(event, status))
    ]


def settlement(
    events: Iterable[EventShape], labels: Labels, status: IssueStatus, begun_by: str | None = None
) -> EventShape | None:
    """Find the review or hitl label by which another installation settled the epoch's request.

    Mulligan adds that label before it removes ready and running (LABEL-3). If this ledger has no
    record of that label, another installation added it, perhaps under the same login. A label that
    the login `begun_by` added counts even before ready and running are removed.
    """
    if status.labelled:
        return None
    events = sorted(events, key=lambda event: event.id)
    asking = {labels.ready.casefold(), labels.running.casefold()}
    settling = {labels.review.casefold(), labels.hitl.casefold()}
    on, moved = dict[str, EventShape](), list[EventShape]()
    for event in events:
        name = event.label.name.casefold() if event.label else ""
        if name in settling and event.event == "labeled":
            on[name] = event
        elif event.event == "unlabeled":
            on.pop(name, None)
            if name in asking and _since(event, status):
                moved += [each for each in on.values() if _login(each) == _login(event)]
    if number_of(status.request.act) is None:
        # Without an event id, the events of an earlier round may be among them: Mulligan's own
        # labels of that round are no longer on the issue.
        moved = [each for each in moved if each in on.values()]
    if begun_by is not None:
        own = begun_by.casefold()
        moved += [each for each in on.values() if _since(each, status) and _login(each) == own]
    return next(iter(moved), None)


def _login(event: EventShape) -> str:
    return event.actor.login.casefold() if event.actor else ""


def _since(event: EventShape, status: IssueStatus) -> bool:
    """Return whether an event came after the epoch's authorising act, or in the same second."""
    first = number_of(status.request.act)
    if first:
        return event.id > first
    return status.request.at is None or event.created_at >= status.request.at


def _later(event: EventShape, status: IssueStatus) -> bool:
    # GitHub's times are whole seconds.
    return status.request.at is None or event.created_at > status.request.at


@dataclass(frozen=True, slots=True)
class TextChange:
    """One change of an issue's title or text."""

    account: Account | None
    at: datetime
    field: str

    @property
    def edit(self) -> Edit:
        return Edit(self.account.login if self.account else "", self.at, self.field)


class EditsReader:
    """Reads the edits of an issue: of its text by GraphQL, of its title from the events."""

    def __init__(self, client: Client, trust: TrustReader) -> None:
        self._client = client
        self._trust = trust

    def since(
        self, ref: IssueRef, act: Act | None, at: datetime, events: Iterable[EventShape]
    ) -> Edits:
        """Return the edits by untrusted people since an act; WorldError if one cannot be read."""
        changes, names_authors = self._since(ref, act, at, events)
        strangers = (each.edit for each in changes if self._is_untrusted(ref, each))
        return Edits(tuple(strangers), names_authors=names_authors)

    def by_anybody(
        self, ref: IssueRef, act: Act | None, at: datetime, events: Iterable[EventShape]
    ) -> tuple[Edit, ...]:
        """Return the known edits since an act, oldest first; WorldError if one cannot be read."""
        return tuple(each.edit for each in self._since(ref, act, at, events)[0])

    def _since(
        self, ref: IssueRef, act: Act | None, at: datetime, events: Iterable[EventShape]
    ) -> tuple[list[TextChange], bool]:
        """Return the changes since an act, oldest first; False if the text's are not known."""
        changes, names_authors = list(_renamings(events, act, at)), True
        try:
            changes += self._of_the_text(ref, at)
        except NotFoundError:
            names_authors = False
        return sorted(changes, key=lambda each: each.at), names_authors

    def _is_untrusted(self, ref: IssueRef, done: TextChange) -> bool:
        return bool(self._trust.check(ref.repository, done.account))

    def _of_the_text(self, ref: IssueRef, at: datetime) -> Iterator[TextChange]:
        """List the changes since `at`; GitHub's times are whole seconds, so its second counts."""
        last, changes = self._history(ref)
        if last.has_creation and changes:
            changes.remove(_creation(changes, last))
        if last.last:
            # A revision deleted from the history still shows here.
            changes.append(Change(editedAt=last.last, editor=last.editor))
        for change in dict.fromkeys(changes):
            if change.at >= at.replace(microsecond=0):
                yield TextChange(change.editor.account if change.editor else None, change.at, TEXT)

    def _history(self, ref: IssueRef) -> tuple[History, list[Change]]:
        owner, _, name = ref.repository.partition("/")
        variables: dict[str, object] = {"owner": owner, "name": name, "number": ref.number}
        found, after = list[Change](), None
        for _ in range(MAX_PAGES_OF_EDITS):
            answer = self._client.query(EDITS, EDITS_QUERY, {**variables, "after": after})
            repository = answer.data.repository
            history = repository.issue
            _edit_belongs(repository.name, history, ref)
            found += history.changes.nodes
            after = history.changes.page.end
            if not history.changes.page.more:
                return history, found
        raise UnavailableError(f"{ref} was edited too often to read all edits; open a new issue.")


def _renamings(events: Iterable[EventShape], act: Act | None, at: datetime) -> Iterator[TextChange]:
    """List the title changes since an act, by event id if the act has one, else by time."""
    first = number_of(act)
    for event in events:
        later = event.id > first if first else event.created_at >= at.replace(microsecond=0)
        if event.event == "renamed" and later:
            yield TextChange(event.actor, event.created_at, TITLE)


def _creation(changes: Iterable[Change], history: History) -> Change:
    """Return the first change; of several in one second, that by the issue's author."""
    return min(changes, key=lambda change: (change.at, change.editor != history.author))


def _edit_belongs(name: str, history: History, ref: IssueRef) -> None:
    if name.casefold() != ref.repository.casefold() or history.number != ref.number:
        raise UnavailableError(
            f"GitHub gave the history of {name}#{history.number} for {ref}; try again later."
        )


class RepositoryReader(Protocol):
    """The repository facts, own login and pull requests that Authorization needs."""

    def repository(self, name: str) -> RepositoryFacts: ...
    def own_login(self) -> str: ...
    def pull_request_elsewhere(self, ref: IssueRef, status: IssueStatus) -> str: ...


class Authorization:
    """Judges from an issue's events whether its request is authorised, withdrawn or settled."""

    def __init__(
        self,
        client: Client,
        trust: TrustReader,
        place: RepositoryReader,
        read: ReadIssue,
    ) -> None:
        self._client = client
        self._trust = trust
        self._edits = EditsReader(client, trust)
        self._place = place
        self._read = read

    def labelling_act(self, ref: IssueRef, ready_label: str) -> AuthorisingAct | None:
        """Return who last added the ready label, whether they are trusted, and later edits.

        WorldError if one of these cannot be read.
        """
        events = self.events(ref)
        event = last_label_event(events, ready_label)
        if event is None:
            return None
        refusal, act = self._trust.check(ref.repository, event.actor), LabelAct(event.id)
        at = event.created_at
        return AuthorisingAct(
            act=act,
            actor=event.actor.login if event.actor else "",
            at=at,
            trusted=not refusal,
            reason=refusal,
            actor_id=event.actor.id if event.actor else None,
            edits=Edits() if refusal else self._edits.since(ref, act, at, events),
        )

    def reauthorise(self, ref: IssueRef, status: IssueStatus) -> AuthorisingAct:
        """Check again the command that opened the epoch; an operator's command needs no check.

        WorldError if the check needs something that cannot be read.
        """
        act = AuthorisingAct(
            status.request.act or OperatorAct(),
            status.request.actor,
            status.request.at or LONG_AGO,
            trusted=True,
            actor_id=status.request.actor_id,
            guidance=status.request.guidance,
        )
        if not act.by_comment:
            return act
        if refusal := self._trust.check(ref.repository, _account(status)):
            return replace(act, trusted=False, reason=refusal)
        return replace(act, edits=self._edits.since(ref, act.act, act.at, self.events(ref)))

    def withdrawal(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        """Return why the request of the epoch is withdrawn (LABEL-5), or ""."""
        try:
            issue = self._read(ref)
            archived = self._place.repository(ref.repository).archived
        except GoneError as error:
            return str(error)
        if archived:
            return ARCHIVED
        events = self.events(ref)
        if issue.state != "open":
            converted = any(event.event == "converted_to_discussion" for event in events)
            return "It was converted to a discussion." if converted else "The issue was closed."
        if status.stage is Stage.HITL:
            # Its labels say nothing of the request: Mulligan removed the ready label itself.
            return ""
        return self._label_withdrawal(issue, events, status, labels)

    def settled_elsewhere(self, ref: IssueRef, status: IssueStatus, labels: Labels) -> str:
        """Return how another installation settled, or began to settle, the request; "" if none."""
        if status.labelled:
            return ""
        self._read(ref)  # GoneError where it was transferred or its repository renamed.
        own = self._place.own_login()
        found = settlement(self.events(ref), labels, _since_feedback(status), own)
        return _moved_on(found) if found else self._place.pull_request_elsewhere(ref, status)

    def _label_withdrawal(
        self, issue: IssueShape, events: list[EventShape], status: IssueStatus, labels: Labels
    ) -> str:
        status = _since_feedback(status)
        if found := settlement(events, labels, status):
            return _moved_on(found)
        asked = unlabelled_since(events, labels.ready, status)
        # Mulligan itself removes the running label when an issue waits, but never the ready label.
        shown = unlabelled_since(events, labels.running, status)
        if status.request.by_command or status.feedback:
            # Mulligan itself may have removed the ready label with its stage: before a command, or
            # after a review that came while GitHub could not be written to.
            asked, shown = [], [*asked, *shown]
        if asked or any(not self._is_own(each) for each in shown):
            is_own = all(self._is_own(each) for each in (*asked, *shown))
            elsewhere = self._place.pull_request_elsewhere(status.issue, status) if is_own else ""
            return elsewhere or "Its label was removed."
        # GitHub records no event where a label of the repository is deleted.
        carried = {label.name.casefold() for label in issue.labels}
        if status.request.by_label and labels.ready.casefold() not in carried:
            return self._deleted_label(status.issue, labels.ready)
        return ""

    def _deleted_label(self, ref: IssueRef, ready: str) -> str:
        """Return that the ready label was deleted; UnavailableError if the repository has it.

        In that case, GitHub returned an old state of the issue, or does not list the removal yet.
        """
        path = f"/repos/{ref.repository}/labels/{quote(ready, safe='')}"
        try:
            self._client.read(LABEL, path)
        except NotFoundError:
            return f"The label {ready!r} is no longer on it; the label was deleted or renamed."
        raise UnavailableError(
            f"GitHub shows {ref} without its label, and no event that removed it; try again later."
        )

    def _is_own(self, event: EventShape) -> bool:
        return event.actor is not None and event.actor.login == self._place.own_login()

    def objection(self, ref: IssueRef, status: IssueStatus) -> Objection | None:
        """Return why the epoch is not trusted any more (TRUST-1), or who edited its text (TRUST-2).

        Permissions are read again, without the cache.
        """
        trust = self._trust.without_cache()
        try:
            found = self._read(ref)
        except GoneError as error:
            return Objection(str(error).rstrip("."))
        events = self.events(ref)
        if distrust := _trust_refusal(ref, status, events, trust):
            return Objection(distrust.rstrip("."))
        if Issue(ref, found.title, found.body or "").text_sha256 == status.text.sha256:
            return None
        at = status.request.at or LONG_AGO
        reader = EditsReader(self._client, trust)
        try:
            edits = reader.since(ref, status.text.act or status.request.act, at, events)
        except WorldError as error:
            raise UnavailableError(f"The text's edits could not be read again: {error}") from error
        if edits.by_strangers:
            return Objection(str(edits.by_strangers[-1]), by_edit=True)
        return None if edits.names_authors else Objection(CHANGED_BY_SOMEBODY, by_edit=True)

    def edits(self, ref: IssueRef, status: IssueStatus) -> tuple[Edit, ...]:
        """Return the edits of title and text since the epoch's request, by anybody."""
        at = status.request.at or LONG_AGO
        reader = EditsReader(self._client, self._trust)
        return reader.by_anybody(ref, status.request.act, at, self.events(ref))

    def events(self, ref: IssueRef) -> list[EventShape]:
        """Read all events of an issue."""
        path = f"/repos/{ref.repository}/issues/{ref.number}/events"
        events = self._client.read_all(EVENTS, path)
        for event in events:
            _belongs(event, ref)
        return events


def _trust_refusal(
    ref: IssueRef, status: IssueStatus, events: list[EventShape], trust: TrustReader
) -> str:
    """Check the requester again; an operator's command needs no check."""
    if isinstance(status.request.act, ReviewAct):
        return _checked(ref, _account(status), trust)
    number = number_of(status.text.act or status.request.act)
    if number is None and not isinstance(status.request.act, CommentAct):
        return ""
    if number is None:
        return _checked(ref, _account(status), trust)
    act = next((event for event in events if event.id == number), None)
    if act is None:
        raise UnavailableError(
            f"GitHub does not report who added the label to {ref}; try again later."
        )
    who = act.actor
    if who and who.id and status.request.actor_id and who.id != status.request.actor_id:
        return f"{who.login} is not the account that added the label; add it again."
    return _checked(ref, who, trust)


def _checked(ref: IssueRef, who: Account | None, trust: TrustReader) -> str:
    try:
        return trust.check(ref.repository, who)
    except WorldError as error:
        raise UnavailableError(f"The request could not be read again: {error}") from error


def _since_feedback(status: IssueStatus) -> IssueStatus:
    """Count events from the pull request's feedback, if any: the label was removed before it."""
    if status.feedback and (status.request.at or LONG_AGO) <= status.feedback.at:
        return replace(
            status, request=replace(status.request, written_act="", at=status.feedback.at)
        )
    return status


def _moved_on(event: EventShape) -> str:
    label = event.label.name if event.label else ""
    return (
        "Another installation of Mulligan, or a person, has settled it: the label "
        f"{label!r} replaced the request."
    )


def _account(status: IssueStatus) -> Account:
    """Return the account whose command or review opened the epoch."""
    return Account(login=status.request.actor, id=status.request.actor_id)


def _belongs(event: EventShape, ref: IssueRef) -> None:
    """Raise UnavailableError for an event of another repository; some servers omit the URL."""
    if event.url and not leads_to(event.url, f"/repos/{ref.repository}/issues/events/{event.id}"):
        raise UnavailableError(
            f"GitHub gave an event of another repository for {ref} ({event.url})."
        )
