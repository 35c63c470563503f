"""The files of attempts: on this machine's disk, and in the database where workers share them."""

import os
import re
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile, TemporaryDirectory
from types import TracebackType
from typing import Self

import structlog
from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.domain.retention import AttemptFiles
from mulligan.implement.ports import Clock
from mulligan.storage.database import Database
from mulligan.storage.schema import FILES_TABLE
from mulligan.storage.serialization import write_time
from mulligan.text.redact import Redactor

ATTEMPT_PATH = re.compile(
    r"(?P<repository>[^/]+/[^/]+)/(?P<issue>[1-9]\d*)/(?P<number>\d+)", re.ASCII
)
"""The directory of an attempt, below the root."""


@dataclass(frozen=True, slots=True)
class FileArtifacts:
    """The port Artifacts in a directory; an artifact's name is its path below `root`.

    What is written through it is redacted; who writes to a `path` redacts it himself (process.py).
    """

    root: Path
    redactor: Redactor = field(default_factory=Redactor)

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Give the place of a file that somebody else will write; its directory exists."""
        place = self._place(f"{ref.repository}/{ref.number}/{number}/{name}")
        with _translated(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Give the artifact name of a file; None where it is not there. Makes nothing."""
        place = self._place(f"{ref.repository}/{ref.number}/{number}/{name}")
        return self.name(place) if place.exists() else None

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Keep a file whole or not at all, whatever is killed; give its artifact name."""
        place = self.path(ref, number, name)
        self.write_raw(place, self.redactor.content(content))
        return self.name(place)

    def write_raw(self, place: Path, content: bytes) -> None:
        """Keep a file as it is, whole or not at all, at a `path` that was given out."""
        with _translated(place):
            _replace(place, content)

    def share(self, path: Path) -> None:
        """Leave a file where it is: every worker on this machine finds it there."""

    def name(self, path: Path) -> str:
        """Give the artifact name of a file at a `path` that was given out."""
        return path.relative_to(self.root).as_posix()

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """Read an artifact by its name; UnavailableError where it is gone, or not one of these."""
        place = self._place(artifact)
        with _translated(place):
            try:
                return place.read_bytes() if last is None else _end_of(place, last)
            except FileNotFoundError:
                message = f"The artifact {artifact} no longer exists; retention removed it."
                raise UnavailableError(message) from None

    def attempts(self) -> tuple[AttemptFiles, ...]:
        """List the attempts that have files here, in no order; what is not Mulligan's is left out.

        A file that is gone by the time it is looked at does not count.
        """
        with _translated(self.root):
            return tuple(self._attempts())

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files of an attempt, and the issue's directory with the last of them."""
        place = self._place(f"{ref.repository}/{ref.number}/{number}")
        with _translated(place), suppress(FileNotFoundError):
            shutil.rmtree(place)
        with suppress(OSError):
            place.parent.rmdir()

    def _attempts(self) -> Iterator[AttemptFiles]:
        for place in self.root.glob("*/*/*/*"):
            named = ATTEMPT_PATH.fullmatch(self.name(place))
            if named is None or place.is_symlink() or not place.is_dir():
                continue
            ref = IssueRef(named["repository"], int(named["issue"]))
            seen = [found for path in (place, *place.rglob("*")) if (found := _look(path))]
            size = sum(found.st_size for found in seen[1:])
            at = max((found.st_mtime for found in seen[1:] or seen), default=0)
            yield AttemptFiles(ref, int(named["number"]), size, datetime.fromtimestamp(at, UTC))

    def _place(self, artifact: str) -> Path:
        """Find the place of a name; one that leads out of the root, by a link too, is refused."""
        place = self.root / PurePosixPath(artifact)
        with _translated(place):
            inside = "\0" not in artifact and place.resolve().is_relative_to(self.root.resolve())
        if not inside or ".." in place.parts:
            message = f"{artifact!r} is not an artifact of {self.root}; name one of those."
            raise UnavailableError(message)
        return place


def _look(path: Path) -> os.stat_result | None:
    """Look at a path itself; None where it is gone."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _end_of(place: Path, most: int) -> bytes:
    with place.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        return file.read(most)


def _replace(place: Path, content: bytes) -> None:
    """Put a new file in a place, durably; nobody ever sees half of it."""
    with NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as new:
        try:
            new.write(content)
            new.flush()
            os.fsync(new.fileno())
            Path(new.name).replace(place)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise
    directory = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _translated(place: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        message = f"{place} cannot be used ({error.strerror}); check its permissions and its disk."
        raise UnavailableError(message) from error


@dataclass(frozen=True, slots=True)
class ScratchArtifacts:
    """The port Artifacts for dry runs: deleted on close, or when the process ends."""

    redactor: Redactor = field(default_factory=Redactor)
    _directory: TemporaryDirectory[str] = field(
        default_factory=lambda: TemporaryDirectory(prefix="mulligan-dry-run-")
    )

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Give the place of a file that somebody else will write; its directory exists."""
        return self._files.path(ref, number, name)

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Give the artifact name of a file; None where it is not there."""
        return self._files.find(ref, number, name)

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Keep a file until the end; give its artifact name."""
        return self._files.write(ref, number, name, content)

    def share(self, path: Path) -> None:
        """Leave a file where it is."""
        self._files.share(path)

    def name(self, path: Path) -> str:
        """Give the artifact name of a file at a `path` that was given out."""
        return self._files.name(path)

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """Read an artifact by its name."""
        return self._files.read(artifact, last)

    def attempts(self) -> tuple[AttemptFiles, ...]:
        """List the attempts that have files here, in no order."""
        return self._files.attempts()

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files of an attempt."""
        self._files.remove(ref, number)

    def close(self) -> None:
        """Remove every file."""
        self._directory.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _files(self) -> FileArtifacts:
        return FileArtifacts(Path(self._directory.name), self.redactor)


# Files in the database that workers share.

log = structlog.get_logger()

FILE = FILES_TABLE.c

MAX_SHARED_BYTES = 32 << 20
"""What a file may have to be shared; a larger one stays where it was made."""

DEPTH = 4
"""How many slashes the name of an artifact has at least."""


@dataclass(frozen=True, slots=True)
class SharedArtifacts:
    """The port Artifacts over files of this machine: what is written is also in the database.

    What is in the database alone is put on this machine when it is asked for.
    """

    files: FileArtifacts
    database: Database
    clock: Clock
    most_bytes: int = MAX_SHARED_BYTES

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Give the place of a file; one that another worker has shared is there."""
        place = self.files.path(ref, number, name)
        if not place.exists() and (content := self._shared(ref, number, name)) is not None:
            self.files.write_raw(place, content)
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

    def share_issue(self, ref: IssueRef) -> None:
        """Share what lies here of an issue's attempts, but for the logs."""
        for place in sorted((self.files.root / ref.repository / str(ref.number)).glob("*/*")):
            if place.suffix != ".log" and not place.name.startswith(".") and place.is_file():
                self.share(place)

    def fetch_issue(self, ref: IssueRef) -> None:
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


def _parts(artifact: str) -> tuple[IssueRef, int, str]:
    owner, repository, issue, number, name = artifact.split("/", DEPTH)
    return IssueRef(f"{owner}/{repository}", int(issue)), int(number), name


def _of(ref: IssueRef, number: int) -> ColumnElement[bool]:
    mine = and_(FILE.repository == ref.repository, FILE.number == ref.number)
    return and_(mine, FILE.attempt == number)


def _is(ref: IssueRef, number: int, name: str) -> ColumnElement[bool]:
    return and_(_of(ref, number), FILE.name == name)
