"""Git's objects and refs in a bare repository, read and written here: no process is started."""

import hashlib
import os
import subprocess
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE, PROGRAM, LINK, TREE = "100644", "100755", "120000", "40000"
CONTENTS = dict[str, tuple[str, bytes]]()
"""The kind and content of every object that this process has met; their ids are what they are."""


class Entry(NamedTuple):
    """A file of a tree."""

    mode: str
    sha: str


Files = Mapping[str, Entry]
"""The files of a tree by their path from its root, in git's order of nothing in particular."""


@dataclass(frozen=True)
class CommitObject:
    """The header of a commit."""

    tree: str
    parents: tuple[str, ...]
    time: int


@dataclass(frozen=True)
class ObjectStore:
    """A bare repository on disk, which git itself may use at any time."""

    path: Path

    @property
    def exists(self) -> bool:
        return (self.path / "HEAD").exists()

    def make(self, branch: str) -> None:
        """Make it, empty, for git to recognise."""
        for name in ("objects", "refs/heads"):
            (self.path / name).mkdir(parents=True, exist_ok=True)
        (self.path / "HEAD").write_text(f"ref: refs/heads/{branch}\n")

    # Refs.

    def ref(self, name: str) -> str | None:
        """Give the object of a ref, by its full name; None where there is none."""
        try:
            return (self.path / name).read_text().strip()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return self._packed_refs().get(name)

    def set_ref(self, name: str, sha: str) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{sha}\n")

    def branch(self, name: str) -> str | None:
        return self.ref(f"refs/heads/{name}")

    def heads(self, start: str) -> dict[str, str]:
        """Map the refs of the branches whose names begin so to their commits."""
        places = (self.path / "refs" / "heads").rglob("*")
        loose = {str(place.relative_to(self.path)) for place in places if place.is_file()}
        names = [name for name in {*loose, *self._packed_refs()} if name.startswith(start)]
        return {name: sha for name in names if (sha := self.ref(name))}

    def _packed_refs(self) -> dict[str, str]:
        try:
            lines = (self.path / "packed-refs").read_text().splitlines()
        except FileNotFoundError:
            return {}
        named = (line.partition(" ") for line in lines if not line.startswith(("#", "^")))
        return {name: sha for sha, _, name in named}

    # Objects.

    def has(self, sha: str) -> bool:
        """Return whether an object exists here."""
        if self._place(sha).exists():
            return True
        return self._has_packs and self._packed(sha) is not None

    def read(self, sha: str) -> tuple[str, bytes]:
        """Give the kind and the content of an object that is here; KeyError where it is not."""
        if sha not in CONTENTS:
            found = self._loose(sha) or self._packed(sha)
            if found is None:
                raise KeyError(sha)
            CONTENTS[sha] = found
        return CONTENTS[sha]

    def write(self, kind: str, content: bytes) -> str:
        """Store an object; give its id."""
        whole = f"{kind} {len(content)}\0".encode() + content
        sha = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        CONTENTS[sha] = (kind, content)
        place = self._place(sha)
        if not place.exists():
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(zlib.compress(whole, 1))
        return sha

    def copy(self, source: "ObjectStore", sha: str) -> None:
        """Fetch an object from another repository, with all that it needs."""
        missing = [sha]
        while missing:
            wanted = missing.pop()
            if not self._place(wanted).exists():
                kind, content = source.read(wanted)
                self.write(kind, content)
                missing += _needed(kind, content)

    def _place(self, sha: str) -> Path:
        return self.path / "objects" / sha[:2] / sha[2:]

    def _loose(self, sha: str) -> tuple[str, bytes] | None:
        try:
            whole = zlib.decompress(self._place(sha).read_bytes())
        except FileNotFoundError:
            return None
        head, _, content = whole.partition(b"\0")
        return head.decode().split(" ")[0], content

    @property
    def _has_packs(self) -> bool:
        return any((self.path / "objects" / "pack").glob("*.pack"))

    def _packed(self, sha: str) -> tuple[str, bytes] | None:
        """Read a packed object with git; only large repositories have them."""
        argv = ["git", "--git-dir", str(self.path), "cat-file", "--batch"]
        done = subprocess.run(argv, input=f"{sha}\n".encode(), capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\n")
        _, kind, *size = head.decode().split()
        return (kind, content[: int(size[0])]) if size else None

    # Trees and commits.

    def commit(self, sha: str) -> CommitObject:
        kind, content = self.read(sha)
        assert kind == "commit", sha
        return _commit(content)

    def files(self, sha: str) -> Files:
        """List the files of a commit, or of a tree."""
        kind, _ = self.read(sha)
        return dict(self._below(self.commit(sha).tree if kind == "commit" else sha, ""))

    def blob(self, sha: str) -> bytes:
        return self.read(sha)[1]

    def ancestors(self, *commits: str) -> set[str]:
        """List the commits and all their ancestors."""
        found, left = set[str](), [*commits]
        while left:
            sha = left.pop()
            if sha not in found:
                found.add(sha)
                left += self.commit(sha).parents
        return found

    def reachable(self, sha: str) -> set[str]:
        """List an object and all that it needs."""
        found, left = set[str](), [sha]
        while left:
            wanted = left.pop()
            if wanted not in found:
                found.add(wanted)
                left += _needed(*self.read(wanted))
        return found

    def write_tree(self, files: Files) -> str:
        """Store the directories of these files, whose contents are here."""
        names, below = dict[str, Entry](), dict[str, dict[str, Entry]]()
        for path, entry in files.items():
            first, _, rest = path.partition("/")
            if rest:
                below.setdefault(first, {})[rest] = entry
            else:
                names[first] = entry
        names |= {name: Entry(TREE, self.write_tree(part)) for name, part in below.items()}
        return self.write("tree", b"".join(_listed(names)))

    def write_commit(
        self, tree: str, parents: Iterable[str], message: str, who: str, when: int | None = None
    ) -> str:
        """Store a commit; `who` is a name and an address, `when` defaults to now."""
        signed = f"{who} {int(time.time()) if when is None else when} +0000"
        lines = [f"tree {tree}", *(f"parent {sha}" for sha in parents)]
        lines += [f"author {signed}", f"committer {signed}", "", message]
        return self.write("commit", "\n".join(lines).encode())

    def _below(self, tree: str, path: str) -> Iterator[tuple[str, Entry]]:
        for name, entry in _entries(self.read(tree)[1]):
            if entry.mode == TREE:
                yield from self._below(entry.sha, f"{path}{name}/")
            else:
                yield f"{path}{name}", entry


@cache
def _commit(content: bytes) -> CommitObject:
    head = content.partition(b"\n\n")[0].decode().splitlines()
    fields = [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in head]
    parents = tuple(value for name, value in fields if name == "parent")
    told = dict(fields)
    return CommitObject(told["tree"], parents, int(told["committer"].split()[-2]))


@cache
def _entries(content: bytes) -> tuple[tuple[str, Entry], ...]:
    """Read the entries of one tree."""
    found = list[tuple[str, Entry]]()
    while content:
        head, _, rest = content.partition(b"\0")
        mode, _, name = head.partition(b" ")
        found.append((os.fsdecode(name), Entry(mode.decode(), rest[:20].hex())))
        content = rest[20:]
    return tuple(found)


def _listed(names: Mapping[str, Entry]) -> Iterator[bytes]:
    """Write the entries of one tree in git's order, in which a directory's name ends with "/"."""

    def order(name: str) -> bytes:
        return os.fsencode(name + "/" * (names[name].mode == TREE))

    for name in sorted(names, key=order):
        mode, sha = names[name]
        yield os.fsencode(f"{mode} {name}\0") + bytes.fromhex(sha)


def _needed(kind: str, content: bytes) -> list[str]:
    if kind == "commit":
        made = _commit(content)
        return [made.tree, *made.parents]
    return [entry.sha for _, entry in _entries(content)] if kind == "tree" else []
