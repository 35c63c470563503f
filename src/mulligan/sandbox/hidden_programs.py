"""Find a program of this machine that a failed command names and the sandbox hides."""

import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import WorldError
from mulligan.sandbox.bubblewrap import Confinement
from mulligan.sandbox.process import Command
from mulligan.sandbox.programs import (
    directories_on_the_path,
    hops,
    installation_of,
    is_in_system,
    paths_of_environment,
)
from mulligan.sandbox.sandbox import Bubblewrap, CommandAccess, Sandbox

LAST_LINES, LINE_CHARS = 15, 500
"""The part of an output whose words may name a program."""

MAX_WORDS = 100
"""Limit of the words of an output to look for on the PATH."""

MAX_PATHS = 100
"""Limit of the paths to ask for inside."""

MAX_INTERPRETERS = 4
"""Limit of the interpreters of interpreters (execve(2))."""

FIRST_LINE_BYTES = 256
"""What Linux reads of a program to find its interpreter (execve(2))."""

WORD = re.compile(r"[\w+-][\w.+-]{0,63}")

LINE_WORD = re.compile(r"[\w./+@-]+")

EXISTENCE_TEST = 'while read -r path; do test -e "$path" || test -L "$path" || echo "$path"; done'
"""Reads paths, since the sandbox shows those in a command's arguments. A link is there even if its
target, which is a path of its own, is not."""

TEST_TIMEOUT = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class HiddenProgram:
    """A program at `path` of this machine, which needs `needed`; the sandbox hides that.

    With `read` in sandbox.read, the sandbox shows it.
    """

    name: str
    path: Path
    needed: Path
    read: Path

    @property
    def reason(self) -> str:
        """Return what is hidden, with paths of this machine."""
        hides = "it" if self.needed == self.path else str(self.needed)
        return f"{self.name!r} is installed at {self.path}, but the sandbox hides {hides}."

    @property
    def fix(self) -> str:
        """Return the setting that shows it."""
        return f"Add {self.read} to `sandbox.read` in mulligan.yml."

    @property
    def text(self) -> str:
        """Return the same for texts that are published, which name no path of this machine."""
        return (
            f"{self.name!r} is installed on Mulligan's machine, but the sandbox hides it or a file"
            " that it needs. The operator can show that with `sandbox.read`; Mulligan's log has the"
            " path."
        )


def find_hidden_program(
    sandbox: Sandbox, line: str, output: str, environment: Mapping[str, str]
) -> HiddenProgram | None:
    """Return the first program that a failed line or its output names, and the sandbox hides.

    `environment` is the command's. It starts a command inside only if something seems hidden.
    """
    if not isinstance(sandbox, Bubblewrap):
        return None
    common = sandbox.common
    shown = _shown(common, environment, sandbox.hidden_paths)
    found = dict[str, list[list[str]]]()
    for name in _words(line, output):
        # What commands can write may name any file.
        own = [each for each in _places(name, environment) if not _is_below(each, common.write)]
        places = [_needs(each, environment) for each in own]
        if places and all(any(not _is_in(each, shown) for each in needs) for needs in places):
            found[name] = places
    paths = dict.fromkeys(path for places in found.values() for needs in places for path in needs)
    missing = _missing(sandbox, [*paths][:MAX_PATHS], environment) if paths else set[str]()
    for name, places in found.items():
        lacking = [next((each for each in needs if each in missing), "") for needs in places]
        if all(lacking):
            needed = Path(lacking[0])
            if not _is_below(needed, sandbox.hidden_paths):
                read = installation_of(needed, sandbox.hidden_paths)
                return HiddenProgram(name, Path(places[0][0]), needed, read)
    return None


def _shown(
    common: Confinement, environment: Mapping[str, str], hidden: Sequence[Path]
) -> set[Path]:
    needed = paths_of_environment(environment, hidden, common.write)
    return {*needed, *common.read, *common.write}


def _words(line: str, output: str) -> Iterator[str]:
    """Yield each word that may be a program: those of the line, then those of the last output."""
    lines = [each[:LINE_CHARS] for each in output.splitlines() if each.strip()][-LAST_LINES:]
    # Only the line, which a maintainer wrote, may name a path.
    words = [*LINE_WORD.findall(line)[:MAX_WORDS]]
    words += dict.fromkeys(word.rstrip(".") for text in lines for word in WORD.findall(text))
    yield from [*dict.fromkeys(word for word in words if word)][:MAX_WORDS]


def _places(name: str, environment: Mapping[str, str]) -> list[str]:
    """List where a program is on the PATH of this machine."""
    if "/" in name:
        places = [name] if name.startswith("/") else []
    else:
        places = [f"{each}/{name}" for each in directories_on_the_path(environment)]
    return [each for each in places if os.path.isfile(each) and os.access(each, os.X_OK)]  # noqa: PTH113 - many


def _needs(program: str, environment: Mapping[str, str]) -> list[str]:
    """List the paths that a program needs to start: its links, and those of its interpreter."""
    found, started = list[str](), program
    for _ in range(MAX_INTERPRETERS):
        found += hops(started)
        started = _interpreter(found[-1], environment) if found else ""
        if not started:
            break
    return list(dict.fromkeys([program, *found]))


def _interpreter(program: str, environment: Mapping[str, str]) -> str:
    """Return the program that starts a script; empty if it is none, or its interpreter is."""
    if not Path(program).is_file():
        return ""
    with suppress(OSError), Path(program).open("rb") as file:
        first = file.read(FIRST_LINE_BYTES).partition(b"\n")[0]
        if first.startswith(b"#!"):
            name, *arguments = first[2:].decode(errors="replace").split() or [""]
            if Path(name).name == "env":
                wanted = (each for each in arguments if each[0] != "-" and "=" not in each)
                return next(iter(_places(next(wanted, ""), environment)), "")
            return name if name.startswith("/") else ""
    return ""


def _is_below(path: str | Path, places: Sequence[Path]) -> bool:
    return any(Path(path).is_relative_to(each) for each in places)


def _is_in(path: str, shown: Collection[Path]) -> bool:
    return is_in_system(path) or any(each in shown for each in (Path(path), *Path(path).parents))


def _missing(sandbox: Bubblewrap, paths: Sequence[str], environment: Mapping[str, str]) -> set[str]:
    """Return the paths that do not exist inside."""
    with suppress(WorldError, OSError), tempfile.TemporaryDirectory(prefix="mulligan-") as place:
        command = Command(
            argv=("/bin/sh", "-c", EXISTENCE_TEST),
            directory=Path(place),
            environment=environment,
            timeout=TEST_TIMEOUT,
            stdin="".join(f"{each}\n" for each in paths).encode(errors="surrogateescape"),
        )
        return {*sandbox.run(command, CommandAccess(write=(Path(place),))).text.splitlines()}
    return set()
