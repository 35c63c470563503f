"""Repositories of the retry benchmark: eighteen kinds of projects, with faults behind others.

A fault replaces one line. Its facts are what an engineer must read to fix it, each with its
spellings. Faults at the top of a list hide those below: the tool does not get that far.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import yaml

PROJECTS = Path(__file__).with_name("retry_repositories.yml")
Fact = tuple[str, ...]


class _Fault(TypedDict):
    file: str
    right: str
    wrong: str
    facts: list[list[str]]


class _Project(TypedDict):
    tool: str
    run: str
    files: dict[str, str]
    faults: list[_Fault]


BULK = 400
"""Lines of the new file that the agent adds in every second repository."""


@dataclass(frozen=True)
class Fault:
    """In `file`, the line `right` was replaced by `wrong`."""

    file: str
    right: str
    wrong: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class Project:
    """A project that passes, the shell line that checks it, and its faults."""

    tool: str
    run: str
    files: Mapping[str, str]
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Repository:
    """A project with some of its faults."""

    name: str
    project: Project
    faults: tuple[Fault, ...]
    adds_bulk: bool

    @property
    def held_out(self) -> bool:
        return zlib.crc32(self.name.encode()) % 3 == 0

    def files(self, fixed: frozenset[Fault]) -> dict[str, str]:
        """Give the tree with all faults but those that are fixed."""
        files = dict(self.project.files)
        for fault in self.faults:
            if fault not in fixed:
                assert fault.right in files[fault.file]
                files[fault.file] = files[fault.file].replace(fault.right, fault.wrong, 1)
        return files


SUBSETS = ((0, 2), (0, 1, 3), (0, 1, 2, 3, 4))


def repositories() -> Iterator[Repository]:
    """Yield every project with two, three and five faults."""
    for number, project in enumerate(_projects()):
        for position, chosen in enumerate(SUBSETS):
            faults = tuple(project.faults[at] for at in chosen)
            name = f"{project.tool}-{len(faults)}"
            yield Repository(name, project, faults, adds_bulk=(number + position) % 2 == 0)


def _projects() -> Iterator[Project]:
    read: list[_Project] = yaml.safe_load(PROJECTS.read_text())
    for told in read:
        faults = (
            Fault(fault["file"], fault["right"], fault["wrong"], tuple(map(tuple, fault["facts"])))
            for fault in told["faults"]
        )
        yield Project(told["tool"], told["run"], told["files"], tuple(faults))
