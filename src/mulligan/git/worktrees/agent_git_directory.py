"""The agent's own git directory: built from plain files, deleted after use, never trusted.

The agent can log, diff, stage, commit, branch and rebase in it. Hooks, drivers and configuration
that it adds affect only the agent itself.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import COMMIT_SHA
from mulligan.git.repository import Repository

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[user]
\tname = agent
\temail = agent@bot.invalid
[gc]
\tauto = 0
[commit]
\tgpgsign = false
"""
HEADS = "refs/heads/"
MAX_HEADS = 1000
MAX_TIPS = 50
"""Limit of branches and former HEADs to search for work that is not checked out."""
STASH = "stash"
LOG_BYTES = 20_000
REF_BYTES = 1000
PACKED_BYTES = 10_000_000
SYMBOLIC_DEPTH = 5
COUNT_TIMEOUT = timedelta(seconds=20)
"""Time limit of counting commits, of which each may be as large as the memory of git."""


@dataclass(frozen=True, slots=True)
class AgentCommits:
    """The result in an agent's git directory: its number of commits, and its HEAD.

    `tips` maps the names of branches, of the stash, and of former HEADs and those of linked
    worktrees to their commits.
    """

    commits: int = 0
    head: str | None = None
    tips: Mapping[str, str] = field(default_factory=dict[str, str])


def write(
    agent_git_dir: Path,
    refs: Mapping[str, str],
    branch: str,
    sources: tuple[Path, Path],
    excluded: Sequence[str],
) -> None:
    """Recreate the git directory, with HEAD on `branch`.

    `sources` are the index to copy, and the objects to borrow; `excluded` are patterns to ignore.
    """
    index, objects = sources
    for part in ("info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (agent_git_dir / part).mkdir(parents=True)
    (agent_git_dir / "HEAD").write_text(f"ref: {HEADS}{branch}\n")
    (agent_git_dir / "config").write_text(CONFIG)
    (agent_git_dir / "info" / "exclude").write_text("".join(f"{pattern}\n" for pattern in excluded))
    (agent_git_dir / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    (agent_git_dir / "packed-refs").write_text(
        "".join(f"{sha} {name}\n" for name, sha in sorted(refs.items()))
    )
    shutil.copyfile(index, agent_git_dir / "index")


def read(decoy: Path, repository: Repository, start_sha: str) -> AgentCommits:
    """Count the agent's commits; `repository` borrows the decoy's objects.

    By now `decoy` holds only files and directories. If one of its branches cannot be read, only
    the commits of HEAD count.
    """
    if decoy.is_symlink() or not decoy.is_dir():
        return AgentCommits()
    # An agent could point git at any directory of this machine.
    for pointer in ("alternates", "http-alternates"):
        with suppress(OSError):
            (decoy / "objects" / "info" / pointer).unlink()
    heads = {**dict(islice(_packed(decoy), MAX_HEADS)), **dict(_loose(decoy))}
    head = _resolve(_text(decoy / "HEAD"), decoy, heads)
    claimed = {*heads.values(), *([head] if head else ())}
    tips = {name.removeprefix(HEADS): sha for name, sha in heads.items()} | dict(_unnamed(decoy))
    if claimed <= {start_sha}:
        return AgentCommits(0, head, tips)
    count = _count(repository, claimed, start_sha)
    # One by one, thousands of branches would take hours.
    if count is None and head and (count := _count(repository, {head}, start_sha)) is None:
        head = None
    return AgentCommits(count or 0, head, tips)


def unseen_work(found: AgentCommits, repository: Repository, start: tuple[str, str]) -> list[str]:
    """Name the branches, stash and former HEADs with work that HEAD lacks.

    `start` is the start commit and its tree: a commit that changes nothing is no work.
    """
    start_sha, start_tree = start
    known, names = [start_sha, *([found.head] if found.head else ())], list[str]()
    for name, sha in islice(found.tips.items(), MAX_TIPS):
        if sha not in known and not _trees(repository, sha, known) <= {start_tree}:
            names.append(name)
            known.append(sha)
    return names


def _trees(repository: Repository, sha: str, known: Sequence[str]) -> set[str]:
    """Return the trees of new commits; none if they cannot be read in time."""
    listed = ("rev-list", f"--max-count={MAX_TIPS}", "--format=%T", sha, "--not", *known, "--all")
    try:
        answer = repository.attempt(*listed, timeout=COUNT_TIMEOUT)
    except UnavailableError:
        return set()
    return set() if answer.exit_code else set(answer.text.splitlines()[1::2])


def _unnamed(decoy: Path) -> Iterator[tuple[str, str]]:
    """Yield the stash, the HEADs of linked worktrees, and the former HEADs, the last one first."""
    if COMMIT_SHA.fullmatch(sha := _text(decoy / "refs" / "stash")):
        yield STASH, sha
    for head in islice((decoy / "worktrees").glob("*/HEAD"), MAX_TIPS):
        if COMMIT_SHA.fullmatch(sha := _text(head)):
            yield sha[:10], sha
    for line in reversed(_text(decoy / "logs" / "HEAD", LOG_BYTES).splitlines()):
        sha = line.partition(" ")[2].partition(" ")[0]
        if COMMIT_SHA.fullmatch(sha):
            yield sha[:10], sha


def _count(repository: Repository, shas: set[str], start_sha: str) -> int | None:
    """Count the commits that Mulligan did not have; None if they cannot be read in time."""
    counted = ("rev-list", "--count", *sorted(shas), "--not", start_sha, "--all")
    try:
        answer = repository.attempt(*counted, timeout=COUNT_TIMEOUT)
    except UnavailableError:
        return None
    return None if answer.exit_code else int(answer.last_line)


def _packed(decoy: Path) -> Iterator[tuple[str, str]]:
    lines = _text(decoy / "packed-refs", PACKED_BYTES).splitlines()
    for line in lines:
        sha, _, name = line.partition(" ")
        if name.startswith(HEADS) and COMMIT_SHA.fullmatch(sha):
            yield name, sha


def _loose(decoy: Path) -> Iterator[tuple[str, str]]:
    for file in islice(_files(decoy / "refs" / "heads"), MAX_HEADS):
        if COMMIT_SHA.fullmatch(sha := _text(file)):
            yield os.fspath(file.relative_to(decoy)), sha


def _files(top: Path) -> Iterator[Path]:
    """List the files below a directory; os.walk would fail at a thousand levels."""
    waiting = [top]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry))
                else:
                    yield Path(entry)


def _resolve(found: str, decoy: Path, heads: Mapping[str, str]) -> str | None:
    """Follow HEAD through symbolic refs; return the commit's hash, or None."""
    for _ in range(SYMBOLIC_DEPTH):
        if COMMIT_SHA.fullmatch(found):
            return found
        name = found.removeprefix("ref: ")
        if name == found or ".." in name or not name.startswith("refs/"):
            return None
        found = heads.get(name) or _text(decoy / name)
    return None


def _text(file: Path, size: int = REF_BYTES) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(size).decode(errors="replace").strip()
    except (OSError, ValueError):
        return ""
