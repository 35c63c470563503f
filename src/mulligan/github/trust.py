"""Who is trusted on a repository (SPEC T1, T3); whatever cannot be read counts against it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from urllib.parse import quote

from mulligan.config.operator import Trust
from mulligan.config.policy import Labels
from mulligan.domain.issue import Permission
from mulligan.domain.status import IssueStatus
from mulligan.errors import UnavailableError, WorldError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client
from mulligan.github.shapes import PERMISSION, Account, EventShape, PermissionShape
from mulligan.ports import Clock

REMEMBERED = timedelta(seconds=60)
OLDER_WORDS = {"push": Permission.WRITE, "pull": Permission.READ}
"""Some servers give the older words of a role in `permission`."""


class TrustReader:
    """Asks GitHub what people may do, once a minute at most for each of them."""

    def __init__(self, client: Client, trust: Trust, clock: Clock) -> None:
        self._client = client
        self._trust = trust
        self._clock = clock
        self._listed = {login.casefold() for login in trust.users}
        self._read: dict[tuple[str, str, int | None], tuple[datetime, Permission]] = {}

    def afresh(self) -> "TrustReader":
        """Give a reader that remembers nothing yet, for one check right before work or a push."""
        return TrustReader(self._client, self._trust, self._clock)

    def refusal(self, repository: str, who: Account | None) -> str | None:
        """Say why an account is not trusted; None if it is. What cannot be read counts against."""
        try:
            return self.check(repository, who)
        except WorldError as error:
            named = who.login if who else "the account"
            return f"What {named} may do could not be read: {error}"

    def check(self, repository: str, who: Account | None) -> str | None:
        """Say why an account is not trusted, in a sentence that tells what to do; None if it is.

        WorldError where GitHub does not tell.
        """
        if who is None:
            return "The account that put the label on is gone; put it on again."
        if who.login.casefold() in self._listed:
            return None
        if who.is_bot:
            return f"{who.login} is a bot; name it in trust.users, or have a person put it on."
        permission = self._permission(repository, who)
        if permission.reaches(self._trust.permission):
            return None
        return (
            f"{who.login} has the permission {permission} on {repository}, where "
            f"{self._trust.permission} is needed; somebody who has it must put the label on."
        )

    def _permission(self, repository: str, who: Account) -> Permission:
        key, now = (repository.casefold(), who.login.casefold(), who.id), self._clock.now()
        if key in self._read and now - self._read[key][0] < REMEMBERED:
            return self._read[key][1]
        path = f"/repos/{repository}/collaborators/{quote(who.login, safe='')}/permission"
        try:
            answer = self._client.read(PERMISSION, path)
        except NotFoundError:
            found = Permission.NONE
        else:
            _is_of(answer, who)
            found = permission_of(answer)
        self._read[key] = (now, found)
        return found


def _is_of(answer: PermissionShape, who: Account) -> None:
    """Refuse the permission of another account, as of one that took over a login."""
    user = answer.user
    same_login = user is None or user.login.casefold() == who.login.casefold()
    same_id = user is None or None in {user.id, who.id} or user.id == who.id
    if not same_login or not same_id:
        message = f"GitHub gave the permission of another account for {who.login}; try again later."
        raise UnavailableError(message)


def permission_of(answer: PermissionShape) -> Permission:
    """Read the role; a custom one counts as its base, which GitHub gives in `permission`."""
    for word in (answer.role_name, answer.permission):
        if word in set(Permission):
            return Permission(word)
    return OLDER_WORDS.get(answer.permission, Permission.NONE)


def latest_labelling(events: Iterable[EventShape], label: str) -> EventShape | None:
    """Find the last time that a label was put on; ids order events, their times may be equal."""
    labelled = [
        event
        for event in events
        if event.event == "labeled"
        and event.label
        and event.label.name.casefold() == label.casefold()
    ]
    return max(labelled, key=lambda event: event.id, default=None)


def number_of(act: str) -> int | None:
    """Give the event that an act is; None for an operator's command."""
    kind, _, number = act.partition(":")
    return int(number) if kind == "labeled" else None


def unlabelled_since(
    events: Iterable[EventShape], label: str, status: IssueStatus
) -> list[EventShape]:
    """List the times that a label was taken off after the epoch's authorising act."""
    first = number_of(status.act)
    return [
        event
        for event in events
        if event.event == "unlabeled"
        and event.label
        and event.label.name.casefold() == label.casefold()
        and (event.id > first if first else _later(event, status))
    ]


def settlement(
    events: Iterable[EventShape], labels: Labels, status: IssueStatus, *, begun: bool = False
) -> EventShape | None:
    """Find the label of review or hitl by which somebody else has settled the epoch's request.

    Mulligan puts it on before it takes ready and running off (SPEC L3); where this ledger knows
    nothing of it, another installation has done that, whose login may be the same. It also counts
    where only the first was done, if `begun` says so.
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
    if number_of(status.act) is None:
        # Clocks differ, and what this ledger did before the act looks the same; but that is gone.
        moved = [each for each in moved if each in on.values()]
    if begun:
        moved += [each for each in on.values() if _since(each, status)]
    return next(iter(moved), None)


def _login(event: EventShape) -> str:
    return event.actor.login.casefold() if event.actor else ""


def _since(event: EventShape, status: IssueStatus) -> bool:
    """Tell whether an event came after the epoch's authorising act, or in the same second."""
    first = number_of(status.act)
    if first:
        return event.id > first
    return status.act_at is None or event.created_at >= status.act_at


def _later(event: EventShape, status: IssueStatus) -> bool:
    # GitHub's times are whole seconds.
    return status.act_at is None or event.created_at > status.act_at
