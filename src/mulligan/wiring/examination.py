"""Build the doctor's probes from the adapters."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from mulligan.agent.presence import look_for
from mulligan.config.operator import AgentSettings, Operator
from mulligan.domain.machine import Presence, Room
from mulligan.engine.probes import Probes
from mulligan.git.version import version
from mulligan.sandbox.user import is_root
from mulligan.state.database import open_database, state_directory
from mulligan.state.ledger import SqlLedger
from mulligan.state.room import room_for
from mulligan.verification.programs import is_there, program_of
from mulligan.wiring.bench import HASTE, Environment, open_git, open_github
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.confinement import look_at_walls, network_inside
from mulligan.wiring.records import at_work
from mulligan.wiring.redaction import redactor_of


@contextmanager
def build_probes(operator: Operator, environment: Environment) -> Generator[Probes]:
    """Build the probes; none needs the lock, so they may be used beside a worker."""
    with open_github(operator, redactor_of(operator, environment), HASTE) as github:
        tracker = github.tracker
        worktrees, policies = open_git(operator, github, environment)

        def fetch(repository: str) -> str:
            worktrees.refresh(repository)
            return worktrees.base_branch(repository)

        yield Probes(
            account=tracker.own_login,
            notes=github.credentials.notes,
            facts=tracker.repository,
            labels=tracker.label_names,
            fetch=fetch,
            policy=policies.strict,
            file=worktrees.base_file,
            names=worktrees.base_names,
            is_root=is_root,
            git_version=lambda: version(environment),
            at_work=lambda: at_work(operator),
            ledger=lambda: _open_ledger(operator),
            state_room=lambda: _state_room(operator),
            workspace_room=lambda: room_for(operator.workspace.root),
            agents=lambda: _agents(operator, environment),
            walls=lambda: look_at_walls(operator, environment),
            network=lambda name: network_inside(_settings(operator)[name], operator),
            program_of=program_of,
            finds=lambda program: is_there(program, environment),
        )


def _agents(operator: Operator, environment: Environment) -> Mapping[str, Presence]:
    return {
        name: look_for(settings, environment, operator.adapters)
        for name, settings in _settings(operator).items()
    }


def _settings(operator: Operator) -> Mapping[str, AgentSettings]:
    return {"": operator.agent, **operator.agents}


def _state_room(operator: Operator) -> Room | None:
    directory = state_directory(operator.state.url)
    return room_for(directory) if directory else None


def _open_ledger(operator: Operator) -> int:
    with open_database(operator.state.url) as database:
        with database.write():
            pass
        return len(SqlLedger(database, SystemClock()).statuses())
