"""A podman that is a shell script: it has the images that a test gives it."""

import io
import json
import platform
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

SCRIPT = """#!/bin/sh
# Answers as podman 4 does, from the files beside it.
here=$(dirname "$0")
echo "$*" >> "$here/calls"
case "$1 $2" in
  "image inspect")
    test -f "$here/inspect.json" || {{ echo "Error: inspecting $3: image not known"; exit 125; }}
    cat "$here/inspect.json";;
  "pull --quiet") test -f "$here/trouble" && {{ cat "$here/trouble"; exit 125; }}
    cp "$here/remote.json" "$here/inspect.json"; echo pulled;;
  "build --layers") test -f "$here/trouble" && {{ cat "$here/trouble"; exit 125; }}
    test -f "$here/slow" && sleep "$(cat "$here/slow")"
    for each; do context=$each; done
    rm -rf "$here/context" && cp -R "$context" "$here/context"
    cp "$here/remote.json" "$here/inspect.json"; echo built;;
  "create --quiet") echo container;;
  export\\ *) test -f "$here/slow" && sleep "$(cat "$here/slow")"
    test -f "$here/broken" && {{ cat "$here/broken" >&2; exit 1; }}
    cat "$here/image.tar";;
esac
"""
AMD_OR_ARM = {"x86_64": "amd64", "aarch64": "arm64"}


def file(name: str, content: bytes = b"", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    """Give a member of an archive that is a regular file."""
    return _member(name, tarfile.REGTYPE, mode), content


def link(name: str, target: str, *, hard: bool = False) -> tuple[tarfile.TarInfo, bytes]:
    """Give a member that is a link."""
    made = _member(name, tarfile.LNKTYPE if hard else tarfile.SYMTYPE, 0o777)
    made.linkname = target
    return made, b""


def directory(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    """Give a member that is a directory."""
    return _member(name, tarfile.DIRTYPE, mode), b""


def special(name: str, kind: bytes) -> tuple[tarfile.TarInfo, bytes]:
    """Give a device or FIFO."""
    made = _member(name, kind, 0o666)
    made.devmajor, made.devminor = 1, 3
    return made, b""


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode, made.uid, made.gid = kind, mode, 4321, 4321
    return made


Members = Iterable[tuple[tarfile.TarInfo, bytes]]


def archive_of(members: Members) -> bytes:
    """Write an archive."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def archive_at(root: Path) -> bytes:
    """Write an archive of the files of a directory."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        archive.add(root, ".")
    return written.getvalue()


@dataclass(frozen=True)
class FakePodman:
    """The directory of the script, which goes on the PATH."""

    place: Path
    variables: list[str] = field(default_factory=list[str])

    def has(self, archive: bytes, digit: str = "a", architecture: str = "") -> None:
        """Give it an image that is on this machine, or in its registry."""
        machine = AMD_OR_ARM.get(platform.machine(), platform.machine())
        found = {
            "Digest": f"sha256:{digit * 64}",
            "Id": digit * 64,
            "Architecture": architecture or machine,
            "Os": "linux",
            "Config": {"Env": self.variables or None},
        }
        for name in ("inspect.json", "remote.json"):
            (self.place / name).write_text(json.dumps([found], indent=4))
        (self.place / "image.tar").write_bytes(archive)

    def only_in_registry(self) -> None:
        """Let it not have its image before a pull."""
        (self.place / "inspect.json").unlink(missing_ok=True)

    @property
    def context(self) -> Path:
        """The files of the last build."""
        return self.place / "context"

    def fails_to_pull(self, message: str) -> None:
        """Let each pull and build fail, with an empty message no more."""
        (self.place / "trouble").write_text(message)
        if not message:
            (self.place / "trouble").unlink()

    def lines(self) -> list[str]:
        """List the arguments of all calls."""
        calls = self.place / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def calls(self, word: str) -> int:
        """Count the calls that begin with a word."""
        return sum(line.startswith(word) for line in self.lines())


def fake_podman(place: Path, *variables: str) -> FakePodman:
    """Write the script in a new directory."""
    place.mkdir()
    script = place / "podman"
    script.write_text(SCRIPT.format())
    script.chmod(0o755)
    return FakePodman(place, [*variables])
