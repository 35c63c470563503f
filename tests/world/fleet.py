"""Workers with nothing in common but one PostgreSQL and one GitHub: real processes."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mulligan.domain.events import AttemptCompleted, AttemptStarted, RecordedEvent
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from world.fork_server import ForkedProcess
from world.ledgers import open_ledger_url
from world.place import MulliganInstallation
from world.place import mulligan_installation as set_up

LEASE = "3s"


@dataclass
class Fleet:
    """A place, and the workers that were started there."""

    place: MulliganInstallation
    url: str
    running: ExitStack

    def worker(self, name: str) -> MulliganInstallation:
        """Give the place of a worker of its own: its configuration, its home and its workspace."""
        directory = self.place.directory / name
        directory.mkdir(exist_ok=True)
        made = replace(self.place, directory=directory, settings=dict(self.place.settings))
        made.configure(workspace={"root": str(directory / "work")})
        return made

    def start(self, name: str, *options: str) -> ForkedProcess:
        """Start `mulligan run`; what it says is in a file beside its configuration."""
        home = self.worker(name)
        log = self.running.enter_context((home.directory / "log").open("w"))
        process = home.start("run", *options, said=log)
        self.running.callback(process.wait)
        self.running.callback(process.kill)
        return process

    def log_of(self, name: str) -> str:
        return (self.place.directory / name / "log").read_text()

    def events(self) -> list[RecordedEvent]:
        with open_ledger_url(self.url) as ledger:
            return [*ledger.events()]

    def history(self, ref: IssueRef) -> tuple[WorkerResultMeta, ...]:
        with open_ledger_url(self.url) as ledger:
            return ledger.history(ref)

    def most_at_once(self) -> int:
        """Count the attempts that were under way at the same time, as the database tells it."""
        open_ones, most = set[IssueRef](), 0
        for each in self.events():
            match each.event:
                case AttemptStarted():
                    assert each.issue not in open_ones, "two attempts at one issue"
                    open_ones.add(each.issue)
                case AttemptCompleted():
                    open_ones.discard(each.issue)
                case _:
                    continue
            most = max(most, len(open_ones))
        return most


@contextmanager
def fleet(directory: Path, url: str, engine: str = "polling", **limits: int) -> Generator[Fleet]:
    """Set up a GitHub and a repository for workers on one database."""
    with set_up(directory, {"notes.txt": "one\n"}) as made, ExitStack() as running:
        made.configure(
            state={"url": url},
            engine=engine,
            poll={"interval": "300ms"},
            limits={"lease": LEASE, "concurrency": 1, **limits},
        )
        yield Fleet(made, url, running)
