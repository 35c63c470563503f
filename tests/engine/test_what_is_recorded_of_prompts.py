"""What every run of the agent is told is recorded: what it was made from, and its bytes."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.issue import AuthorisingAct
from mulligan.implement import implement
from mulligan.text.guidance import guidance_block
from world.scripted_agent import ScriptedAgent
from world.workers import Shop, mend, red_once_changed, shop

WORDS = "Give `X` the value 1.\nTouch nothing else."


@pytest.fixture
def here(tmp_path: Path) -> Generator[Shop]:
    with shop(tmp_path) as made:
        yield made


def test_guidance_is_told_in_every_attempt_of_its_epoch_and_of_no_other(here: Shop) -> None:
    here.check(red_once_changed)
    agent = ScriptedAgent(mend)
    tools, ref, now = here.tools(agent), here.desk.ready(), here.desk.clock.now()
    guided = AuthorisingAct("operator:1", "wes", now, trusted=True, guidance=WORDS)
    implement(ref, tools, guided)
    implement(ref, tools, guided)
    later = AuthorisingAct("operator:2", "wes", now + timedelta(hours=1), trusted=True)
    here.policy["max_issue_attempts"] = 1
    implement(ref, tools, guided)
    implement(ref, tools, later)
    first, second, third, fourth = (task.prompt for task in agent.tasks)
    assert f"# Human guidance\n\n{guidance_block(WORDS)}\n\n# Instructions" in first
    for retried in (second, third):
        assert f"# Retry context\n\n## Human guidance\n\n{guidance_block(WORDS)}" in retried
    assert "uidance" not in fourth
