"""Propose the workflow with which a repository calls the Action, as `mulligan init` does."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mulligan.config.operator import AgentSettings
from mulligan.starter.origin import Origin
from mulligan.starter.plan import Draft
from mulligan.starter.source import Source, named
from mulligan.surfaces.action.workflow import (
    KINDS,
    WORKFLOW_FILE,
    Caller,
    minute_of,
    workflow_text,
)
from mulligan.surfaces.cli.setup import environment
from mulligan.wiring.clone import agent_here
from mulligan.wiring.installation import installed_from

COMMAND = "command"
UNKNOWN = (
    "The workflow is left out, since this installation does not tell of which commit on GitHub it "
    "is; add --action OWNER/NAME@COMMIT to have Mulligan run as an Action."
)
OWN_AGENT = (
    "The workflow is left out, since mulligan.yml alone describes the agent {kind!r}; see "
    "docs/action.md for how an Action gets such a file."
)


@dataclass(frozen=True, slots=True)
class Proposed:
    """The file, where there is something to write, or a sentence that says why there is not."""

    draft: Draft | None = None
    said: str = ""


def propose_workflow(
    clone: Path, origin: Origin | None, agent: AgentSettings | None, action: str | None
) -> Proposed:
    """Propose `.github/workflows/mulligan.yml`; `action` is OWNER/NAME@COMMIT of Mulligan."""
    given, path = named(action) if action else None, clone / WORKFLOW_FILE
    if path.exists():
        return Proposed(said=f"{WORKFLOW_FILE} is there.")
    source = given or installed_from(environment())
    if source is None or not source.serves(origin):
        return Proposed(said=UNKNOWN)
    kind = agent.kind if agent else agent_here(environment()) or "claude"
    if kind not in {*KINDS, COMMAND}:
        return Proposed(said=OWN_AGENT.format(kind=kind))
    repository = origin.name if origin else clone.name
    return Proposed(Draft(path, workflow_text(_caller(source, kind, agent, repository))))


def _caller(source: Source, kind: str, agent: AgentSettings | None, repository: str) -> Caller:
    return Caller(
        source=source.name,
        sha=source.commit,
        version="",
        agent=kind,
        command=shlex.join(agent.command) if agent and kind == COMMAND else "",
        model=(agent.model if agent else None) or "",
        minute=minute_of(repository),
    )


def say_of_workflow(clone: Path, drafts: Iterable[Draft]) -> Iterator[str]:
    """Say what the workflow needs, where it was written."""
    for draft in drafts:
        if draft.path == clone / WORKFLOW_FILE:
            yield "either push the workflow too, and the Action does the work, or run it here"
            for name in sorted({each.secret for each in KINDS.values()} - {""}):
                if f"secrets.{name}" in draft.text:
                    yield f"for the Action, add the secret {name} to the repository"
