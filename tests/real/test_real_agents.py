"""`make check-agents`: the real agents mend the demo's second issue, on a machine with no network.

Each is installed, pointed at the scripted model, and run by Mulligan itself. Its first change
breaks a test; its second prompt tells which, and the model has it make another change.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from github_simulator.app import running
from github_simulator.seed import MAINTAINER, READY, REPOSITORY, seed
from mulligan.config.load import load_operator
from mulligan.daemon.once import PassLimits, run_once
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.interfaces.bootstrap.container import build
from world.issue_names import ref_of
from world.model import serve_model
from world.model_script import Model, ModelRequest, Step, conversation
from world.real_agents import PACKAGES, change, environment, install, settings
from world.simulated_github import World

PLACE = Path(__file__).parents[2] / ".agents"
KINDS = [
    package.kind
    for package in PACKAGES
    if package.kind not in os.environ.get("WITHOUT", "").replace(",", " ").split()
]
TOLD = "dividing by zero must stay an error"
CHECK = '    if right == 0:\n        raise CalculatorError("cannot divide by zero")\n'
WRONG = "    if right == 0:\n        return 0\n"
MEAN = "    return divide(sum(values), len(values))\n"
RIGHT = f"    if not values:\n        return 0\n{MEAN}"
FILE = "calculator/operations.py"


def shell(old: str, new: str) -> str:
    program = f"p = {FILE!r}; s = open(p).read(); open(p, 'w').write(s.replace({old!r}, {new!r}))"
    return f"python3 - <<'END'\n{program}\nEND"


def edit(old: str, new: str) -> str:
    return f"{FILE}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"


def mends(kind: str) -> Model:
    """Answer as a model does that reads what went wrong before."""

    def answer(asked: ModelRequest) -> Step:
        old, new = (MEAN, RIGHT) if TOLD in asked.text else (CHECK, WRONG)
        return conversation(*change(kind, shell(old, new), edit(old, new)))(asked)

    return answer


def place_of(kind: str) -> Path:
    """Give where the agent's program was installed."""
    return install(next(each for each in PACKAGES if each.kind == kind), PLACE).resolve()


def configuration(kind: str, place: Path, url: str) -> Path:
    token, file = place / "token", place / "mulligan.yml"
    token.write_text("t")
    # Until Mulligan's sandbox is around it; its own starts on few machines.
    more = ("-c", 'sandbox_mode="danger-full-access"') if kind == "codex" else ()
    agent = settings(kind, *more).model_dump(mode="json", include={"kind", "model", "arguments"})
    written = {
        "github": {"api_url": url, "token_file": str(token)},
        "repositories": [{"name": REPOSITORY, "clone_url": str(place / f"{REPOSITORY}.git")}],
        "agent": agent | {"timeout": "100s"},
        "sandbox": {"read": [str(place_of(kind).parent)]},
        "state": {"url": f"sqlite:///{place}/mulligan.db"},
        "workspace": {"root": str(place / "work")},
    }
    file.write_text(json.dumps(written))
    return file


def worked(kind: str, place: Path, address: str) -> tuple[Stage, Sequence[WorkerResultMeta]]:
    """Have Mulligan work on the issue until it rests."""
    world = World()
    seeded = seed(world, place, "t", None)
    ref = ref_of(seeded.issues[1])
    world.label(ref, READY, MAINTAINER)
    path = f"{place_of(kind)}:{os.environ['PATH']}"
    with running(world) as url:
        around = environment(kind, address, path)
        operator = load_operator(configuration(kind, place, url), around)
        with build(operator, around, lambda status, event: None) as bench:
            run_once((REPOSITORY,), bench.context, PassLimits())
            ledger = bench.context.ledger
            return ledger.status(ref).stage, ledger.history(ref)


def test_nothing_but_loopback_can_be_reached() -> None:
    devices = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    assert [line.partition(":")[0].strip() for line in devices] == ["lo"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_the_second_try_of_a_real_agent_is_told_what_failed(kind: str, tmp_path: Path) -> None:
    with serve_model(mends(kind)) as model:
        stage, attempts = worked(kind, tmp_path, model.address)
    told = [(meta.outcome, meta.error) for meta in attempts]
    assert [meta.outcome for meta in attempts] == [Outcome.CHECKS_FAILED, Outcome.SUCCEEDED], told
    assert stage is Stage.REVIEW
    for meta in attempts:
        assert [file.path for file in meta.files_modified] == [FILE]
        assert meta.agent
        assert (meta.agent.cost_usd or 0) > 0
