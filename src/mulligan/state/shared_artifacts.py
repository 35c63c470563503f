"""The files of attempts, also in the database, so that any worker of a fleet finds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog
from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mulligan.domain.issue import IssueRef
from mulligan.domain.retention import AttemptFiles
from mulligan.errors import UnavailableError
from mulligan.ports import Clock
from mulligan.state.artifacts import FileArtifacts
from mulligan.state.database import Database
from mulligan.state.events import write_time
from mulligan.state.schema import FILES_TABLE

FILE = FILES_TABLE.c
MOST_BYTES = 32 << 20
"""What a file may have to be shared; a larger one stays where it was made."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SharedArtifacts:
    """The port Artifacts over files of this machine: what is written is also in the database.

    What is in the database alone is put on this machine when it is asked for.
    """

    files: FileArtifacts
    database: Database
    clock: Clock
    most_bytes: int = MOST_BYTES

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Give the place of a file; one that another worker has shared is there."""
        place = self.files.path(ref, number, name)
        if not place.exists() and (content := self._shared(ref, number, name)) is not None:
            self.files.put(place, content)
        return place

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Give the artifact name of a file; None where no worker has shared it."""
        if found := self.files.find(ref, number, name):
            return found
        with self.database.read() as connection:
            row = connection.execute(select(FILE.size).where(_is(ref, number, name))).first()
        return f"{ref.repository}/{ref.number}/{number}/{name}" if row else None

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Keep a file here and for all; give its artifact name."""
        written = self.files.write(ref, number, name, content)
        self.share(self.files.path(ref, number, name))
        return written

    def share(self, path: Path) -> None:
        """Have a file that somebody else has written found by every worker."""
        ref, number, name = _parts(self.name(path))
        content = self.files.read(self.name(path))
        if len(content) > self.most_bytes:
            log.warning("not_shared", issue=str(ref), file=name, bytes=len(content))
            return
        values = {
            "repository": ref.repository,
            "number": ref.number,
            "attempt": number,
            "name": name,
            "at": write_time(self.clock.now()),
            "size": len(content),
            "content": content,
        }
        with self.database.write() as connection:
            connection.execute(delete(FILES_TABLE).where(_is(ref, number, name)))
            connection.execute(insert(FILES_TABLE).values(values))

    def offer(self, ref: IssueRef) -> None:
        """Share what lies here of an issue's attempts, but for the logs."""
        for place in sorted((self.files.root / ref.repository / str(ref.number)).glob("*/*")):
            if place.suffix != ".log" and not place.name.startswith(".") and place.is_file():
                self.share(place)

    def bring(self, ref: IssueRef) -> None:
        """Put on this machine what workers have shared of an issue's attempts."""
        mine = and_(FILE.repository == ref.repository, FILE.number == ref.number)
        with self.database.read() as connection:
            rows = connection.execute(select(FILE.attempt, FILE.name).where(mine)).all()
        for number, name in rows:
            self.path(ref, number, name)

    def name(self, path: Path) -> str:
        """Give the artifact name of a file at a `path` that was given out."""
        return self.files.name(path)

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """Read an artifact, or its `last` bytes; UnavailableError where no worker has shared it."""
        try:
            return self.files.read(artifact, last)
        except UnavailableError:
            content = self._shared(*_parts(artifact)) if artifact.count("/") >= DEPTH else None
            if content is None:
                raise
            return content if last is None else content[max(0, len(content) - last) :]

    def attempts(self) -> Sequence[AttemptFiles]:
        """List the attempts that have files here, or shared ones, in no order."""
        here = self.files.attempts()
        seen = {(each.issue, each.number) for each in here}
        key = (FILE.repository, FILE.number, FILE.attempt)
        wanted = select(*key, func.sum(FILE.size), func.max(FILE.at)).group_by(*key)
        with self.database.read() as connection:
            rows = connection.execute(wanted).all()
        shared = (
            AttemptFiles(IssueRef(name, issue), number, int(size), datetime.fromisoformat(at))
            for name, issue, number, size, at in rows
        )
        return (*here, *(each for each in shared if (each.issue, each.number) not in seen))

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files of an attempt, here and for all."""
        self.files.remove(ref, number)
        with self.database.write() as connection:
            connection.execute(delete(FILES_TABLE).where(_of(ref, number)))

    def _shared(self, ref: IssueRef, number: int, name: str) -> bytes | None:
        wanted = select(FILE.content).where(_is(ref, number, name))
        with self.database.read() as connection:
            return connection.execute(wanted).scalar()


DEPTH = 4
"""How many slashes the name of an artifact has at least."""


def _parts(artifact: str) -> tuple[IssueRef, int, str]:
    owner, repository, issue, number, name = artifact.split("/", DEPTH)
    return IssueRef(f"{owner}/{repository}", int(issue)), int(number), name


def _of(ref: IssueRef, number: int) -> ColumnElement[bool]:
    mine = and_(FILE.repository == ref.repository, FILE.number == ref.number)
    return and_(mine, FILE.attempt == number)


def _is(ref: IssueRef, number: int, name: str) -> ColumnElement[bool]:
    return and_(_of(ref, number), FILE.name == name)
