"""Set the stage on which the doctor tries an agent out: a throw-away repository, and the books."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from mulligan.agent.invocation import Own
from mulligan.agent.runner import CommandAgent
from mulligan.config.operator import AgentSettings, Operator
from mulligan.domain.attempt import AgentRun, Meter, Task
from mulligan.domain.diagnosis import Diagnosis
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import Run, spent_in
from mulligan.engine.audition import FILE, Stage, audition
from mulligan.git.repository import Repository
from mulligan.state.accounts import SqlAccounts
from mulligan.state.database import open_database
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.confinement import confine, network_for
from mulligan.wiring.redaction import redactor_of

SHORT = timedelta(minutes=1)
OUR_OWN = IssueRef("mulligan/doctor", 0)
"""Under what the books hold the doctor's own runs; no issue has the number 0."""
WHO = ("-c", "user.name=Mulligan", "-c", "user.email=mulligan@localhost")


def try_agents(operator: Operator, environment: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Try every configured agent, one after the other; what they use is kept in the books."""
    for name, settings in {"": operator.agent, **operator.agents}.items():
        with _stage(name, settings, operator, environment) as stage:
            yield from audition(stage)


@contextmanager
def _stage(
    name: str, settings: AgentSettings, operator: Operator, environment: Mapping[str, str]
) -> Generator[Stage]:
    root, clock = operator.workspace.root, SystemClock()
    root.mkdir(parents=True, exist_ok=True)
    redactor, sandbox = redactor_of(operator, environment), confine(operator, environment)
    own = Own(operator.adapters, operator.prices, operator.sandbox.hosts, name)
    called = f"agent {name or settings.kind}"
    number, plays = int(clock.now().timestamp()) % 2**31, count()
    with (
        TemporaryDirectory(prefix="doctor-", dir=root, ignore_cleanup_errors=True) as place,
        open_database(operator.state.url) as database,
    ):
        tree, accounts = _repository(Path(place), environment), SqlAccounts(database, redactor)

        def play(prompt: str, timeout: timedelta) -> AgentRun:
            limited = settings.model_copy(update={"timeout": timeout})
            network = network_for(settings, operator, sandbox)
            agent = CommandAgent(limited, environment, redactor, sandbox, network, own)
            run = Run(OUR_OWN, number, next(plays), clock.now(), agent.name)
            meter = _meter(run, accounts, operator)
            played = agent.run(_task(prompt, Path(place), tree, meter))
            accounts.record(run, played.facts)
            return played

        def written() -> str | None:
            file = tree / FILE
            is_plain = file.is_file() and not file.is_symlink()
            return file.read_text(errors="replace") if is_plain else None

        yield Stage(called, play, written)


def _repository(place: Path, environment: Mapping[str, str]) -> Path:
    tree = place / "repository"
    tree.mkdir()
    git = Repository("the doctor's repository", tree / ".git", environment, tree)
    git.run("init", "--quiet", str(tree), patience=SHORT)
    git.run(*WHO, "commit", "--quiet", "--allow-empty", "-m", "Begin", patience=SHORT)
    return tree


def _meter(run: Run, accounts: SqlAccounts, operator: Operator) -> Meter:
    """Keep a run of the doctor's in the books, and to what an attempt may use."""

    def note(usage: AgentFacts) -> bool:
        accounts.record(run, usage)
        return operator.budget.attempt.allowance.covers(spent_in(usage))

    return note


def _task(prompt: str, place: Path, tree: Path, meter: Meter) -> Task:
    return Task(
        issue=str(OUR_OWN),
        attempt=1,
        fix_round=0,
        prompt=prompt,
        directory=tree,
        private=place / "private",
        log=place / "agent.log",
        manifest_hash="",
        meter=meter,
    )
