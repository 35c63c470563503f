"""Unpack the files of an image from a tar archive, without what could reach outside (IMAGE-1).

Only directories, regular files and links are made: no devices, no owners, no setuid bits. A file
is never written through a link of the archive.
"""

import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from mulligan.sandbox.cancellation import reason_to_stop
from mulligan.sandbox.image_root import LINK_TO_TMP, OWN, SHARED_TMP

DIRECTORY_MODE, FILE_MODE, PROGRAM_MODE = 0o755, 0o644, 0o755
"""Everything can be read by all and changed by nobody but Mulligan's user."""

COPY_BYTES = 1024**2

MAX_MEMBERS = 2_000_000
"""Limit of the files of an image."""

ENTRY_BYTES = 4096
"""What an entry counts at least, so that empty ones have a limit, too."""

FROM_OUTSIDE = ("hosts", "resolv.conf", "passwd", "group")
"""Files of /etc that a sandbox binds; with a file there, it binds /etc as a whole."""


class Unpacking:
    """Unpacks an archive into the new directory `root`, up to `most` bytes."""

    def __init__(self, root: Path, most: int) -> None:
        self._root = root
        self._left = most
        self._directories = {PurePosixPath()}
        """Directories that were made here; nothing else is a directory."""

    def unpack(self, archive: IO[bytes]) -> None:
        """Read the whole archive; TooLargeError or UnreadableImageError if it cannot be used."""
        self._root.mkdir()
        try:
            with tarfile.open(fileobj=archive, mode="r|") as members:
                for count, member in enumerate(members):
                    if reason := reason_to_stop():
                        raise reason
                    if count > MAX_MEMBERS:
                        raise UnreadableImageError(f"It has more than {MAX_MEMBERS} files.")
                    self._add(members, member)
                    # Otherwise it keeps all of them in memory.
                    vars(members)["members"] = list[tarfile.TarInfo]()
        except tarfile.TarError as error:
            raise UnreadableImageError(f"Its files cannot be read: {error}.") from error
        self._prepare()

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = _path(member.name)
        if path == PurePosixPath() or ".." in path.parts or path.parts[0] in OWN:
            return
        self._count(member.size if member.isreg() else 0)
        if member.isdir():
            self._make_directory(path)
            return
        self._make_directory(path.parent)
        place = self._root / path
        if path in self._directories:
            raise UnreadableImageError(f"It has a file in place of the directory {path}.")
        place.unlink(missing_ok=True)
        if member.issym():
            place.symlink_to(member.linkname)
        elif member.islnk():
            self._link(place, member.linkname)
        elif member.isreg():
            self._write(place, archive, member)

    def _count(self, size: int) -> None:
        self._left -= max(size, ENTRY_BYTES)
        if self._left < 0:
            raise TooLargeError

    def _make_directory(self, path: PurePosixPath) -> None:
        for each in (*reversed(path.parents), path):
            if each not in self._directories:
                # Whatever is there was made here, and is no directory.
                (self._root / each).unlink(missing_ok=True)
                (self._root / each).mkdir()
                # Whatever the umask is.
                (self._root / each).chmod(DIRECTORY_MODE)
                self._directories.add(each)

    def _link(self, place: Path, name: str) -> None:
        """Make a hard link to a file that was unpacked; skip one to anything else."""
        target = _path(name)
        source = self._root / target
        if ".." not in target.parts and target.parent in self._directories:
            if source.is_symlink():
                place.symlink_to(source.readlink())
            elif source.is_file():
                place.hardlink_to(source)

    def _write(self, place: Path, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        mode = PROGRAM_MODE if member.mode & 0o111 else FILE_MODE
        content = archive.extractfile(member)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(place, flags, mode), "wb") as file:
            if content:
                shutil.copyfileobj(content, file, COPY_BYTES)
            os.fchmod(file.fileno(), mode)

    def _prepare(self) -> None:
        """Make what a sandbox needs to bind /etc and /var as a whole."""
        for name in ("etc", SHARED_TMP.parent.name):
            if not os.path.lexists(self._root / name):
                self._make_directory(PurePosixPath(name))
        if PurePosixPath("etc") in self._directories:
            for name in FROM_OUTSIDE:
                self._make_file(self._root / "etc" / name)
        if PurePosixPath(SHARED_TMP.parent.name) in self._directories:
            place = self._root / SHARED_TMP.relative_to("/")
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            place.unlink(missing_ok=True)
            place.symlink_to(LINK_TO_TMP)

    @staticmethod
    def _make_file(place: Path) -> None:
        if place.is_symlink():
            place.unlink()
        if not os.path.lexists(place):
            place.touch()
            place.chmod(FILE_MODE)


def _path(name: str) -> PurePosixPath:
    return PurePosixPath(*(part for part in name.split("/") if part not in {"", "."}))


class TooLargeError(Exception):
    """The files are larger than the limit."""


class UnreadableImageError(Exception):
    """The archive is none, or has what cannot be unpacked."""
