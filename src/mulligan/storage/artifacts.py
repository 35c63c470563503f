"""The files of attempts: on this machine's disk, and in the database that workers share."""

import os
import re
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile, TemporaryDirectory

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
    """Implements Artifacts in a directory; an artifact's name is its path below `root`.

    `write` redacts the content. A caller that writes to a `path` redacts it itself (process.py).
    """

    root: Path
    redactor: Redactor = field(default_factory=Redactor)

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        place = self._place(f"{ref.repository}/{ref.number}/{number}/{name}")
        with _translated(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        place = self._place(f"{ref.repository}/{ref.number}/{number}/{name}")
        return self.name(place) if place.exists() else None

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        place = self.path(ref, number, name)
        self.write_raw(place, self.redactor.content(content))
        return self.name(place)

    def write_raw(self, place: Path, content: bytes) -> None:
        """Write a file atomically and unchanged, to a path from `path`."""
        with _translated(place):
            _replace(place, content)

    def share(self, path: Path) -> None:
        """Do nothing: every worker on this machine can read the file."""

    def name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """UnavailableError also for a name that no artifact can have."""
        place = self._place(artifact)
        with _translated(place):
            try:
                return place.read_bytes() if last is None else _end_of(place, last)
            except FileNotFoundError:
                raise UnavailableError(
                    f"The artifact {artifact} no longer exists; retention removed it."
                ) from None

    def attempts(self) -> tuple[AttemptFiles, ...]:
        """Skip other files, and files that disappear meanwhile."""
        with _translated(self.root):
            return tuple(self._attempts())

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the issue's directory, too, once it is empty."""
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
        """Return the path of an artifact; refuse one that leads out of the root, even by a link."""
        place = self.root / PurePosixPath(artifact)
        with _translated(place):
            inside = "\0" not in artifact and place.resolve().is_relative_to(self.root.resolve())
        if not inside or ".." in place.parts:
            raise UnavailableError(
                f"{artifact!r} is not an artifact of {self.root}; name one of those."
            )
        return place


def _look(path: Path) -> os.stat_result | None:
    """Return the status of a path itself; None if it does not exist."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _end_of(place: Path, most: int) -> bytes:
    with place.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        return file.read(most)


def _replace(place: Path, content: bytes) -> None:
    """Replace a file atomically and durably."""
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
        raise UnavailableError(
            f"{place} cannot be used ({error.strerror}); check its permissions and its disk."
        ) from error


@contextmanager
def scratch_artifacts(redactor: Redactor) -> Generator[FileArtifacts]:
    """Yield the artifacts of a dry run; delete them after the block, or when the process ends."""
    with TemporaryDirectory(prefix="mulligan-dry-run-") as directory:
        yield FileArtifacts(Path(directory), redactor)


# Files in the database that workers share.

log = structlog.get_logger()

FILE = FILES_TABLE.c

MAX_SHARED_BYTES = 32 << 20
"""Maximum size of a shared file; a larger one stays on its machine."""

DEPTH = 4
"""Minimum number of slashes in the name of an artifact."""


@dataclass(frozen=True, slots=True)
class SharedArtifacts:
    """Implements Artifacts on this machine's files, and also stores them in the database.

    A file that only the database has is copied to this machine when it is read.
    """

    files: FileArtifacts
    database: Database
    clock: Clock
    most_bytes: int = MAX_SHARED_BYTES

    def path(self, ref: IssueRef, number: int, name: str) -> Path:
        """Copy the file here if another worker shared it."""
        place = self.files.path(ref, number, name)
        if not place.exists() and (content := self._shared(ref, number, name)) is not None:
            self.files.write_raw(place, content)
        return place

    def find(self, ref: IssueRef, number: int, name: str) -> str | None:
        """Find the files that any worker shared."""
        if found := self.files.find(ref, number, name):
            return found
        with self.database.read() as connection:
            row = connection.execute(select(FILE.size).where(_is(ref, number, name))).first()
        return f"{ref.repository}/{ref.number}/{number}/{name}" if row else None

    def write(self, ref: IssueRef, number: int, name: str, content: bytes) -> str:
        """Write the file here and to the database."""
        written = self.files.write(ref, number, name, content)
        self.share(self.files.path(ref, number, name))
        return written

    def share(self, path: Path) -> None:
        """Store the file in the database."""
        ref, number, name = _parts(self.name(path))
        content = self.files.read(self.name(path))
        if len(content) > self.most_bytes:
            log.warning("file_not_shared", issue=str(ref), file=name, bytes=len(content))
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
        with self.database.write_rows() as connection:
            connection.execute(delete(FILES_TABLE).where(_is(ref, number, name)))
            connection.execute(insert(FILES_TABLE).values(values))

    def share_issue(self, ref: IssueRef) -> None:
        """Share all local files of an issue's attempts, except logs."""
        for place in sorted((self.files.root / ref.repository / str(ref.number)).glob("*/*")):
            if place.suffix != ".log" and not place.name.startswith(".") and place.is_file():
                self.share(place)

    def fetch_issue(self, ref: IssueRef) -> None:
        """Copy the shared files of an issue's attempts to this machine."""
        mine = and_(FILE.repository == ref.repository, FILE.number == ref.number)
        with self.database.read() as connection:
            rows = connection.execute(select(FILE.attempt, FILE.name).where(mine)).all()
        for number, name in rows:
            self.path(ref, number, name)

    def name(self, path: Path) -> str:
        return self.files.name(path)

    def read(self, artifact: str, last: int | None = None) -> bytes:
        """UnavailableError if no worker has shared the artifact."""
        try:
            return self.files.read(artifact, last)
        except UnavailableError:
            content = self._shared(*_parts(artifact)) if artifact.count("/") >= DEPTH else None
            if content is None:
                raise
            return content if last is None else content[max(0, len(content) - last) :]

    def attempts(self) -> Sequence[AttemptFiles]:
        """Include the attempts whose files are in the database."""
        stored = self.files.attempts()
        seen = {(each.issue, each.number) for each in stored}
        key = (FILE.repository, FILE.number, FILE.attempt)
        wanted = select(*key, func.sum(FILE.size), func.max(FILE.at)).group_by(*key)
        with self.database.read() as connection:
            rows = connection.execute(wanted).all()
        shared = (
            AttemptFiles(IssueRef(name, issue), number, int(size), datetime.fromisoformat(at))
            for name, issue, number, size, at in rows
        )
        return (*stored, *(each for each in shared if (each.issue, each.number) not in seen))

    def remove(self, ref: IssueRef, number: int) -> None:
        """Remove the files here and in the database."""
        self.files.remove(ref, number)
        with self.database.write_rows() as connection:
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
