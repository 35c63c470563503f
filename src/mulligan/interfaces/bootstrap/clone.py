"""Read facts for `mulligan init`: a clone, its labels, installed agents, this installation."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import mulligan
from mulligan.agents.adapters import BUILT_IN_AGENTS
from mulligan.config.load import load_policy
from mulligan.config.operator import Operator
from mulligan.config.policy import Labels
from mulligan.domain.errors import MisconfiguredError, MulliganError, UsageError
from mulligan.git.local_clone import require_directory
from mulligan.git.remote_ref import open_remote_ref
from mulligan.git.repository import Repository
from mulligan.github.app import MadeApp, convert, manifest, page, web_url
from mulligan.github.client import Client
from mulligan.github.connection import Transport
from mulligan.github.labels import LabelStyle, label_styles
from mulligan.interfaces.bootstrap.container import (
    QUICK_RETRIES,
    Environment,
    GitHub,
    for_git,
    open_github,
    remote_of,
    signing_key_of,
)
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.onboarding.proposal import (
    SET_UP_BRANCH,
    ActionSource,
    origin_of,
    policy_pull_request,
    recorded,
    source_at,
)
from mulligan.interfaces.onboarding.tree import (
    FILES_TO_READ,
    Machine,
    RepositoryFiles,
    matches_pattern,
)
from mulligan.sandbox.process import Command, run

__all__ = ["BUILT_IN_AGENTS", "MadeApp", "Registration", "agent_here", "agents_here"]

MULLIGAN_CHECKOUT = Path(mulligan.__file__).parents[2]
"""The checkout of Mulligan, if it runs from one."""


MAX_DEPTH = 4

MAX_FILES = 20_000

MAX_FILE_BYTES = 256 * 1024

SKIPPED_DIRECTORIES = frozenset(
    {".git", ".venv", "venv", "node_modules", "target", "build", "dist", "vendor"}
)


def agents_here(environment: Mapping[str, str]) -> tuple[str, ...]:
    """List the built-in agents that are installed."""
    path = environment.get("PATH", os.defpath)
    return tuple(
        kind
        for kind, agent in BUILT_IN_AGENTS.items()
        if shutil.which(agent.adapter.program, path=path)
    )


def agent_here(environment: Mapping[str, str]) -> str:
    """Return the first built-in agent that is installed; the first of all if none is."""
    return next(iter(agents_here(environment)), next(iter(BUILT_IN_AGENTS)))


GH_TIMEOUT = timedelta(seconds=30)


def gh_token(environment: Environment, host: str = "") -> str:
    """Return the token of GitHub's own command line, `gh`; UsageError if it has none."""
    asked = ("gh", "auth", "token", *(("--hostname", host) if host else ()))
    command = Command(argv=asked, directory=Path.cwd(), environment=environment, timeout=GH_TIMEOUT)
    try:
        done = run(command)
    except MisconfiguredError as error:
        raise UsageError(
            "The program `gh` was not found. Install it, or set GITHUB_TOKEN instead."
        ) from error
    token = done.text.strip()
    if done.exit_code or not token or len(token.split()) > 1:
        raise UsageError(f"`{' '.join(asked)}` gave no token. Run `gh auth login` first.")
    return token


def installed_from(
    environment: Environment, checkout: Path = MULLIGAN_CHECKOUT
) -> ActionSource | None:
    """Return the source of this installation, by the installer's record or the checkout."""
    return recorded(_installer_record()) or _checked_out(environment, checkout)


def _installer_record() -> str | None:
    try:
        return distribution("mulligan").read_text("direct_url.json")
    except PackageNotFoundError:
        return None


def _checked_out(environment: Environment, checkout: Path) -> ActionSource | None:
    """Return the commit that is checked out, if a remote branch contains it."""
    if not (checkout / ".git").is_dir():
        return None
    git = Repository("Mulligan's checkout", checkout / ".git", environment)
    try:
        commit = git.line("rev-parse", "--verify", "HEAD")
        if not git.line("for-each-ref", "--count=1", "--contains", commit, "refs/remotes"):
            return None
    except MulliganError:
        return None
    return source_at(origin_of(git_config(checkout)), commit)


VERSION_TIMEOUT = timedelta(seconds=10)


def machine_here(environment: Environment) -> Machine:
    """Return the programs on the PATH, and the versions of Python (`3.12`) and Node (`22`)."""
    places = map(Path, environment.get("PATH", os.defpath).split(os.pathsep))
    names = (file.name for place in places if place.is_dir() for file in place.iterdir())
    return Machine(
        python=_version(environment, "python3", PYTHON_VERSION),
        node=_version(environment, "node", NODE_VERSION),
        programs=frozenset(names),
    )


PYTHON_VERSION = re.compile(r"Python (3\.\d+)")
NODE_VERSION = re.compile(r"v(\d+)")


def _version(environment: Environment, program: str, pattern: re.Pattern[str]) -> str:
    asked = (program, "--version")
    command = Command(
        argv=asked, directory=Path.cwd(), environment=environment, timeout=VERSION_TIMEOUT
    )
    try:
        found = pattern.search(run(command).text)
    except MisconfiguredError:
        return ""
    return found[1] if found else ""


def read_tree(directory: Path) -> RepositoryFiles:
    """Read the names of a repository's files, and the text of those that configure its checks."""
    paths = [path for path, _ in zip(_paths(directory, 1), range(MAX_FILES), strict=False)]
    names = {path.relative_to(directory).as_posix(): path for path in paths}
    texts = {
        name: text
        for name, path in names.items()
        if any(matches_pattern(name, pattern) for pattern in FILES_TO_READ)
        and (text := _text(path))
    }
    return RepositoryFiles(frozenset(names), texts)


def git_config(directory: Path) -> str:
    """Return the text of a clone's git configuration; UsageError if it is no clone."""
    require_directory(directory)
    place = directory / ".git"
    if not place.exists():
        raise UsageError(
            f"{directory} is not the top directory of a git repository. Name the"
            " directory of a clone."
        )
    return _text(place / "config")


def missing_labels(
    operator: Operator, environment: Mapping[str, str], repository: str, labels: Labels
) -> tuple[str, ...]:
    """List the labels of Mulligan that a repository lacks."""
    with open_github(
        operator, environment, redactor_of(operator, environment), QUICK_RETRIES
    ) as github:
        return tuple(look.name for look in _missing(github, repository, labels))


def create_labels(
    operator: Operator, environment: Mapping[str, str], repository: str, labels: Labels
) -> None:
    """Create the labels of Mulligan that a repository lacks, with colour and description."""
    with open_github(
        operator, environment, redactor_of(operator, environment), QUICK_RETRIES
    ) as github:
        for look in _missing(github, repository, labels):
            github.writer.create_label(repository, look)


def _missing(github: GitHub, repository: str, labels: Labels) -> list[LabelStyle]:
    existing = {name.casefold() for name in github.tracker.label_names(repository)}
    return [look for look in label_styles(labels) if look.name.casefold() not in existing]


@dataclass(frozen=True, slots=True)
class ProposedPull:
    """The pull request with the policy; `state` is opened, open, merged or closed."""

    url: str
    state: str


def propose_policy(
    operator: Operator, environment: Environment, repository: str, policy: str, path: str
) -> ProposedPull | None:
    """Open the pull request that adds a policy, once; None if the base branch has this policy.

    The branch and the pull request are looked for first, so that a repeated call changes nothing.
    """
    content = load_policy(policy.encode(), {}, path)
    settings = next(each for each in operator.repositories if each.name == repository)
    with open_github(
        operator, environment, redactor_of(operator, environment), QUICK_RETRIES
    ) as github:
        if found := github.writer.find_branch(repository, SET_UP_BRANCH):
            state = "merged" if found.merged_at else found.state
            return ProposedPull(found.html_url, state)
        base = settings.base_branch or github.tracker.repository(repository).default_branch
        text = policy_pull_request(path, base, content.labels.ready, len(content.checks))
        ref, remote = f"refs/heads/{SET_UP_BRANCH}", remote_of(operator, github, repository)
        git, key = for_git(operator, environment), signing_key_of(operator)
        with open_remote_ref(ref, text.title, git, remote, key) as branch:
            # A branch without a pull request is from a run that was killed.
            if not (branch.tip() or branch.add_to(base, {path: policy.encode()})):
                return None
        opened = github.writer.propose_branch(
            repository, SET_UP_BRANCH, base, text.title, text.body
        )
    return ProposedPull(opened.html_url, "opened")


def _paths(directory: Path, depth: int) -> Iterator[Path]:
    """List the files of a directory and its subdirectories, without following links."""
    for entry in sorted(os.scandir(directory), key=lambda each: each.name):
        if entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        elif (
            depth < MAX_DEPTH
            and entry.is_dir(follow_symlinks=False)
            and entry.name not in SKIPPED_DIRECTORIES
        ):
            yield from _paths(Path(entry.path), depth + 1)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_FILE_BYTES).decode(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Registration:
    """The GitHub App to register: its server, its owner and its name."""

    api_url: str
    name: str
    organization: str | None = None
    bundle: Path | None = None

    def page(self, state: str, back: str) -> str:
        """Return the page for the browser; GitHub redirects to `back` with a code and the state."""
        web = web_url(self.api_url)
        return page(web, self.organization, state, manifest(self.name, web, back))

    def exchange(self, code: str) -> MadeApp:
        """Exchange the code for the App's credentials; WorldError if GitHub refuses."""
        transport = Transport(bundle=self.bundle)
        client = Client(self.api_url, lambda _: None, QUICK_RETRIES, transport)
        try:
            return convert(client, code)
        finally:
            client.close()
