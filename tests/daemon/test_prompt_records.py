"""What every run of the agent is told is recorded: what it was made from, and its bytes."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.events import AttemptContextAssembled, AttemptContextDelivered
from mulligan.domain.issue import AuthorisingAct, IssueRef, OperatorAct
from mulligan.implement.phase import implement
from mulligan.implement.prompt.manifest import (
    Manifest,
    ManifestCheck,
    hash_of,
    sha256,
    verify_manifests,
)
from mulligan.text.commands import guidance_block
from world.scripted_agent import ScriptedAgent
from world.workers import WorkerEnvironment, fail_once_changed, fix_the_bug, worker_environment

WORDS = "Give `X` the value 1.\nTouch nothing else."


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def test_guidance_is_told_in_every_attempt_of_its_epoch_and_of_no_other(
    here: WorkerEnvironment,
) -> None:
    here.check(fail_once_changed)
    agent = ScriptedAgent(fix_the_bug)
    context, ref, now = here.context(agent), here.desk.ready(), here.desk.clock.now()
    guided = AuthorisingAct(OperatorAct("1"), "wes", now, trusted=True, guidance=WORDS)
    implement(ref, context, guided)
    implement(ref, context, guided)
    later = AuthorisingAct(OperatorAct("2"), "wes", now + timedelta(hours=1), trusted=True)
    here.policy["max_issue_attempts"] = 1
    implement(ref, context, guided)
    implement(ref, context, later)
    first, second, third, fourth = (task.prompt for task in agent.tasks)
    assert f"# Human guidance\n\n{guidance_block(WORDS)}\n\n# Instructions" in first
    for retried in (second, third):
        assert f"# Retry context\n\n## Human guidance\n\n{guidance_block(WORDS)}" in retried
    assert "uidance" not in fourth


def assembled(here: WorkerEnvironment, ref: IssueRef) -> list[AttemptContextAssembled]:
    return [each for each in here.events(ref) if isinstance(each, AttemptContextAssembled)]


def delivered(here: WorkerEnvironment, ref: IssueRef) -> list[AttemptContextDelivered]:
    return [each for each in here.events(ref) if isinstance(each, AttemptContextDelivered)]


def test_every_run_has_its_prompt_and_its_manifest_also_in_fix_rounds(
    here: WorkerEnvironment,
) -> None:
    here.check(fail_once_changed)
    here.policy |= {"max_fix_rounds": 2, "max_issue_attempts": 2}
    agent, ref = ScriptedAgent(fix_the_bug), here.desk.ready()
    context = here.context(agent)
    for _ in range(2):
        implement(ref, context)
    sent, made = delivered(here, ref), assembled(here, ref)
    assert [(each.fix_round, each.manifest_hash) for each in sent] == [
        (each.fix_round, each.manifest_hash) for each in made
    ]
    assert [each.fix_round for each in sent] == [0, 1, 2, 0, 1, 2]
    told = [context.artifacts.read(each.prompt_artifact) for each in sent]
    assert told == [task.prompt.encode() for task in agent.tasks]
    assert [sha256(prompt) for prompt in told] == [each.delivered_hash for each in sent]
    assert [each.rendered_prompt_hash for each in made] == [each.delivered_hash for each in sent]
    assert len({each.context_window_hash for each in made}) == len(made)
    first, second = here.ledger.history(ref)
    assert [fix.manifest_hash for fix in first.fix_rounds] == [
        each.manifest_hash for each in sent[1:3]
    ]
    assert second.manifest_hash == sent[3].manifest_hash
    assert sent[2].prior_manifest_hashes == (first.manifest_hash, sent[1].manifest_hash)
    assert sent[3].prior_manifest_hashes == (first.manifest_hash,)

    def stored(number: int, name: str) -> bytes | None:
        return context.artifacts.path(ref, number, name).read_bytes()

    assert verify_manifests(here.ledger.history(ref), stored) == (
        ManifestCheck(1),
        ManifestCheck(2),
    )


def test_what_a_run_is_given_is_an_event_with_the_agent_its_version_and_its_walls(
    here: WorkerEnvironment,
) -> None:
    ref = here.desk.ready()
    implement(ref, here.context(fix_the_bug))
    (made,), (sent,) = assembled(here, ref), delivered(here, ref)
    manifest = Manifest.model_validate(made.manifest)
    assert (manifest.agent, manifest.agent_version, manifest.sandbox) == ("scripted", "1.0", "off")
    assert hash_of(made.manifest) == made.manifest_hash == sent.manifest_hash
    assert (made.inputs_hash, made.context_hash) == (manifest.inputs_hash, None)
