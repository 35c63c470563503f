"""Build the probes of `mulligan doctor`, and try every configured agent in a scratch repository."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from mulligan.agents.invocation import OperatorAgents
from mulligan.agents.runner import CommandAgent
from mulligan.checks.runner import program_exists, program_of
from mulligan.config.operator import AgentSettings, Operator
from mulligan.daemon.doctor import (
    FILE,
    AgentTrial,
    Probes,
    diagnose_without_configuration,
    try_agent,
)
from mulligan.domain.agent_rest import rest_sentence
from mulligan.domain.attempt import AgentRun, Meter, Task
from mulligan.domain.errors import ConfigError, MulliganError
from mulligan.domain.host import Diagnosis
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, spent_in
from mulligan.git.repository import Repository, version
from mulligan.implement.agent_selection import rest_now
from mulligan.implement.repository_customs import read_title_style
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import (
    QUICK_RETRIES,
    Environment,
    build_agents,
    open_git,
    open_github,
)
from mulligan.interfaces.bootstrap.machine import MachineProbes
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.sandbox import (
    command_network_status,
    confine,
    image_store,
    network_for,
)
from mulligan.interfaces.bootstrap.stores import at_work, read_pauses, read_stand_backs
from mulligan.sandbox.hidden_programs import find_hidden_program
from mulligan.sandbox.programs import machine_variables
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.sandbox.user import is_root
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from mulligan.storage.usage import SqlUsageStore
from mulligan.text.redact import Redactor

GIT_TIMEOUT = timedelta(minutes=1)

DOCTOR_ISSUE = IssueRef("mulligan/doctor", 0)
"""The issue number of the doctor's own runs; no real issue has the number 0."""

GIT_IDENTITY = ("-c", "user.name=Mulligan", "-c", "user.email=mulligan@localhost")


def try_agents(operator: Operator, environment: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Try every configured agent in turn, and record its usage."""
    runs = count()
    for name, settings in operator.all_agents.items():
        with _agent_trial(name, settings, operator, environment, runs) as trial:
            yield from try_agent(trial)


@contextmanager
def _agent_trial(
    name: str,
    settings: AgentSettings,
    operator: Operator,
    environment: Mapping[str, str],
    runs: Iterator[int],
) -> Generator[AgentTrial]:
    """Prepare the trial of one agent; `runs` numbers the runs of all of them."""
    root, clock = operator.workspace.root, SystemClock()
    root.mkdir(parents=True, exist_ok=True)
    redactor, sandbox = redactor_of(operator, environment), confine(operator, environment)
    own = OperatorAgents(operator.adapters, operator.prices, operator.sandbox.hosts, name)
    title = f"agent {name or settings.kind}"
    number = int(clock.now().timestamp()) % 2**31
    with (
        TemporaryDirectory(prefix="doctor-", dir=root, ignore_cleanup_errors=True) as place,
        open_database(operator.state.url) as database,
    ):
        tree, usage_store = _repository(Path(place), environment), SqlUsageStore(database, redactor)

        def run_agent(prompt: str, timeout: timedelta) -> AgentRun:
            limited = settings.model_copy(update={"timeout": timeout})
            network = network_for(settings, operator, sandbox)
            agent = CommandAgent(limited, environment, redactor, sandbox, network, own)
            run = Run(DOCTOR_ISSUE, number, next(runs), clock.now(), agent.name)
            meter, before = _meter(run, usage_store, operator), usage_store.rest(agent.name)
            result = agent.run(_task(prompt, Path(place), tree, meter))
            result = result.ended_at(clock.now(), before, agent.account)
            usage_store.record(run, result.facts)
            return result

        def read_file() -> str | None:
            file = tree / FILE
            is_plain = file.is_file() and not file.is_symlink()
            return file.read_text(errors="replace") if is_plain else None

        yield AgentTrial(title, run_agent, read_file)


def _repository(place: Path, environment: Mapping[str, str]) -> Path:
    tree = place / "repository"
    tree.mkdir()
    git = Repository("the doctor's repository", tree / ".git", environment, tree)
    git.run("init", "--quiet", str(tree), timeout=GIT_TIMEOUT)
    git.run(*GIT_IDENTITY, "commit", "--quiet", "--allow-empty", "-m", "Begin", timeout=GIT_TIMEOUT)
    return tree


def _meter(run: Run, usage_store: SqlUsageStore, operator: Operator) -> Meter:
    """Record the usage of the doctor's run, and limit it to the budget of an attempt."""

    def note(usage: AgentFacts) -> bool:
        usage_store.record(run, usage)
        return operator.budget.attempt.allowance.covers(spent_in(usage))

    return note


def _task(prompt: str, place: Path, tree: Path, meter: Meter) -> Task:
    return Task(
        issue=str(DOCTOR_ISSUE),
        attempt=1,
        fix_round=0,
        prompt=prompt,
        directory=tree,
        private=place / "private",
        log=place / "agent.log",
        manifest_hash="",
        meter=meter,
    )


def look_around(environment: Environment) -> Iterator[Diagnosis]:
    """Check what does not depend on the configuration."""
    return diagnose_without_configuration(is_root, lambda: version(environment))


@contextmanager
def build_probes(operator: Operator, environment: Environment) -> Generator[Probes]:
    """Build the probes; none takes the lock, so they may run beside a worker."""
    with open_github(
        operator, environment, redactor_of(operator, environment), QUICK_RETRIES
    ) as github:
        tracker = github.tracker
        worktrees, policies = open_git(operator, github, environment)

        def fetch(repository: str) -> str:
            worktrees.fetch_base(repository)
            worktrees.check_branch_names(repository)
            return worktrees.base_branch(repository)

        sandbox = _sandbox(operator, environment)
        images = image_store(operator, environment, sandbox or Unconfined())
        machine = MachineProbes(operator, environment, sandbox=sandbox)
        yield Probes(
            account=tracker.own_login,
            notes=github.credentials.notes,
            facts=tracker.repository,
            labels=tracker.label_names,
            fetch=fetch,
            policy=policies.strict,
            valid_part=policies.in_force,
            file=worktrees.base_file,
            names=worktrees.base_names,
            is_root=is_root,
            git_version=machine.git_version,
            at_work=lambda: at_work(operator),
            ledger=lambda: _open_ledger(operator),
            state_room=machine.state_room,
            workspace_room=machine.workspace_room,
            agent=machine.started_agent,
            sandbox_status=machine.sandbox_status,
            network=machine.network,
            signing_key=machine.signing_key,
            signing_keys=tracker.rules.signing_keys,
            title_style=lambda name, policy: read_title_style(
                name, policy, worktrees, worktrees.base_sha(name) or ""
            ),
            rules=tracker.rules.rules,
            protection=tracker.rules.protection,
            program_of=program_of,
            has_program=lambda program: program_exists(program, environment),
            image_problem=images.problem,
            build_problem=images.build_problem,
            hidden_program=lambda line: _hidden_program(line, environment, sandbox),
            pauses=lambda: read_pauses(operator),
            stand_backs=lambda: read_stand_backs(operator),
            command_network=lambda: command_network_status(operator, environment),
            rest=lambda name: _rest(name, operator, environment, sandbox or Unconfined()),
        )


def _sandbox(operator: Operator, environment: Environment) -> Sandbox | None:
    """Return the sandbox to start agents in; None if none works, which is a finding of its own."""
    try:
        return confine(operator, environment)
    except ConfigError:
        return None


def _hidden_program(
    line: str, environment: Environment, sandbox: Sandbox | None
) -> tuple[str, str] | None:
    """Return why the sandbox hides a program of a shell command, and the setting that shows it."""
    variables = machine_variables(environment)
    found = find_hidden_program(sandbox, line, "", variables) if sandbox else None
    return (found.reason, found.fix) if found else None


def _rest(name: str, operator: Operator, environment: Environment, sandbox: Sandbox) -> str:
    """Return why an agent rests; empty also if that cannot be read, which is another finding."""
    with suppress(MulliganError), open_database(operator.state.url) as database:
        agent = build_agents(operator, environment, sandbox, Redactor())[name]
        rest = rest_now(agent, SqlUsageStore(database), SystemClock().now())
        return rest_sentence(agent.name, rest) if rest else ""
    return ""


def _open_ledger(operator: Operator) -> int:
    with open_database(operator.state.url) as database:
        with database.write():
            pass
        return len(SqlLedger(database, SystemClock()).statuses())
