"""Build a rehearsal: an issue from a file, a local repository, and no GitHub."""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from mulligan.config.operator import (
    OPERATOR_FILE,
    STATE_HOME,
    GitHubSettings,
    Operator,
    SandboxMode,
)
from mulligan.domain.errors import UsageError
from mulligan.domain.issue import Issue, IssueRef, RepositoryFacts
from mulligan.git.local_clone import LocalClone, require_directory
from mulligan.git.worktrees.naming import repository_paths, worktree_paths
from mulligan.github.credentials import TokenCredentials
from mulligan.github.issue_file import LocalTracker, split_issue
from mulligan.github.writer import RehearsalWriter
from mulligan.implement.ports import Listener
from mulligan.interfaces.bootstrap.container import Container, Environment, Source, build_on
from mulligan.interfaces.onboarding.proposal import REMOTES, at_address

OWNER = "local"
BRANCH = re.compile(r"ref: refs/heads/(\S+)\s*")
INVALID_NAME_CHARS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class RehearsalSetup:
    """The issue to rehearse, and the clone and branch to start from."""

    issue: Issue
    clone: Path
    branch: str


def read_rehearsal_setup(file: Path, clone: Path) -> RehearsalSetup:
    """Read the issue and the branch of the clone; UsageError if either is invalid."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise UsageError(
            f"No file '{file}'. Write the issue into a Markdown file, with the title as its first"
            " line (# Title), and name that file."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} is not a readable text file. Name a Markdown file with the issue."
        ) from error
    found = split_issue(text)
    if found is None:
        raise UsageError(
            f"{file} has no heading. Add one as the first line; it becomes the title: # Title"
        )
    return RehearsalSetup(Issue(local_issue(clone), *found), clone, branch_of(clone))


def local_issue(clone: Path) -> IssueRef:
    """Return the issue that stands for work in a clone without GitHub."""
    name = INVALID_NAME_CHARS.sub("-", clone.name).strip(".") or "repository"
    return IssueRef(f"{OWNER}/{name}", 1)


def local_state() -> Path:
    """Return the directory for the files of `rehearse` and `check` that are kept."""
    return Path(STATE_HOME).expanduser() / "local"


def local_set_up() -> Path:
    """Return where both keep what setup commands left, so that they wait for them once a day."""
    return local_state() / "set-up"


def mirror_of(operator: Operator, scene: RehearsalSetup) -> Path:
    """Return the mirror that holds the commits of a rehearsal."""
    return repository_paths(operator.workspace.root.absolute(), scene.issue.ref.repository).mirror


def worktree_of(operator: Operator, scene: RehearsalSetup) -> Path:
    """Return the worktree of a rehearsal's last attempt."""
    return worktree_paths(operator.workspace.root.absolute(), scene.issue.ref).tree


def settings_file(config: Path | None, directory: Path, environment: Environment) -> Path | None:
    """Return the given file, else the first of the usual ones; `init` writes one above a clone."""
    named = environment.get("MULLIGAN_CONFIG")
    usual = (Path(OPERATOR_FILE), *([Path(named)] if named else []))
    above = directory.parent / OPERATOR_FILE
    return config or next((path for path in (*usual, above) if path.exists()), None)


def overrides_for(operator: Operator | None, clone: LocalClone) -> Mapping[str, JsonValue]:
    """Return the policy's keys that the operator's file overrides for the clone's repository."""
    if operator is None:
        return {}
    urls = (clone.url(remote) for remote in REMOTES)
    origin = next((found for url in urls if url and (found := at_address(url))), None)
    named = (
        each
        for each in operator.repositories
        if origin and each.name.casefold() == origin.name.casefold()
    )
    return next((each.policy for each in named), dict[str, JsonValue]())


@contextmanager
def build_rehearsal(
    operator: Operator,
    environment: Environment,
    listener: Listener,
    scene: RehearsalSetup,
    ask: Callable[[str], None],
) -> Generator[Container]:
    """Build for real attempts whose change stays local; `ask` receives the escalation comment."""
    local = local_source(scene, ask)
    # Without a sandbox, the result is of no use at another path.
    kept = None if operator.sandbox.mode is SandboxMode.OFF else local_set_up()
    place = local_state()
    with build_on(local, operator, environment, listener, kept, place) as (container, _):
        # The command itself prints where the commits are.
        yield container.with_dry_git(lambda _: None)


def local_source(scene: RehearsalSetup, ask: Callable[[str], None]) -> Source:
    """Return a tracker and a writer of one issue, without GitHub."""
    facts = RepositoryFacts(scene.issue.ref.repository, str(scene.clone), scene.branch)
    tracker = LocalTracker(scene.issue, facts)
    return Source(tracker, RehearsalWriter(tracker, ask), TokenCredentials(GitHubSettings()))


def branch_of(clone: Path) -> str:
    """Return the branch that a clone, or a linked git worktree, has checked out."""
    require_directory(clone)
    place = clone / ".git"
    try:
        if place.is_file():
            place = clone / place.read_text(encoding="utf-8").partition("gitdir: ")[2].strip()
        head = (place / "HEAD").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{clone} is not the top directory of a git repository. Name the directory of a clone."
        ) from error
    if found := BRANCH.fullmatch(head):
        return found[1]
    raise UsageError(f"{clone} has no branch checked out. Check out the branch to work on.")
