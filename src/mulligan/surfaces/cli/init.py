"""`mulligan init`: propose a start for a clone, show it, and write it where it is wanted."""

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mulligan.config.load import load_operator, load_policy
from mulligan.config.operator import Operator
from mulligan.config.policy import Labels
from mulligan.domain.issue import REPOSITORY
from mulligan.errors import MulliganError, UsageError
from mulligan.retry.words import counted
from mulligan.starter.ecosystems import propose
from mulligan.starter.files import operator_text, policy_text
from mulligan.starter.origin import Origin, origin_of
from mulligan.starter.plan import Draft
from mulligan.starter.proposal import Proposal
from mulligan.surfaces.cli.calling import propose_workflow, say_of_workflow
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.program import program
from mulligan.surfaces.cli.register import Wanted, register
from mulligan.surfaces.cli.setup import DEFAULT, configuration_path, environment, make_console
from mulligan.wiring.clone import (
    agent_here,
    create_labels,
    git_config,
    missing_labels,
    read_tree,
)

POLICY = Path(".github") / "mulligan.yml"
STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    directory: Path
    yes: bool = False
    repository: str | None = None
    config: Path | None = None
    workflow: bool = True
    action: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """All that would be done: files to write, and labels to create."""

    drafts: tuple[Draft, ...]
    missing: tuple[str, ...]
    labels: Labels
    operator: Operator | None
    origin: Origin | None


def init(asked: Asked) -> Exit:
    """Propose, show, ask, write; what is there already is left as it is."""
    console, clone = make_console(), asked.directory.absolute()
    origin, config = _origin(asked, git_config(clone)), _operator_path(asked, clone)
    start = _plan(console, clone, origin, config)
    if asked.workflow:
        start = _with_workflow(console, start, clone, asked.action)
    if not (start.drafts or start.missing):
        console.print("Nothing to do.")
        return Exit.DONE
    for draft in start.drafts:
        _show(console, draft)
    if start.missing and origin:
        names = ", ".join(start.missing)
        console.print(f"\nLabels to create on {escape(origin.name)}: {escape(names)}")
    if not _agreed(console, asked):
        console.print("Nothing was written.")
        return Exit.FAILED
    _carry_out(console, start)
    _say_next(console, clone, config, start)
    return Exit.DONE


def init_app(asked: Asked, wanted: Wanted) -> Exit:
    """Have GitHub make an App; a clone only says for which repository, and on which server."""
    clone = asked.directory.absolute()
    origin = _origin(asked, git_config(clone) if (clone / ".git").exists() else "")
    return register(wanted, origin, _operator_path(asked, clone))


def _origin(asked: Asked, config: str) -> Origin | None:
    found = origin_of(config)
    if asked.repository is None:
        return found
    if not REPOSITORY.fullmatch(asked.repository):
        message = f"{asked.repository!r} does not name a repository; write OWNER/NAME."
        raise UsageError(message)
    return Origin(asked.repository, found.host if found else "")


def _operator_path(asked: Asked, clone: Path) -> Path:
    """Find where the operator's file is, or belongs: never into the clone by itself."""
    path = configuration_path(asked.config)
    if asked.config or path != DEFAULT or path.exists():
        return path
    return clone.parent / DEFAULT if Path.cwd().is_relative_to(clone) else path


def _plan(console: Console, clone: Path, origin: Origin | None, config: Path) -> Start:
    drafts, labels = list[Draft](), Labels()
    policy, proposal = clone / POLICY, propose(read_tree(clone))
    if policy.exists():
        found = load_policy(policy.read_bytes(), {}, str(policy))
        labels = found.labels
        console.print(f"{POLICY} is there, with {counted(len(found.checks), 'check')}.")
    else:
        console.print(escape(_found(proposal, clone)))
        drafts.append(Draft(policy, policy_text(proposal)))
    operator = _operator(console, origin, config, drafts)
    missing = _missing(console, operator, origin, labels)
    return Start(tuple(drafts), missing, labels, operator, origin)


def _with_workflow(console: Console, start: Start, clone: Path, action: str | None) -> Start:
    agent = start.operator.agent if start.operator else None
    proposed = propose_workflow(clone, start.origin, agent, action)
    if proposed.draft is None:
        console.print(escape(proposed.said))
        return start
    return replace(start, drafts=(*start.drafts, proposed.draft))


def _found(proposal: Proposal, clone: Path) -> str:
    if not proposal.checks:
        return f"Nothing in {clone} says how it is tested; name its checks in the file below."
    return f"{proposal.ecosystem}: {counted(len(proposal.checks), 'check')} found in {clone}."


def _operator(
    console: Console, origin: Origin | None, config: Path, drafts: list[Draft]
) -> Operator | None:
    """Read the operator's file, or draft one; None where it is not known for what repository."""
    if config.exists():
        return load_operator(config, environment(), needs_token=False)
    if origin is None:
        console.print("No remote is on a GitHub; --repository OWNER/NAME gives a mulligan.yml too.")
        return None
    draft = Draft(config, operator_text(origin, agent_here(environment()) or "claude"))
    drafts.append(draft)
    with tempfile.TemporaryDirectory() as place:
        trial = Path(place) / DEFAULT
        trial.write_text(draft.text, encoding="utf-8")
        return load_operator(trial, environment(), needs_token=False)


def _missing(
    console: Console, operator: Operator | None, origin: Origin | None, labels: Labels
) -> tuple[str, ...]:
    """Ask GitHub which labels are missing; without a token they are left for later."""
    if operator is None or origin is None:
        return ()
    named = {each.name.lower() for each in operator.repositories}
    github = operator.github
    has_token = github.token_file or (github.token and github.token.get_secret_value())
    if not has_token or origin.name.lower() not in named:
        why = "mulligan.yml does not name it" if has_token else "the token's variable is not set"
        console.print(f"The labels of {escape(origin.name)} were not looked at: {why}.")
        return ()
    try:
        return missing_labels(operator, environment(), origin.name, labels)
    except MulliganError as error:
        console.print(f"The labels could not be looked at: {escape(str(error))}")
        return ()


def _show(console: Console, draft: Draft) -> None:
    console.print()
    for line in draft.diff(_shown(draft.path)):
        console.print(Text(line, STYLES.get(line[:1], "")))


def _shown(path: Path) -> str:
    """Give a path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _agreed(console: Console, asked: Asked) -> bool:
    if asked.yes:
        return True
    if not sys.stdin.isatty():
        message = "Nothing was written, since nobody can be asked here; add --yes to write it."
        raise UsageError(message)
    answer = console.input("\nGo ahead? [y/N] ")
    return answer.strip().lower() in {"y", "yes"}


def _carry_out(console: Console, start: Start) -> None:
    console.print()
    for draft in start.drafts:
        draft.path.parent.mkdir(parents=True, exist_ok=True)
        draft.path.write_text(draft.text, encoding="utf-8")
        console.print(f"Wrote {escape(_shown(draft.path))}.")
    if start.operator and start.origin and start.missing:
        create_labels(start.operator, environment(), start.origin.name, start.labels)
        console.print(f"Created {counted(len(start.missing), 'label')}.")


def _say_next(console: Console, clone: Path, config: Path, start: Start) -> None:
    named = "" if config == DEFAULT else f" --config {_shown(config)}"
    console.print("\nNext:")
    if any(draft.path == clone / POLICY for draft in start.drafts):
        console.print(f"  read {POLICY}, and try it: {program()} check", markup=False)
        console.print("  commit it and push it: it counts from the base branch on", markup=False)
    for line in say_of_workflow(clone, start.drafts):
        console.print(f"  {line}", markup=False)
    console.print(f"  {program()} doctor{named}", markup=False)
