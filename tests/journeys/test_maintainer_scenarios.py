"""Days of a maintainer, told as stories that run on the simulated GitHub and on `emulate` alike.

Each is a walk through commands, stages and labels that are moved by hand. What `emulate` lacks is
in test_emulate_coverage.py: without a list of all comments of a repository it is asked place by
place, nothing gets a reaction, and the pull request's head is not the commit that was pushed.
"""

from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest

from mulligan.domain.command import Verb
from mulligan.domain.issue import Stage
from world.environments import EMULATE, SIMULATOR, ScenarioEnvironment, scenario_environment
from world.scenarios import STRANGER, Action, ActionKind, ScenarioRun, Step

READY, RUNNING, REVIEW, HITL = "mulligan", "mulligan:running", "mulligan:review", "mulligan:hitl"
BUG, ASKED = "bug", (READY, RUNNING)
FAIL = "sys.exit(1)\n"
WRITE = "import time\npathlib.Path('notes.txt').write_text(f'{time.time_ns()}\\n')\n"
WAIT = f"import time\nif 'Write two.' not in prompt:\n    time.sleep(60)\n{WRITE}"
WAITS, ASKS, USAGE = "needs human review (HITL)", "**Mulligan asks for a review", "| comment |"


def says(who: str, words: str, *, on_pull: bool = False) -> Action:
    return Action(who, ActionKind.SAYS, f"/mulligan {words}", on_pull)


def puts_on(who: str, label: str, *, on_pull: bool = False) -> Action:
    return Action(who, ActionKind.PUTS_ON, label, on_pull)


def takes_off(who: str, label: str, *, on_pull: bool = False) -> Action:
    return Action(who, ActionKind.TAKES_OFF, label, on_pull)


ASK, WITHDRAW = puts_on("ada", READY), takes_off("ada", READY)
STRANGERS_WORD = says(STRANGER, "skip")

AN_ISSUE_THAT_WAITS = (
    Step(
        "Ada asks for work; the first try fails.",
        (ASK,),
        (Stage.READY, 1, ASKED, 1),
        agent=FAIL,
        one_attempt=True,
    ),
    Step("She changes her mind.", (WITHDRAW,), (Stage.RESOLVED, 1, (), 1)),
    Step("She asks again.", (ASK,), (Stage.READY, 2, ASKED, 2), one_attempt=True),
    Step(
        "Off and on again, it is a new request.",
        (WITHDRAW, ASK),
        (Stage.READY, 3, ASKED, 3),
        one_attempt=True,
    ),
    Step("The second try fails as well.", (), (Stage.HITL, 3, (HITL,), 4), code=3),
    Step(
        "People talk, and move labels that say nothing.",
        (
            says("ada", "status"),
            says("wes", "rettry"),
            says("ada", "abort"),
            STRANGERS_WORD,
            Action("ada", ActionKind.SAYS, "> /mulligan skip"),
            takes_off("ada", HITL),
            puts_on("wes", BUG),
            ASK,
            WITHDRAW,
        ),
        (Stage.HITL, 3, (BUG,), 4),
        told=(WAITS, USAGE, "No attempt is running"),
    ),
    Step(
        "It is to be tried again, though not now.",
        (says("ada", "retry"), says("wes", "pause")),
        (Stage.READY, 4, (BUG,), 4),
    ),
    Step("The label changes nothing.", (ASK,), (Stage.READY, 4, (BUG, READY), 4)),
    Step("Off it is withdrawn.", (WITHDRAW,), (Stage.RESOLVED, 4, (BUG,), 4)),
    Step(
        "Work continues.",
        (says("wes", "resume"), ASK),
        (Stage.READY, 5, (BUG, *ASKED), 5),
        one_attempt=True,
    ),
    Step(
        "The label is deleted for all issues.",
        (Action("ada", ActionKind.DELETES, READY),),
        (Stage.RESOLVED, 5, (BUG,), 5),
    ),
    Step(
        "Ada says what is to be done.",
        (says("ada", "fix: Write two."),),
        (Stage.REVIEW, 6, (BUG, REVIEW), 6),
        agent=WRITE,
    ),
)

A_PULL_REQUEST = (
    Step("It is made.", (ASK,), (Stage.REVIEW, 1, (REVIEW,), 1), agent=WRITE),
    Step(
        "Labels and words that mean nothing, and a question.",
        (
            takes_off("ada", REVIEW),
            puts_on("ada", READY, on_pull=True),
            puts_on("wes", BUG, on_pull=True),
            says("wes", "status", on_pull=True),
            says(STRANGER, "skip", on_pull=True),
            Action(STRANGER, ActionKind.REVIEWS, "I would not.", on_pull=True),
        ),
        (Stage.REVIEW, 1, (), 1),
        told=(ASKS,),
    ),
    Step(
        "Wes has it done otherwise.",
        (takes_off("ada", READY, on_pull=True), says("wes", "fix: Write two.", on_pull=True)),
        (Stage.REVIEW, 2, (REVIEW,), 2),
    ),
    Step(
        "He reviews it.",
        (Action("wes", ActionKind.REVIEWS, "Not quite.", on_pull=True),),
        (Stage.REVIEW, 2, (REVIEW,), 3),
    ),
    Step("Ada has it made anew.", (ASK,), (Stage.REVIEW, 3, (REVIEW,), 4)),
    Step("She leaves it.", (says("ada", "skip not now"),), (Stage.RESOLVED, 3, (), 4)),
    Step("She takes it up.", (says("ada", "retry"),), (Stage.REVIEW, 4, (REVIEW,), 5)),
    Step(
        "She merges.", (Action("ada", ActionKind.MERGES, on_pull=True),), (Stage.RESOLVED, 4, (), 5)
    ),
)

AN_ISSUE_AT_WORK = (
    Step("Ada asks for work.", (ASK,), (Stage.RUNNING, 1, ASKED, 1), agent=WAIT),
    Step(
        "Labels and words that change nothing.",
        (
            puts_on("wes", BUG),
            puts_on("wes", HITL),
            STRANGERS_WORD,
            says("wes", "status"),
            says("wes", "retry"),
        ),
        (Stage.RUNNING, 1, (*ASKED, BUG, HITL), 1),
        told=("Mulligan is working on this", "An attempt is already running"),
    ),
    Step("Running goes.", (takes_off("ada", RUNNING),), (Stage.RESOLVED, 1, (BUG,), 1)),
    Step("She asks again.", (ASK,), (Stage.RUNNING, 2, (*ASKED, BUG), 2)),
    Step("Ready goes.", (WITHDRAW,), (Stage.RESOLVED, 2, (BUG,), 2)),
    Step("She asks again.", (ASK,), (Stage.RUNNING, 3, (*ASKED, BUG), 3)),
    Step("Off and on again.", (WITHDRAW, ASK), (Stage.RUNNING, 4, (*ASKED, BUG), 4)),
    Step("Wes stops it.", (says("wes", "abort"),), (Stage.RESOLVED, 4, (BUG,), 4)),
    Step("Ada has it begin.", (says("ada", "retry"),), (Stage.RUNNING, 5, (RUNNING, BUG), 5)),
    Step(
        "She says what is to be done.",
        (says("wes", "pause"), says("ada", "fix: Write two.")),
        (Stage.REVIEW, 6, (BUG, REVIEW), 6),
    ),
)

STORIES = (AN_ISSUE_THAT_WAITS, A_PULL_REQUEST, AN_ISSUE_AT_WORK)


@pytest.fixture(params=[SIMULATOR, pytest.param(EMULATE, marks=pytest.mark.deep)])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[ScenarioEnvironment]:
    kind: str = request.param
    with scenario_environment(
        kind, tmp_path, max_issue_attempts=2, review={"settle": "0s"}
    ) as made:
        yield made


# Each move is a test of its own in tests/daemon; this walks through them in one go.
@pytest.mark.deep
@pytest.mark.parametrize("story", [AN_ISSUE_THAT_WAITS, A_PULL_REQUEST], ids=["waits", "pull"])
def test_a_day_of_passes(here: ScenarioEnvironment, story: tuple[Step, ...]) -> None:
    ScenarioRun(here, here.issue()).run_steps(story)


@pytest.mark.deep
def test_a_day_beside_a_daemon(here: ScenarioEnvironment) -> None:
    here.here.configure(poll={"interval": "300ms"})
    ref, daemon = here.issue(), here.here.start("run")
    try:
        ScenarioRun(here, ref, by_daemon=True).run_steps(AN_ISSUE_AT_WORK)
    finally:
        daemon.kill()
        daemon.communicate()


MOVES = {
    *((ActionKind.TAKES_OFF, READY, stage) for stage in (Stage.READY, Stage.RUNNING, Stage.HITL)),
    *((ActionKind.PUTS_ON, READY, stage) for stage in (Stage.HITL, Stage.REVIEW, Stage.RESOLVED)),
    (ActionKind.TAKES_OFF, RUNNING, Stage.RUNNING),
    (ActionKind.TAKES_OFF, REVIEW, Stage.REVIEW),
    (ActionKind.TAKES_OFF, HITL, Stage.HITL),
    *((ActionKind.PUTS_ON, BUG, stage) for stage in (Stage.RUNNING, Stage.HITL, Stage.REVIEW)),
    (ActionKind.DELETES, READY, Stage.READY),
}
ON_PULL_REQUESTS = {
    *((ActionKind.PUTS_ON, READY), (ActionKind.PUTS_ON, BUG), (ActionKind.TAKES_OFF, READY)),
    *((ActionKind.REVIEWS, ""), (ActionKind.MERGES, "")),
}


@pytest.mark.pure
def test_every_command_stage_and_move_is_in_a_story() -> None:
    acts = [act for story in STORIES for step in story for act in step.acts]
    assert {act.verb for act in acts} == {None, *Verb}
    stages = {step.stands[0] for story in STORIES for step in story}
    assert stages == set(Stage)
    moved = {
        (act.move, act.what, before.stands[0])
        for story in STORIES
        for before, step in pairwise(story)
        for act in step.acts
    }
    assert moved >= MOVES
    labels = {READY, BUG}
    seen = {(act.move, act.what if act.what in labels else "") for act in acts if act.on_pull}
    assert seen >= ON_PULL_REQUESTS
