"""Makes the demo's world: a small Python repository, its people, and six issues."""

from dataclasses import dataclass
from pathlib import Path

from mulligan.domain.issue import IssueRef
from mulligan.errors import UnavailableError
from mulligan.simulator.bare import git
from mulligan.simulator.calculator import HISTORY, REPORTS, Step
from mulligan.simulator.world import World

REPOSITORY = "acme/calculator"
BOT = "mulligan-bot"
MAINTAINER = "maya"
READY = "mulligan"
"""The label that asks for work, unless a policy calls it otherwise."""
SCRIPTED_AGENT = Path(__file__).with_name("scripted_agent.py")
"""The demo's agent: to be run with `python3`, it needs nothing else."""


@dataclass(frozen=True, slots=True)
class Seeded:
    """What was made.

    The issues succeed at once, at the second try, and never; the fourth succeeds once its prompt
    says that nothing was changed, the fifth takes long, the sixth succeeds at once.
    """

    repository: str
    bare: Path
    issues: tuple[IssueRef, ...]


def seed(world: World, directory: Path, token: str, ready_label: str | None = READY) -> Seeded:
    """Make the repository below a directory, and the world around it.

    `token` becomes the bot's. The maintainer labels the issues, unless `ready_label` is None.
    """
    bare = make_repository(directory)
    world.add_user(BOT, "Bot", token)
    collaborators = {MAINTAINER: "admin", "sam": "write", BOT: "write"}
    world.add_repository(REPOSITORY, bare, "main", collaborators)
    issues = list[IssueRef]()
    for report in REPORTS:
        ref = world.open_issue(REPOSITORY, report.title, report.body, report.author)
        world.label(ref, report.label, MAINTAINER)
        if ready_label:
            world.label(ref, ready_label, MAINTAINER)
        issues.append(ref)
    return Seeded(REPOSITORY, bare, tuple(issues))


def make_repository(directory: Path) -> Path:
    """Make the bare repository with its history; its commits are the same on every machine."""
    bare = directory / f"{REPOSITORY}.git"
    bare.mkdir(parents=True, exist_ok=True)
    stream = b"".join(_commit(step) for step in HISTORY)
    made = (
        git(bare, "init", "--quiet", "--bare", "."),
        git(bare, "symbolic-ref", "HEAD", "refs/heads/main"),
        git(bare, "fast-import", "--quiet", stdin=stream),
    )
    if None in made:
        message = f"git could not make the demo's repository in {bare}; name an empty directory."
        raise UnavailableError(message)
    return bare


def _commit(step: Step) -> bytes:
    """Write a commit for `git fast-import`; it builds on the one before."""
    head = f"commit refs/heads/main\ncommitter {step.author} {step.at} +0000\n"
    files = (
        f"M 100644 inline {path}\n".encode() + _sized(text) for path, text in step.files.items()
    )
    return head.encode() + _sized(step.message) + b"".join(files) + b"\n"


def _sized(text: str) -> bytes:
    raw = text.encode()
    return f"data {len(raw)}\n".encode() + raw + b"\n"
