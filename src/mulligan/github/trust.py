"""Who is trusted on a repository (SPEC T1, T3); whatever cannot be read counts against it."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from urllib.parse import quote

from mulligan.config.operator import Trust
from mulligan.domain.issue import Permission
from mulligan.domain.status import IssueStatus
from mulligan.errors import WorldError
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
        self._read: dict[tuple[str, str], tuple[datetime, Permission]] = {}

    def refusal(self, repository: str, who: Account | None) -> str | None:
        """Say why an account is not trusted, in a sentence that tells what to do; None if it is."""
        if who is None:
            return "The account that put the label on is gone; put it on again."
        if who.login.casefold() in self._listed:
            return None
        if who.is_bot:
            return f"{who.login} is a bot; name it in trust.users, or have a person put it on."
        try:
            permission = self._permission(repository, who.login)
        except WorldError as error:
            return f"What {who.login} may do could not be read: {error}"
        if permission.reaches(self._trust.permission):
            return None
        return (
            f"{who.login} has the permission {permission} on {repository}, where "
            f"{self._trust.permission} is needed; somebody who has it must put the label on."
        )

    def _permission(self, repository: str, login: str) -> Permission:
        key, now = (repository.casefold(), login.casefold()), self._clock.now()
        if key in self._read and now - self._read[key][0] < REMEMBERED:
            return self._read[key][1]
        path = f"/repos/{repository}/collaborators/{quote(login, safe='')}/permission"
        try:
            found = permission_of(self._client.read(PERMISSION, path))
        except NotFoundError:
            found = Permission.NONE
        self._read[key] = (now, found)
        return found


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


def unlabelled_since(
    events: Iterable[EventShape], label: str, status: IssueStatus
) -> list[EventShape]:
    """List the times that a label was taken off after the epoch's authorising act."""
    kind, _, number = status.act.partition(":")
    return [
        event
        for event in events
        if event.event == "unlabeled"
        and event.label
        and event.label.name.casefold() == label.casefold()
        and (event.id > int(number) if kind == "labeled" else _later(event, status))
    ]


def _later(event: EventShape, status: IssueStatus) -> bool:
    # GitHub's times are whole seconds.
    return status.act_at is None or event.created_at > status.act_at
