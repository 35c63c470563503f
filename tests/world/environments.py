"""A Mulligan, its people and their GitHub, which is the simulated one or `emulate`."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from mulligan.domain.events import Event
from mulligan.domain.issue import IssueRef
from mulligan.implement.ports import Ledger
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.emulated import emulating, installation_on
from world.ledgers import TickingClock, url_of
from world.people import GitHubUsers, token_of
from world.place import NAME, MulliganInstallation, mulligan_installation

FILES = {"notes.txt": "one\n"}
BOT = "mulligan-bot"
SIMULATOR, EMULATE = "simulator", "emulate"


@dataclass(frozen=True)
class ScenarioEnvironment:
    """Ada and Wes may ask for work here, Zoe may not."""

    here: MulliganInstallation
    people: GitHubUsers
    repository: str
    ledger: Ledger

    def issue(self) -> IssueRef:
        return self.people.issue(self.repository, "Mend it")

    def events(self, ref: IssueRef) -> list[Event]:
        return [each.event for each in self.ledger.events(ref)]

    def written(self, ref: IssueRef, kind: str) -> list[str]:
        """List Mulligan's own comments of a kind: status, hitl, reply or answer."""
        found = self.people.comments(ref)
        own = [one.body or "" for one in found if one.user and one.user.login == BOT]
        return [body for body in own if f"<!-- mulligan:{kind} " in body]

    def pull(self, ref: IssueRef) -> IssueRef:
        """Give the one pull request of an issue."""
        (found,) = [one for one in self.people.pulls(self.repository) if one.head.ref == ref.branch]
        return IssueRef(self.repository, found.number)


@contextmanager
def scenario_environment(
    kind: str, directory: Path, **policy: JsonValue
) -> Generator[ScenarioEnvironment]:
    """Set up a repository whose issues are Ada's to label, and read the ledger beside Mulligan."""
    with open_database(url_of(directory / "mulligan.db")) as database:
        ledger = SqlLedger(database, TickingClock())
        if kind == EMULATE:
            with emulating(directory) as emulate:
                here = installation_on(emulate, directory, "town", FILES, **policy)
                yield ScenarioEnvironment(here, emulate, "ada/town", ledger)
            return
        with mulligan_installation(directory, FILES, (), **policy) as here:
            for login in ("ada", "mia", "wes", "zoe"):
                here.world.add_user(login, token=token_of(login))
            here.world.set_role(NAME, "mia", "maintain")
            yield ScenarioEnvironment(here, GitHubUsers(here.url), NAME, ledger)
