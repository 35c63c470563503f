"""Who changed title or text of an issue since the label was put on (SPEC T2)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from mulligan.domain.issue import Edit, Edits, IssueRef
from mulligan.errors import UnavailableError, WorldError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client
from mulligan.github.queries import EDITS, EDITS_QUERY, Change, History
from mulligan.github.shapes import Account, EventShape
from mulligan.github.trust import TrustReader, number_of

MOST_PAGES = 10
TITLE, TEXT = "title", "text"


@dataclass(frozen=True, slots=True)
class Done:
    """Something that was done to title or text."""

    who: Account | None
    at: datetime
    what: str


class EditsReader:
    """Asks GitHub's GraphQL for the changes of a text, and its events for those of a title."""

    def __init__(self, client: Client, trust: TrustReader) -> None:
        self._client = client
        self._trust = trust

    def since(self, ref: IssueRef, act: str, at: datetime, events: Iterable[EventShape]) -> Edits:
        """Tell what people who may not ask for work did since an act; never raises."""
        done, telling = list(_renamings(events, act, at)), True
        try:
            try:
                done += self._of_the_text(ref, at)
            except NotFoundError:
                telling = False
            strangers = [each for each in done if self._is_strange(ref, each)]
        except WorldError as error:
            return Edits(unread=str(error))
        strangers.sort(key=lambda each: each.at)
        found = (Edit(each.who.login if each.who else "", each.at, each.what) for each in strangers)
        return Edits(tuple(found), telling=telling)

    def _is_strange(self, ref: IssueRef, done: Done) -> bool:
        return self._trust.check(ref.repository, done.who) is not None

    def _of_the_text(self, ref: IssueRef, at: datetime) -> Iterator[Done]:
        """List the changes since then; GitHub's times are whole seconds, so that one counts."""
        last, changes = self._history(ref)
        if last.has_creation and changes:
            changes.remove(_creation(changes, last))
        if last.last:
            # What was taken out of the list of changes still shows here.
            changes.append(Change(editedAt=last.last, editor=last.editor))
        for change in dict.fromkeys(changes):
            if change.at >= at.replace(microsecond=0):
                yield Done(change.editor.account if change.editor else None, change.at, TEXT)

    def _history(self, ref: IssueRef) -> tuple[History, list[Change]]:
        owner, _, name = ref.repository.partition("/")
        asked: dict[str, object] = {"owner": owner, "name": name, "number": ref.number}
        found, after = list[Change](), None
        for _ in range(MOST_PAGES):
            answer = self._client.query(EDITS, EDITS_QUERY, {**asked, "after": after})
            repository = answer.data.repository
            history = repository.issue
            _belongs(repository.name, history, ref)
            found += history.changes.nodes
            after = history.changes.page.end
            if not history.changes.page.more:
                return history, found
        message = f"The text of {ref} was changed too often to read it all; open a new issue."
        raise UnavailableError(message)


def _renamings(events: Iterable[EventShape], act: str, at: datetime) -> Iterator[Done]:
    """List the changes of the title since an act; ids order events where the act is one."""
    first = number_of(act)
    for event in events:
        later = event.id > first if first else event.created_at >= at.replace(microsecond=0)
        if event.event == "renamed" and later:
            yield Done(event.actor, event.created_at, TITLE)


def _creation(changes: Iterable[Change], history: History) -> Change:
    """Find the first of the changes; of several in one second, that by the issue's author."""
    return min(changes, key=lambda change: (change.at, change.editor != history.author))


def _belongs(name: str, history: History, ref: IssueRef) -> None:
    if name.casefold() != ref.repository.casefold() or history.number != ref.number:
        message = f"GitHub gave the history of {name}#{history.number} for {ref}; try again later."
        raise UnavailableError(message)
