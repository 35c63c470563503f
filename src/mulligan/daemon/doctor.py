"""Check for `mulligan doctor` this machine, each repository, and the agents."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Protocol

import yaml
from pydantic import BaseModel

from mulligan.config.document import split_mistakes
from mulligan.config.operator import Operator, SandboxMode
from mulligan.config.policy import Policy
from mulligan.domain.attempt import AgentRun, TimeLimit
from mulligan.domain.errors import ConfigError, MulliganError
from mulligan.domain.hold import Pause
from mulligan.domain.host import (
    AS_ROOT,
    MIB,
    NOT_AS_ROOT,
    TRY_AGAIN,
    AgentPresence,
    Diagnosis,
    DiskSpace,
    Level,
    SandboxStatus,
    disk_shortage,
    failed,
    fault,
    fine,
    note,
    warning,
)
from mulligan.domain.issue import RepositoryFacts
from mulligan.domain.outcome import Outcome
from mulligan.domain.ownership import StandBack
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import spent_in
from mulligan.text.escape import one_line

FILE, WORD = "mulligan-doctor.txt", "repaired"

WRITE_PROMPT = (
    f"Create the file {FILE} in the current directory, with the one word {WORD} in it. Do nothing"
    " else, and do not commit."
)

WAIT_PROMPT = "Run the shell command `sleep 120` and wait for its end. Do nothing else."

WRITE_TIMEOUT = timedelta(minutes=5)
"""How long an agent may take to write one word."""

STOP_AFTER = timedelta(seconds=10)
"""Time from the start of the second run until Mulligan sends TERM."""

STOP_GRACE = timedelta(seconds=5)
"""Time from TERM to KILL (see process.Command)."""

WORDS_CHARS = 200

FRONT_MATTER = re.compile(rb"\A---\r?\n(.*?)^---", re.DOTALL | re.MULTILINE)

TEMPLATES = ".github/ISSUE_TEMPLATE"

USER, GIT, STATE, WORKSPACE = "user", "git", "state", "workspace"

AGENT, SANDBOX, GITHUB = "agent", "sandbox", "github"

OLDEST_GIT = (2, 32)
"""The first version with GIT_CONFIG_GLOBAL, which switches the user's configuration off."""

GIB = 1024**3

RESUME = "To let attempts begin again, resume it."

ONE_OWNER = "To avoid that, run one installation for each repository."

LOW_DISK_BYTES = 2 * GIB
"""Below this, `doctor` warns; below `limits.free_mib`, no attempt starts."""

UNCONFINED = "agents and checks have all rights of this user."


@dataclass(frozen=True, slots=True)
class AgentTrial:
    """A temporary repository in which `run` starts the agent with a prompt and a timeout.

    `written` reads the file that the agent should write; None if there is none.
    """

    agent: str
    run: Callable[[str, timedelta], AgentRun]
    written: Callable[[], str | None]


def try_agent(stage: AgentTrial) -> Iterator[Diagnosis]:
    """Run an agent twice and report the results; the second run only if the first one worked."""
    try:
        first = stage.run(WRITE_PROMPT, WRITE_TIMEOUT)
        yield from _first(stage, first)
        if stage.written() is None or first.fault:
            return
        second = stage.run(WAIT_PROMPT, STOP_AFTER)
        yield _stops(stage, second)
        yield _cost(stage, first.facts, second.facts)
    except MulliganError as error:
        yield failed(stage.agent, error, TRY_AGAIN)


def _first(stage: AgentTrial, run: AgentRun) -> Iterator[Diagnosis]:
    if run.fault:
        message, fix = run.fault.reason, TRY_AGAIN
        is_passing = run.fault.outcome is Outcome.INFRASTRUCTURE
        yield fault(stage.agent, message, "Try again later." if is_passing else fix)
        return
    yield _writes(stage, run)
    if run.refusal and stage.written() is not None:
        yield _refused(stage, run, warning)
    elif not run.refusal:
        yield fine(stage.agent, "None of its tools was refused.")
    yield _reports(stage, run.facts)


def _writes(stage: AgentTrial, run: AgentRun) -> Diagnosis:
    written = stage.written()
    if written is not None and WORD in written:
        return fine(stage.agent, "It can write in its worktree.")
    if written is not None:
        fix = "Check that agent.model names the right model."
        return warning(stage.agent, f"It wrote {FILE}, but not the requested word.", fix)
    if run.refusal:
        return _refused(stage, run, fault)
    if run.stopped_by is TimeLimit.TIMEOUT:
        message = (
            f"It wrote nothing in {WRITE_TIMEOUT.total_seconds() / 60:g} minutes, and was stopped."
        )
        return fault(
            stage.agent, message, "Check whether it waits for an answer, or for its model."
        )
    words = one_line(run.summary, WORDS_CHARS)
    last = f' Its last message: "{words}"' if words else " It printed no message."
    message = f"It wrote nothing and ended with exit code {run.exit_code}.{last}"
    return fault(stage.agent, message, "Fix the reported problem, for example in agent.arguments.")


def _refused(
    stage: AgentTrial, run: AgentRun, kind: Callable[[str, str, str], Diagnosis]
) -> Diagnosis:
    message, _, fix = run.refusal.rpartition("; ")
    return kind(stage.agent, f"{message}.", f"{fix[:1].upper()}{fix[1:]}")


def _reports(stage: AgentTrial, facts: AgentFacts) -> Diagnosis:
    spent = spent_in(facts)
    if facts.cost_usd is not None:
        message = f"It reports its usage: ${spent.usd:.4f} and {spent.tokens} tokens."
        return fine(stage.agent, message)
    if spent.tokens:
        message = f"It reports {spent.tokens} tokens but no cost, and its model has no known price."
        fix = "Add the price of the model under prices, or limit tokens in the budget."
        return warning(stage.agent, message, fix)
    message = "It reports no usage, so no budget can limit it."
    return warning(stage.agent, message, "Make it report its usage, see docs/agents.md.")


def _stops(stage: AgentTrial, run: AgentRun) -> Diagnosis:
    if run.stopped_by is not TimeLimit.TIMEOUT:
        fix = "You need to do nothing: Mulligan kills an agent that does not stop."
        message = "It ended before Mulligan could test that it stops on TERM."
        return note(stage.agent, message, fix)
    if run.duration < STOP_AFTER + STOP_GRACE:
        return fine(stage.agent, "It stops on TERM and leaves no process behind.")
    fix = "You need to do nothing, but a stopped attempt may lose its last usage report."
    message = f"It does not stop on TERM. Mulligan killed it {STOP_GRACE.seconds} s later."
    return warning(stage.agent, message, fix)


def _cost(stage: AgentTrial, *runs: AgentFacts) -> Diagnosis:
    usd = sum(spent_in(each).usd for each in runs)
    tokens = sum(spent_in(each).tokens for each in runs)
    return fine(stage.agent, f"These two runs cost ${usd:.4f} and {tokens} tokens.")


@dataclass(frozen=True, slots=True)
class Probes:
    """Functions that each read one fact, without changing anything that matters.

    - `account`: the login of the credential; `notes`: (fact, advice) about its kind.
    - `facts`, `labels`, `policy`: of a repository. `fetch`: the name of its base branch, fetched.
    - `file`, `names`: a file, and the names in a directory, on that branch; with the path.
    - `at_work`: the Mulligan that runs now; `ledger`: the number of issues, opened for writing.
    - `agent`: by name, "" for the default agent; `network`: `none`, `model` or `open`, by name.
    - `pauses`: what an operator has paused; `stand_backs`: what other installations own.
    - `program_of`: the program that a shell command starts; `has_program`: whether it is found.
    """

    account: Callable[[], str]
    notes: Callable[[], Sequence[tuple[str, str]]]
    facts: Callable[[str], RepositoryFacts]
    labels: Callable[[str], frozenset[str]]
    fetch: Callable[[str], str]
    policy: Callable[[str], Policy]
    file: Callable[[str, str], bytes | None]
    names: Callable[[str, str], Sequence[str]]
    is_root: Callable[[], bool]
    git_version: Callable[[], tuple[int, int]]
    at_work: Callable[[], str | None]
    ledger: Callable[[], int]
    state_room: Callable[[], DiskSpace | None]
    workspace_room: Callable[[], DiskSpace]
    agent: Callable[[str], AgentPresence]
    sandbox_status: Callable[[], SandboxStatus]
    network: Callable[[str], str]
    program_of: Callable[[str], str]
    has_program: Callable[[str], bool]
    pauses: Callable[[], Sequence[Pause]] = tuple
    stand_backs: Callable[[], Sequence[StandBack]] = tuple


class MachineProbes(Protocol):
    """The part of Probes that is about this machine."""

    @property
    def git_version(self) -> Callable[[], tuple[int, int]]: ...
    @property
    def state_room(self) -> Callable[[], DiskSpace | None]: ...
    @property
    def workspace_room(self) -> Callable[[], DiskSpace]: ...
    @property
    def agent(self) -> Callable[[str], AgentPresence]: ...
    @property
    def sandbox_status(self) -> Callable[[], SandboxStatus]: ...
    @property
    def network(self) -> Callable[[str], str]: ...


class Template(BaseModel):
    """The labels of an issue template: a list, or a text with commas."""

    labels: str | tuple[str, ...] = ()


def labels_put_on(template: bytes) -> tuple[str, ...]:
    """List the labels of an issue template; none if it is invalid."""
    front = FRONT_MATTER.match(template)
    try:
        content: object = yaml.safe_load(front[1] if front else template)
        labels = Template.model_validate(content).labels
    except (yaml.YAMLError, ValueError):
        return ()
    return tuple(each.strip() for each in labels.split(",")) if isinstance(labels, str) else labels


def diagnose_repository(name: str, probes: Probes, *, asks: bool) -> Iterator[Diagnosis]:
    """Check one repository; with `asks`, on GitHub too."""
    rights = list(_rights(name, probes)) if asks else []
    yield from rights
    fetched = _fetch(name, probes)
    if fetched not in rights:
        yield fetched
    try:
        policy = probes.policy(name)
    except ConfigError as error:
        for mistake in split_mistakes(error):
            yield failed(name, mistake, "Fix that file on the base branch.")
        return
    except MulliganError:
        # The fetch above has already reported the same error.
        return
    known = fetched.level is Level.OK
    if known or policy.checks:
        yield _policy(name, policy)
    yield from _programs(name, policy, probes, known=known)
    if asks and fetched not in rights:
        yield from _labels(name, policy, probes)
    if known:
        yield from _files(name, policy, probes)


def _rights(name: str, probes: Probes) -> Iterator[Diagnosis]:
    try:
        facts = probes.facts(name)
    except MulliganError as error:
        yield failed(name, error, TRY_AGAIN)
        return
    wrong = list(_wrong_rights(name, facts))
    yield from wrong or [fine(name, "The token can push, and issues are enabled.")]


def _wrong_rights(name: str, facts: RepositoryFacts) -> Iterator[Diagnosis]:
    if facts.archived:
        fix = "Unarchive it, or remove it from `repositories` in mulligan.yml."
        yield fault(name, "The repository is archived, so Mulligan cannot write to it.", fix)
    if not facts.has_issues:
        fix = "Enable them in the repository's settings on GitHub."
        yield fault(name, "Issues are disabled.", fix)
    if facts.may_push is None:
        fix = "Make sure that it has read and write access to contents, issues and pull requests."
        yield note(name, "GitHub does not report whether the token can push.", fix)
    elif not facts.may_push:
        fix = "Give its account the role Write, or use the token of an account that has it."
        yield fault(name, "The token cannot push.", fix)


def _fetch(name: str, probes: Probes) -> Diagnosis:
    try:
        return fine(name, f"Git can fetch the base branch {probes.fetch(name)!r}.")
    except MulliganError as error:
        return failed(name, error, TRY_AGAIN)


def _policy(name: str, policy: Policy) -> Diagnosis:
    count = len(policy.checks)
    if not count:
        message = "The policy has no checks, so Mulligan publishes changes without verification."
        return warning(name, message, "Add the repository's test commands under `checks`.")
    checks = "1 check" if count == 1 else f"{count} checks"
    return fine(name, f"The policy is valid: {checks}, {policy.max_issue_attempts} attempts.")


def _programs(name: str, policy: Policy, probes: Probes, *, known: bool) -> Iterator[Diagnosis]:
    """Find the program of every command; `known` is whether the repository was fetched."""
    lines = [(f"the setup command {line!r}", line) for line in policy.setup.run]
    installers = len(lines)
    lines += [(f"the check {check.name!r}", check.run) for check in policy.checks]
    lines += [("the reviewer", policy.reviewer.run)] if policy.reviewer else []
    missing = [
        (what, program, min(place, installers))
        for place, (what, line) in enumerate(lines)
        if (program := probes.program_of(line)) and not _is_there(name, program, probes, known)
    ]
    made = dict.fromkeys(
        program for _, program, before in missing if before and not _is_on_path(program)
    )
    if made:
        message = f"The repository does not contain {' and '.join(map(repr, made))}."
        fix = "The setup commands have to create that. To try: `mulligan check --setup`."
        yield note(name, message, fix)
    for what, program, before in missing:
        message = f"{program!r} not found. It is the program of {what}."
        if not before:
            yield fault(name, message, "Install it, or fix the command.")
        elif program not in made:
            yield warning(name, message, "Make sure that the setup commands install it.")
    if lines and not missing:
        yield fine(name, "The programs of the setup commands and checks are installed.")


def _is_there(name: str, program: str, probes: Probes, known: bool) -> bool:  # noqa: FBT001
    """Find a program: a relative path in the repository, another one on this machine."""
    if _is_on_path(program):
        return probes.has_program(program)
    return not known or probes.file(name, str(PurePosixPath(program))) is not None


def _is_on_path(program: str) -> bool:
    return "/" not in program or program.startswith("/")


def _labels(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    try:
        existing = {label.casefold() for label in probes.labels(name)}
    except MulliganError as error:
        yield failed(name, error, TRY_AGAIN)
        return
    ready, wanted = policy.labels.ready, policy.labels
    others = (wanted.running, wanted.review, wanted.hitl)
    if ready.casefold() not in existing:
        fix = "Run `mulligan init` in a clone, or create it on GitHub under Issues, Labels."
        yield note(name, f"The label {ready!r} does not exist, so nobody can add it.", fix)
    missing = ", ".join(repr(label) for label in others if label.casefold() not in existing)
    if missing:
        fix = "You need to do nothing: GitHub creates them when Mulligan first adds them."
        yield note(name, f"Labels that do not exist yet: {missing}.", fix)


def _files(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    if b"filter=lfs" in (probes.file(name, ".gitattributes") or b""):
        fix = "Do not label issues that need these files."
        yield note(name, "It uses Git LFS. Agents and checks see pointers, not the files.", fix)
    if probes.file(name, ".gitmodules"):
        fix = "If the checks need their files, fetch them in a setup command."
        yield note(name, "It has submodules. They are empty for agents and checks.", fix)
    ready = policy.labels.ready
    for path in probes.names(name, TEMPLATES):
        labels = labels_put_on(probes.file(name, path) or b"")
        if ready.casefold() in {label.casefold() for label in labels}:
            yield warning(
                name,
                f"{path} adds the label {ready!r} to every issue. It starts work only if a trusted "
                "person opens the issue; the other issues never start.",
                f"Remove {ready!r} from the template.",
            )


def diagnose(operator: Operator, probes: Probes) -> Iterator[Diagnosis]:
    """Check this machine, then GitHub, then every repository."""
    if probes.is_root():
        yield warning(USER, AS_ROOT, NOT_AS_ROOT)
    yield _git(probes)
    yield from _state(probes)
    least = operator.limits.free_mib * MIB
    yield from _room(STATE, "state.url", probes.state_room, least)
    yield from _room(WORKSPACE, "workspace.root", probes.workspace_room, least)
    for name in operator.all_agents:
        yield from _agent(name, probes.agent(name))
    yield from _sandbox(operator.sandbox.mode, probes, operator.all_agents)
    account = _account(operator, probes)
    yield account
    if account.level is Level.OK:
        yield from (note(GITHUB, message, fix) for message, fix in probes.notes())
    for repository in operator.repositories:
        try:
            yield from diagnose_repository(repository.name, probes, asks=account.level is Level.OK)
        except MulliganError as error:
            yield failed(repository.name, error, TRY_AGAIN)


def machine_faults(operator: Operator, probes: MachineProbes) -> tuple[Diagnosis, ...]:
    """Find what holds all work on this machine (OUTCOME-5): git, disks and sandbox.

    A disk that is short of space is not among them: each start looks at that, and may free some.
    """
    rooms = (
        *_room(STATE, "state.url", probes.state_room, 0),
        *_room(WORKSPACE, "workspace.root", probes.workspace_room, 0),
    )
    walls = _sandbox(operator.sandbox.mode, probes, ())
    return tuple(each for each in (_git(probes), *rooms, *walls) if each.level is Level.FAULT)


def agent_faults(name: str, found: AgentPresence) -> tuple[Diagnosis, ...]:
    """Find why an agent cannot start on this machine; the default agent has the name ""."""
    return tuple(each for each in _agent(name, found) if each.level is Level.FAULT)


def _git(probes: MachineProbes) -> Diagnosis:
    try:
        found = probes.git_version()
    except MulliganError as error:
        return failed(GIT, error, TRY_AGAIN)
    version = ".".join(map(str, found))
    if found < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        return fault(
            GIT,
            f"Git {version} is too old: it always reads the user's configuration.",
            f"Install git {oldest} or newer.",
        )
    return fine(GIT, f"Git {version} is installed.")


def _state(probes: Probes) -> Iterator[Diagnosis]:
    try:
        issues = probes.ledger()
        at_work = probes.at_work()
        pauses = probes.pauses()
        stand_backs = probes.stand_backs()
    except MulliganError as error:
        yield failed(STATE, error, TRY_AGAIN)
        return
    yield from (warning(STATE, each.sentence, RESUME) for each in pauses)
    yield from (warning(STATE, each.sentence, ONE_OWNER) for each in stand_backs)
    known = "1 issue" if issues == 1 else f"{issues} issues"
    yield fine(STATE, f"Mulligan can read and write the ledger. It has {known}.")
    if at_work:
        yield fine(STATE, f"{at_work} is running.")
    else:
        fix = "To work on issues, start `mulligan run` or `mulligan once`."
        yield note(STATE, "No Mulligan is running now.", fix)


def _room(
    area: str, key: str, look: Callable[[], DiskSpace | None], least: int
) -> Iterator[Diagnosis]:
    try:
        room = look()
    except MulliganError as error:
        yield failed(area, error, TRY_AGAIN)
        return
    if room:
        yield _judged(room, area, key, least)


def _judged(room: DiskSpace, area: str, key: str, least: int) -> Diagnosis:
    free = f"{room.free / GIB:.1f} GiB are free for {room.path}"
    if not room.writable:
        fix = f"Give this user write access, or set another directory in {key}."
        return fault(area, f"Mulligan cannot write to {room.path}.", fix)
    fix = f"Free space on that disk, or set another directory in {key}."
    if short := disk_shortage([room], least):
        return fault(area, f"No attempt can start: {free}. {short}", fix)
    return (
        warning(area, f"Only {free}.", fix)
        if room.free < LOW_DISK_BYTES
        else fine(area, f"{free}.")
    )


def _agent(name: str, found: AgentPresence) -> Iterator[Diagnosis]:
    """Check the agent of that name in mulligan.yml."""
    key, program = f"agents.{name}" if name else AGENT, found.wanted
    if found.program:
        yield fine(key, f"The agent's program is {found.program}.")
    elif "/" in program and not program.startswith("/"):
        yield warning(
            key,
            f"The agent's program {program!r} is a path relative to each worktree.",
            f"Write its full path in {key}.command, unless the repositories contain it.",
        )
    else:
        fix = f"Install it on the PATH of this process, or fix {key}.command."
        if found.install:
            fix = f"Install it: `{found.install}`. Or name another agent in {key}.kind."
        yield fault(key, f"The agent's program {program!r} was not found.", fix)
    for file in found.missing_files:
        fix = f"Create it, or fix {key}.command."
        yield warning(key, f"{key}.command names {file}, which does not exist.", fix)
    for variable in found.missing_variables:
        fix = f"Set it where Mulligan runs, or remove it from {key}.env."
        yield fault(key, f"{key}.env names {variable}, which is not set.", fix)


def _sandbox(
    mode: SandboxMode, probes: MachineProbes, agents: Collection[str]
) -> Iterator[Diagnosis]:
    if mode is SandboxMode.OFF:
        message = f"The sandbox is off: {UNCONFINED}"
        yield warning(SANDBOX, message, "Set sandbox to auto or required.")
        return
    walls = probes.sandbox_status()
    if walls.available:
        yield fine(SANDBOX, "Bubblewrap confines agents, setup commands and checks.")
        yield from (_network(name, probes) for name in agents)
    else:
        off = "" if mode is SandboxMode.REQUIRED else f" Or set sandbox to off: {UNCONFINED}"
        reason = f"`sandbox: {mode}` needs a working sandbox. {walls.reason}"
        yield fault(SANDBOX, reason, f"{walls.fix}{off}")
    if walls.available and not walls.calls_filtered:
        fix = "You need to do nothing; the other limits of the sandbox apply."
        yield note(SANDBOX, "The sandbox does not filter system calls on this processor.", fix)
    for path in walls.missing:
        fix = "Create it, or remove it from `sandbox` in mulligan.yml."
        yield warning(SANDBOX, f"`sandbox` lists {path}, which does not exist.", fix)
    for path in walls.closed:
        message = f"`sandbox` lists {path}, but the user of sandboxed commands cannot read it."
        fix = "Give that user access (docs/security.md), or remove it from `sandbox`."
        yield warning(SANDBOX, message, fix)


def _network(name: str, probes: MachineProbes) -> Diagnosis:
    """Report which hosts an agent can reach from the sandbox."""
    who = f"The agent {name}" if name else "The agent"
    try:
        match probes.network(name):
            case "model":
                return fine(SANDBOX, f"{who} can reach only its model and sandbox.hosts.")
            case "none":
                return fine(SANDBOX, f"{who} has no network.")
            case _:
                fix = "To limit it, list the hosts of its model in sandbox.hosts."
                return note(SANDBOX, f"{who} can reach every host that this machine can.", fix)
    except MulliganError as error:
        return failed(SANDBOX, error, TRY_AGAIN)


def _account(operator: Operator, probes: Probes) -> Diagnosis:
    settings = operator.github
    if settings.token is None and settings.token_file is None and settings.app is None:
        fix = "Set one in an environment variable and write `github: {token: $NAME}`."
        return fault(GITHUB, "No token for GitHub is configured.", fix)
    try:
        what = "the App's key" if settings.app else "the token"
        return fine(GITHUB, f"GitHub accepts {what}; its account is {probes.account()}.")
    except MulliganError as error:
        return failed(GITHUB, error, TRY_AGAIN)
