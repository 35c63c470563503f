"""`mulligan simulate --clone`: a simulated GitHub with a copy of one's own repository."""

import shlex
from pathlib import Path

import yaml

from github_simulator.bare_repository import git
from github_simulator.seed import BOT, MAINTAINER
from github_simulator.world import World
from mulligan.config.load import load_operator
from mulligan.domain.errors import UsageError
from mulligan.git.local_clone import LocalClone
from mulligan.interfaces.bootstrap.rehearsal import branch_of, local_issue
from mulligan.interfaces.cli.local_settings import settings_for
from mulligan.interfaces.cli.setup import DEFAULT, environment
from mulligan.interfaces.onboarding.proposal import at_address


def seed_clone(world: World, place: Path, clone: Path, token: str) -> tuple[str, Path]:
    """Copy the checked-out branch of a clone into the world; return its name and the copy.

    Nothing in the clone changes. Changes that are not committed are not copied.
    """
    branch, local = branch_of(clone), LocalClone(clone, environment())
    url = local.url("origin")
    found = at_address(url) if url else None
    name = found.name if found else local_issue(clone).repository
    bare = place / f"{name}.git"
    copied = ("clone", "--quiet", "--bare", "--no-hardlinks", "--single-branch", "--branch", branch)
    if local.commit() is None or git(place, *copied, str(clone), str(bare)) is None:
        raise UsageError(f"git could not copy {clone}; commit something on {branch} first.")
    world.add_user(BOT, "Bot", token)
    world.add_repository(name, bare, branch, {MAINTAINER: "admin", BOT: "write"})
    return name, bare


def write_settings(
    place: Path,
    url: str,
    copy: tuple[str, Path],
    clone: Path,
    agent: str | None,
    config: Path | None,
) -> Path:
    """Write the configuration for the copy of a clone; the agent is the user's."""
    given, policy = settings_for(clone, agent, config)
    name, bare = copy
    settings = {
        **given,
        "github": {"api_url": url, "token_file": str(place / "token")},
        "repositories": [{"name": name, "clone_url": str(bare), "policy": policy}],
        "state": {"url": f"sqlite:///{place}/mulligan.db"},
        "workspace": {"root": str(place / "work")},
    }
    written = place / DEFAULT
    written.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    load_operator(written, environment())
    return written


def fetch_command(bare: Path, clone: Path) -> str:
    """Return the command that gets Mulligan's branches into the clone."""
    names = "'refs/heads/mulligan/*:refs/remotes/practice/*'"
    return f"git -C {shlex.quote(str(clone))} fetch {shlex.quote(str(bare))} {names}"
