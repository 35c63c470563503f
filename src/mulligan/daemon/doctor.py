"""Check for `mulligan doctor` this machine, each repository, and the agents."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath

import yaml
from pydantic import BaseModel

from mulligan.config.document import split_mistakes
from mulligan.config.operator import Operator, SandboxMode
from mulligan.config.policy import Policy
from mulligan.domain.attempt import AgentRun, TimeLimit
from mulligan.domain.errors import ConfigError, MulliganError
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
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import spent_in
from mulligan.text.escape import one_line

FILE, WORD = "mulligan-doctor.txt", "mended"

WRITE_PROMPT = (
    f"Create the file {FILE} in the current directory, with the one word {WORD} in it. Do nothing"
    " else, and do not commit."
)

WAIT_PROMPT = "Run the shell command `sleep 120` and wait for its end. Do nothing else."

WRITE_TIMEOUT = timedelta(minutes=5)
"""How long an agent may take to write one word."""

STOP_AFTER = timedelta(seconds=10)
"""How long it waits before it is asked to stop."""

STOP_GRACE = timedelta(seconds=5)
"""After which whoever did not stop is killed (see process.Command)."""

WORDS_CHARS = 200

FRONT_MATTER = re.compile(rb"\A---\r?\n(.*?)^---", re.DOTALL | re.MULTILINE)

TEMPLATES = ".github/ISSUE_TEMPLATE"

USER, GIT, STATE, WORKSPACE = "user", "git", "state", "workspace"

AGENT, SANDBOX, GITHUB = "agent", "sandbox", "github"

OLDEST_GIT = (2, 32)
"""The first that can be kept from reading the user's configuration (GIT_CONFIG_GLOBAL)."""

GIB = 1024**3

LOW_DISK_BYTES = 2 * GIB
"""Bytes that should be free; how many have to be is in limits.free_mib."""

UNCONFINED = "agents and checks may do whatever this user may."


@dataclass(frozen=True, slots=True)
class AgentTrial:
    """A throw-away repository: `play` runs the agent there, for so long at most.

    `written` tells what is in the file that it was to write, None where there is none.
    """

    agent: str
    run: Callable[[str, timedelta], AgentRun]
    written: Callable[[], str | None]


def try_agent(stage: AgentTrial) -> Iterator[Diagnosis]:
    """Run an agent twice, and say what it showed; the second time only where the first worked."""
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
        said, fix = run.fault.reason, TRY_AGAIN
        is_passing = run.fault.outcome is Outcome.INFRASTRUCTURE
        yield fault(stage.agent, said, "Try again later." if is_passing else fix)
        return
    yield _writes(stage, run)
    if run.refusal and stage.written() is not None:
        yield _refused(stage, run, warning)
    elif not run.refusal:
        yield fine(stage.agent, "Nothing was refused to it.")
    yield _reports(stage, run.facts)


def _writes(stage: AgentTrial, run: AgentRun) -> Diagnosis:
    written = stage.written()
    if written is not None and WORD in written:
        return fine(stage.agent, "It can write in its worktree.")
    if written is not None:
        fix = "See whether the model is the one that was meant."
        return warning(stage.agent, f"It wrote {FILE}, but not the word that was asked for.", fix)
    if run.refusal:
        return _refused(stage, run, fault)
    if run.stopped_by is TimeLimit.TIMEOUT:
        said = (
            f"It wrote nothing in {WRITE_TIMEOUT.total_seconds() / 60:g} minutes, and was stopped."
        )
        return fault(stage.agent, said, "See whether it waits for an answer, or for its model.")
    words = one_line(run.summary, WORDS_CHARS)
    told = f' Its last words: "{words}"' if words else " It said nothing."
    said = f"It wrote nothing, and ended with {run.exit_code}.{told}"
    return fault(stage.agent, said, "See to what it says; agent.arguments are added to its own.")


def _refused(
    stage: AgentTrial, run: AgentRun, kind: Callable[[str, str, str], Diagnosis]
) -> Diagnosis:
    said, _, fix = run.refusal.rpartition("; ")
    return kind(stage.agent, f"{said}.", f"{fix[:1].upper()}{fix[1:]}")


def _reports(stage: AgentTrial, facts: AgentFacts) -> Diagnosis:
    spent = spent_in(facts)
    if facts.cost_usd is not None:
        said = f"It says what it uses: ${spent.usd:.4f} and {spent.tokens} tokens."
        return fine(stage.agent, said)
    if spent.tokens:
        said = f"It says that it used {spent.tokens} tokens, and no price is known for its model."
        return warning(stage.agent, said, "Name its price under prices, or hold it to tokens.")
    said = "It does not say what it uses, so that no budget holds it."
    return warning(stage.agent, said, "Have it report its usage; docs/agents.md says how.")


def _stops(stage: AgentTrial, run: AgentRun) -> Diagnosis:
    if run.stopped_by is not TimeLimit.TIMEOUT:
        fix = "Nothing is to be done; it is killed if need be."
        said = "Whether it stops when it is asked to was not seen: it ended before that."
        return note(stage.agent, said, fix)
    if run.duration < STOP_AFTER + STOP_GRACE:
        return fine(stage.agent, "It stops when it is asked to (TERM), and nothing of it is left.")
    fix = "Nothing is to be done, but what it has not reported by then is not known."
    said = (
        f"It does not stop when it is asked to (TERM); it was killed {STOP_GRACE.seconds} s later."
    )
    return warning(stage.agent, said, fix)


def _cost(stage: AgentTrial, *runs: AgentFacts) -> Diagnosis:
    usd = sum(spent_in(each).usd for each in runs)
    tokens = sum(spent_in(each).tokens for each in runs)
    return fine(stage.agent, f"These two runs cost ${usd:.4f} and {tokens} tokens.")


@dataclass(frozen=True, slots=True)
class Probes:
    """Small looks at the world, each at one thing; none changes anything that counts.

    `notes` tells what the kind of the credential brings with it, and what can be done about it.
    `facts`, `labels`, `fetch` (which names the base branch), `policy`, `file` and `names` take a
    repository, the last two a path in it as well. `is_root` tells
    who Mulligan is. `at_work` names the Mulligan that runs now;
    `ledger` opens it for writing and counts its issues; `program_of` names what a shell line
    starts, and `finds` tells whether the shell knows it. `agents` are found by name, "" for none;
    `network` tells what the one of a name reaches from within the walls: none, model or open.
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
    agents: Callable[[], Mapping[str, AgentPresence]]
    sandbox_status: Callable[[], SandboxStatus]
    network: Callable[[str], str]
    program_of: Callable[[str], str]
    has_program: Callable[[str], bool]


class Template(BaseModel):
    """What matters of a template; labels are a list, or a text with commas."""

    labels: str | tuple[str, ...] = ()


def labels_put_on(template: bytes) -> tuple[str, ...]:
    """List the labels; none where the template cannot be read."""
    front = FRONT_MATTER.match(template)
    try:
        content: object = yaml.safe_load(front[1] if front else template)
        labels = Template.model_validate(content).labels
    except (yaml.YAMLError, ValueError):
        return ()
    return tuple(each.strip() for each in labels.split(",")) if isinstance(labels, str) else labels


def diagnose_repository(name: str, probes: Probes, *, asks: bool) -> Iterator[Diagnosis]:
    """Say everything about one repository; GitHub is asked only where it answers at all."""
    rights = list(_rights(name, probes)) if asks else []
    yield from rights
    fetched = _fetch(name, probes)
    if fetched not in rights:
        yield fetched
    try:
        policy = probes.policy(name)
    except ConfigError as error:
        for mistake in split_mistakes(error):
            yield failed(name, mistake, "Mend that file on the base branch.")
        return
    except MulliganError:
        # Whatever keeps git from reading a file has kept it from fetching too.
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
    yield from wrong or [fine(name, "The token's account may push, and issues are switched on.")]


def _wrong_rights(name: str, facts: RepositoryFacts) -> Iterator[Diagnosis]:
    if facts.archived:
        fix = "Unarchive it, or take it out of the configuration."
        yield fault(name, "The repository is archived, so nothing can be written to it.", fix)
    if not facts.has_issues:
        fix = "Switch them on in the repository's settings."
        yield fault(name, "Issues are switched off.", fix)
    if facts.may_push is None:
        fix = "Make sure that it has read and write access to contents, issues and pull requests."
        yield note(name, "GitHub does not say whether the token may push.", fix)
    elif not facts.may_push:
        fix = "Give that account the role Write, or use the token of one that has it."
        yield fault(name, "The token's account may not push.", fix)


def _fetch(name: str, probes: Probes) -> Diagnosis:
    try:
        return fine(name, f"The base branch {probes.fetch(name)!r} can be fetched.")
    except MulliganError as error:
        return failed(name, error, TRY_AGAIN)


def _policy(name: str, policy: Policy) -> Diagnosis:
    count = len(policy.checks)
    if not count:
        said = "The policy has no checks: whatever an agent changes is published unverified."
        return warning(name, said, "Name the repository's own commands under checks.")
    checks = "1 check" if count == 1 else f"{count} checks"
    return fine(name, f"The policy is valid: {checks}, {policy.max_issue_attempts} attempts.")


def _programs(name: str, policy: Policy, probes: Probes, *, known: bool) -> Iterator[Diagnosis]:
    """Look for what every line starts; `known` is whether the repository's files are."""
    lines = [(f"the set-up line {line!r}", line) for line in policy.setup]
    lines += [(f"the check {check.name!r}", check.run) for check in policy.checks]
    lines += [("the reviewer", policy.reviewer.run)] if policy.reviewer else []
    missing = [
        (what, program)
        for what, line in lines
        if (program := probes.program_of(line)) and not _is_there(name, program, probes, known)
    ]
    for what, program in missing:
        said = f"The program {program!r} of {what} is not there"
        if policy.setup and not what.startswith("the set-up"):
            fix = "Make sure that the set-up lines bring it."
            yield warning(name, f"{said} yet.", fix)
        else:
            yield fault(name, f"{said}.", "Install it, or mend the line.")
    if lines and not missing:
        yield fine(name, "The programs of the set-up lines and checks are there.")


def _is_there(name: str, program: str, probes: Probes, known: bool) -> bool:  # noqa: FBT001
    """Look in the repository for what is named by a path in it, and on the machine for the rest."""
    if "/" not in program or program.startswith("/"):
        return probes.has_program(program)
    return not known or probes.file(name, str(PurePosixPath(program))) is not None


def _labels(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    try:
        there = {label.casefold() for label in probes.labels(name)}
    except MulliganError as error:
        yield failed(name, error, TRY_AGAIN)
        return
    ready, wanted = policy.labels.ready, policy.labels
    others = (wanted.running, wanted.review, wanted.hitl)
    if ready.casefold() not in there:
        fix = "Let `mulligan init` create it, or do that under Issues, Labels on GitHub."
        yield note(name, f"The label {ready!r} does not exist, so nobody can put it on yet.", fix)
    missing = ", ".join(repr(label) for label in others if label.casefold() not in there)
    if missing:
        fix = "Nothing is to be done: GitHub makes them when Mulligan first puts them on."
        yield note(name, f"Labels that do not exist yet: {missing}.", fix)


def _files(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    if b"filter=lfs" in (probes.file(name, ".gitattributes") or b""):
        fix = "Keep issues that need those files away from Mulligan."
        yield note(name, "It uses Git LFS, whose files stay pointers for agents and checks.", fix)
    if probes.file(name, ".gitmodules"):
        fix = "Let a set-up line fetch what the checks need of them."
        yield note(name, "It has submodules, which stay empty for agents and checks.", fix)
    ready = policy.labels.ready
    for path in probes.names(name, TEMPLATES):
        labels = labels_put_on(probes.file(name, path) or b"")
        if ready.casefold() in {label.casefold() for label in labels}:
            yield warning(
                name,
                f"{path} puts {ready!r} on for whoever opens an issue; that starts work only for "
                "people who are trusted, since they then count as having asked.",
                f"Take {ready!r} out of the template, so that nobody waits in vain.",
            )


def diagnose(operator: Operator, probes: Probes) -> Iterator[Diagnosis]:
    """Find everything there is to say, from this machine to the last repository."""
    if probes.is_root():
        yield warning(USER, AS_ROOT, NOT_AS_ROOT)
    yield _git(probes)
    yield from _state(probes)
    least = operator.limits.free_mib * MIB
    yield from _room(STATE, "state.url", probes.state_room, least)
    yield from _room(WORKSPACE, "workspace.root", probes.workspace_room, least)
    agents = probes.agents()
    for name, found in agents.items():
        yield from _agent(_key(name), found)
    yield from _sandbox(operator.sandbox.mode, probes, agents)
    account = _account(operator, probes)
    yield account
    if account.level is Level.OK:
        yield from (note(GITHUB, said, fix) for said, fix in probes.notes())
    for repository in operator.repositories:
        try:
            yield from diagnose_repository(repository.name, probes, asks=account.level is Level.OK)
        except MulliganError as error:
            yield failed(repository.name, error, TRY_AGAIN)


def _git(probes: Probes) -> Diagnosis:
    try:
        found = probes.git_version()
    except MulliganError as error:
        return failed(GIT, error, TRY_AGAIN)
    said = ".".join(map(str, found))
    if found < OLDEST_GIT:
        oldest = ".".join(map(str, OLDEST_GIT))
        return fault(
            GIT,
            f"Git is {said}, which reads the user's configuration whatever it is told.",
            f"Install git {oldest} or newer.",
        )
    return fine(GIT, f"Git is {said}.")


def _state(probes: Probes) -> Iterator[Diagnosis]:
    try:
        issues = probes.ledger()
        at_work = probes.at_work()
    except MulliganError as error:
        yield failed(STATE, error, TRY_AGAIN)
        return
    known = "1 issue" if issues == 1 else f"{issues} issues"
    yield fine(STATE, f"The ledger can be read and written; it knows {known}.")
    if at_work:
        yield fine(STATE, f"{at_work} is at work.")
    else:
        fix = "Start `mulligan run`, or make one pass with `mulligan once`."
        yield note(STATE, "No Mulligan is at work now.", fix)


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
        fix = f"Give this user the right to write there, or name another place in {key}."
        return fault(area, f"{room.path} cannot be written to.", fix)
    fix = f"Make room on that disk, or name another place in {key}."
    if short := disk_shortage([room], least):
        return fault(area, f"No attempt begins: {free}. {short}", fix)
    return (
        warning(area, f"Only {free}.", fix)
        if room.free < LOW_DISK_BYTES
        else fine(area, f"{free}.")
    )


def _key(name: str) -> str:
    return f"agents.{name}" if name else AGENT


def _agent(key: str, found: AgentPresence) -> Iterator[Diagnosis]:
    """Look at one agent, which stands at a `key` of the configuration."""
    program = found.wanted
    if found.program:
        yield fine(key, f"The agent's program is {found.program}.")
    elif "/" in program and not program.startswith("/"):
        yield warning(
            key,
            f"The agent's program {program!r} is looked for in each worktree.",
            f"Write its whole path in {key}.command, unless the repositories bring it along.",
        )
    else:
        fix = f"Install it, or mend {key}.command; what counts is the PATH of this very process."
        yield fault(key, f"The agent's program {program!r} is not there.", fix)
    for file in found.missing_files:
        fix = f"Put it there, or mend {key}.command."
        yield warning(key, f"{key}.command names {file}, which is not there.", fix)
    for name in found.missing_variables:
        fix = f"Set it where Mulligan runs, or take it out of {key}.env."
        yield fault(key, f"{key}.env names {name}, which is not set.", fix)


def _sandbox(mode: SandboxMode, probes: Probes, agents: Collection[str]) -> Iterator[Diagnosis]:
    if mode is SandboxMode.OFF:
        said = f"The sandbox is off: {UNCONFINED}"
        yield warning(SANDBOX, said, "Set sandbox to auto or required.")
        return
    walls = probes.sandbox_status()
    if walls.available:
        yield fine(SANDBOX, "Agents, set-up lines and checks are confined by bubblewrap.")
        yield from (_network(name, probes) for name in agents)
    else:
        off = "" if mode is SandboxMode.REQUIRED else f" Or set sandbox to off: {UNCONFINED}"
        reason = f"sandbox: {mode} cannot be kept. {walls.reason}"
        yield fault(SANDBOX, reason, f"{walls.fix}{off}")
    if walls.available and not walls.calls_filtered:
        fix = "Nothing is to be done; the other walls stand."
        yield note(SANDBOX, "System calls are not filtered on this processor.", fix)
    for path in walls.missing:
        fix = "Make it, or take it out of the configuration."
        yield warning(SANDBOX, f"sandbox names {path}, which is not there.", fix)
    for path in walls.closed:
        said = f"sandbox names {path}, which is closed to the user that commands run as."
        fix = "Open it to that user (docs/security.md), or take it out of the configuration."
        yield warning(SANDBOX, said, fix)


def _network(name: str, probes: Probes) -> Diagnosis:
    """Say what an agent reaches from within the walls."""
    who = f"The agent {name}" if name else "The agent"
    try:
        match probes.network(name):
            case "model":
                return fine(SANDBOX, f"{who} reaches its model and sandbox.hosts alone.")
            case "none":
                return fine(SANDBOX, f"{who} reaches no network.")
            case _:
                fix = "Name the hosts of its model in sandbox.hosts; it then reaches no others."
                return note(SANDBOX, f"{who} reaches whatever this machine does.", fix)
    except MulliganError as error:
        return failed(SANDBOX, error, TRY_AGAIN)


def _account(operator: Operator, probes: Probes) -> Diagnosis:
    settings = operator.github
    if settings.token is None and settings.token_file is None and settings.app is None:
        fix = "Put one into the environment and write github: {token: $NAME}."
        return fault(GITHUB, "There is no token for GitHub.", fix)
    try:
        what = "key of the app" if settings.app else "token"
        return fine(GITHUB, f"GitHub takes the {what}, as that of {probes.account()}.")
    except MulliganError as error:
        return failed(GITHUB, error, TRY_AGAIN)
