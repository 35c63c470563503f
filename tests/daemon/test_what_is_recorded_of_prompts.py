"""What every run of the agent is told is recorded: what it was made from, and its bytes."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.events import AttemptContextAssembled, AttemptContextDelivered
from mulligan.domain.issue import AuthorisingAct, IssueRef
from mulligan.implement.phase import implement
from mulligan.implement.prompt.manifest import Manifest, Proof, hash_of, prove_lineage, sha256
from mulligan.text.commands import guidance_block
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


def assembled(here: Shop, ref: IssueRef) -> list[AttemptContextAssembled]:
    return [each for each in here.events(ref) if isinstance(each, AttemptContextAssembled)]


def delivered(here: Shop, ref: IssueRef) -> list[AttemptContextDelivered]:
    return [each for each in here.events(ref) if isinstance(each, AttemptContextDelivered)]


def test_every_run_has_its_prompt_and_its_manifest_also_in_fix_rounds(here: Shop) -> None:
    here.check(red_once_changed)
    here.policy |= {"max_fix_rounds": 2, "max_issue_attempts": 2}
    agent, ref = ScriptedAgent(mend), here.desk.ready()
    tools = here.tools(agent)
    for _ in range(2):
        implement(ref, tools)
    sent, made = delivered(here, ref), assembled(here, ref)
    assert [(each.fix_round, each.manifest_hash) for each in sent] == [
        (each.fix_round, each.manifest_hash) for each in made
    ]
    assert [each.fix_round for each in sent] == [0, 1, 2, 0, 1, 2]
    told = [tools.artifacts.read(each.prompt_artifact) for each in sent]
    assert told == [task.prompt.encode() for task in agent.tasks]
    assert [sha256(prompt) for prompt in told] == [each.delivered_hash for each in sent]
    first, second = here.ledger.history(ref)
    assert [fix.manifest_hash for fix in first.fix_rounds] == [
        each.manifest_hash for each in sent[1:3]
    ]
    assert second.manifest_hash == sent[3].manifest_hash
    assert sent[2].prior_manifest_hashes == (first.manifest_hash, sent[1].manifest_hash)
    assert sent[3].prior_manifest_hashes == (first.manifest_hash,)

    def stored(number: int, name: str) -> bytes | None:
        return tools.artifacts.path(ref, number, name).read_bytes()

    assert prove_lineage(here.ledger.history(ref), stored) == (Proof(1), Proof(2))


def test_what_a_run_is_given_is_an_event_with_the_agent_its_version_and_its_walls(
    here: Shop,
) -> None:
    ref = here.desk.ready()
    implement(ref, here.tools(mend))
    (made,), (sent,) = assembled(here, ref), delivered(here, ref)
    manifest = Manifest.model_validate(made.manifest)
    assert (manifest.agent, manifest.agent_version, manifest.sandbox) == ("scripted", "1.0", "off")
    assert hash_of(made.manifest) == made.manifest_hash == sent.manifest_hash
    assert (made.inputs_hash, made.context_hash) == (manifest.inputs_hash, None)
