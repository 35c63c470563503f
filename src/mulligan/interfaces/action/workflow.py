"""Build the workflow with which a repository calls Mulligan. Pure, except for its template file."""

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from mulligan.domain.errors import UsageError
from mulligan.domain.issue import COMMIT_SHA, REPOSITORY

TEMPLATE = Path(__file__).with_name("caller.yml")
WORKFLOW_FILE = ".github/workflows/mulligan.yml"
"""Its path in a repository."""
VERSION = re.compile(r"[A-Za-z0-9.+_-]{1,40}")


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    """The variable parts of the workflow: Mulligan's repository and commit, and the agent.

    `install` is the command that installs the agent on the runner; the repository's `secret` holds
    its key.
    """

    source: str
    sha: str
    version: str
    agent: str
    install: str = ""
    secret: str = ""
    command: str = ""
    model: str = ""
    minute: int = 17


def minute_of(repository: str) -> int:
    """Return a minute from 1 to 29 that depends on the repository, to spread the schedules."""
    return 1 + zlib.crc32(repository.lower().encode()) % 29


def workflow_text(caller: WorkflowSettings) -> str:
    """Return the file; UsageError if it would not be pinned to a commit."""
    if not REPOSITORY.fullmatch(caller.source) or not COMMIT_SHA.fullmatch(caller.sha):
        raise UsageError(
            "Write Mulligan's repository as OWNER/NAME, and the commit as 40 hexadecimal digits."
        )
    wanted = {"install": caller.install, "command": caller.command, "model": caller.model}
    inputs = "".join(f"      {key}: {_quoted(value)}\n" for key, value in wanted.items() if value)
    name = caller.secret
    secret = f"      {name.lower().replace('_', '-')}: ${{{{ secrets.{name} }}}}\n"
    return (
        TEMPLATE.read_text(encoding="utf-8")
        .format(
            source=caller.source,
            sha=caller.sha,
            version=caller.version if VERSION.fullmatch(caller.version) else "a commit",
            agent=_quoted(caller.agent),
            minute=caller.minute % 30,
            inputs=inputs,
            secrets=f"    secrets:\n{secret}" if name else "",
        )
        .rstrip("\n")
        + "\n"
    )


def _quoted(value: str) -> str:
    """Quote a value for YAML, unless it is a plain word; it never becomes an expression."""
    if re.fullmatch(r"[a-z][a-z-]*", value):
        return value
    return json.dumps(value.replace("${{", "$ {{"), ensure_ascii=False)
