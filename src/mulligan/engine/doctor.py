"""Look whether all that the work needs is there; whatever is missing, the rest is looked at."""

from collections.abc import Callable, Collection, Iterator

from mulligan.config.operator import Operator, SandboxMode
from mulligan.domain.diagnosis import (
    TRY_AGAIN,
    Diagnosis,
    Level,
    failed,
    fault,
    fine,
    note,
    warning,
)
from mulligan.domain.machine import AS_ROOT, MIB, NOT_AS_ROOT, Presence, Room, shortage
from mulligan.engine.checkup import look_at_repository
from mulligan.engine.probes import Probes
from mulligan.errors import MulliganError

USER, GIT, STATE, WORKSPACE = "user", "git", "state", "workspace"
AGENT, SANDBOX, GITHUB = "agent", "sandbox", "github"
OLDEST_GIT = (2, 32)
"""The first that can be kept from reading the user's configuration (GIT_CONFIG_GLOBAL)."""
GIB = 1024**3
LITTLE = 2 * GIB
"""Bytes that should be free; how many have to be is in limits.free_mib."""
UNCONFINED = "agents and checks may do whatever this user may."


def examine(operator: Operator, probes: Probes) -> Iterator[Diagnosis]:
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
            yield from look_at_repository(repository.name, probes, asks=account.level is Level.OK)
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


def _room(area: str, key: str, look: Callable[[], Room | None], least: int) -> Iterator[Diagnosis]:
    try:
        room = look()
    except MulliganError as error:
        yield failed(area, error, TRY_AGAIN)
        return
    if room:
        yield _judged(room, area, key, least)


def _judged(room: Room, area: str, key: str, least: int) -> Diagnosis:
    free = f"{room.free / GIB:.1f} GiB are free for {room.place}"
    if not room.writable:
        fix = f"Give this user the right to write there, or name another place in {key}."
        return fault(area, f"{room.place} cannot be written to.", fix)
    fix = f"Make room on that disk, or name another place in {key}."
    if short := shortage([room], least):
        return fault(area, f"No attempt begins: {free}. {short}", fix)
    return warning(area, f"Only {free}.", fix) if room.free < LITTLE else fine(area, f"{free}.")


def _key(name: str) -> str:
    return f"agents.{name}" if name else AGENT


def _agent(key: str, found: Presence) -> Iterator[Diagnosis]:
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
    walls = probes.walls()
    if walls.stand:
        yield fine(SANDBOX, "Agents, set-up lines and checks are confined by bubblewrap.")
        yield from (_network(name, probes) for name in agents)
    elif mode is SandboxMode.REQUIRED:
        yield fault(SANDBOX, f"sandbox: required cannot be kept. {walls.why_not}", walls.cure)
    else:
        yield warning(SANDBOX, f"{walls.why_not} So {UNCONFINED}", walls.cure)
    if walls.stand and not walls.filtered:
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
