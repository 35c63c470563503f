"""People command in comments: in every stage, once each, whoever is killed (COMMAND-1)."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.agents.runner import CommandAgent
from mulligan.config.operator import AgentSettings
from mulligan.daemon.explain import explain
from mulligan.daemon.once import run_once
from mulligan.daemon.poll import poll
from mulligan.daemon.worker import Worker
from mulligan.domain.command import Verb
from mulligan.domain.events import Authorised, CommandReceived, HumanResponded, Resolved
from mulligan.domain.issue import CommentAct, IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import STATUS_EDIT_INTERVAL
from mulligan.implement.effects import REFUSAL_TIME
from mulligan.implement.ports import CodingAgent
from world.behaviours import AgentInput, Behaviour
from world.processes import wait_until
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.trackers import BOT
from world.workers import (
    PATH,
    WorkerEnvironment,
    fail_once_changed,
    fix_the_bug,
    worker_environment,
)


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


def do(here: WorkerEnvironment, agent: CodingAgent | Behaviour = fix_the_bug) -> None:
    """Make one pass; nothing may fail."""
    assert run_once((NAME,), here.context(agent)).problems == ()


def say(here: WorkerEnvironment, ref: IssueRef, words: str, by: str = "wes") -> int:
    return here.desk.hub.world.comment(ref, words, by)


def escalated(here: WorkerEnvironment) -> IssueRef:
    """Give an issue that was handed to a person after its one attempt."""
    ref = here.desk.ready()
    here.policy["max_issue_attempts"] = 1
    here.check(fail_once_changed)
    do(here)
    assert here.labels(ref) == ["mulligan:hitl"]
    return ref


def stage(here: WorkerEnvironment, ref: IssueRef) -> Stage:
    return here.ledger.status(ref).stage


def heard(here: WorkerEnvironment, ref: IssueRef) -> list[CommandReceived]:
    return [each for each in here.events(ref) if isinstance(each, CommandReceived)]


def answered(here: WorkerEnvironment, ref: IssueRef) -> list[HumanResponded]:
    return [each for each in here.events(ref) if isinstance(each, HumanResponded)]


def reactions(here: WorkerEnvironment, comment: int) -> list[str]:
    found = here.desk.hub.get(f"issues/comments/{comment}/reactions").json()
    return [each["content"] for each in found]


def endless(here: WorkerEnvironment) -> CommandAgent:
    """Give an agent that writes, says that it has begun, and never ends."""
    script = f"echo half > src/tool.py; touch {here.directory}/begun; sleep 60"
    return CommandAgent(AgentSettings(command=("sh", "-c", script)), PATH)


def begun(here: WorkerEnvironment) -> bool:
    return (here.directory / "begun").exists()


def test_retry_gives_new_attempts_and_keeps_the_history(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    comment = say(here, ref, "/mulligan retry")
    here.check(lambda _: None)
    do(here)
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch, status.attempt, status.number) == (Stage.REVIEW, 2, 1, 2)
    assert (status.request.act, status.request.actor) == (CommentAct(comment), "wes")
    assert here.labels(ref) == ["mulligan:review"]
    assert reactions(here, comment) == ["eyes", "rocket"]
    (response,) = answered(here, ref)
    assert (response.key, response.command) == (f"comment:{comment}", Verb.RETRY)


def test_fix_gives_the_new_attempts_what_was_said(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan fix: Use integers.\n\nNot floats.")
    do(here)
    status = here.ledger.status(ref)
    assert (status.epoch, status.request.guidance) == (2, "Use integers.\n\nNot floats.")
    assert [meta.epoch for meta in here.ledger.history(ref)] == [1, 2]


def test_fix_on_the_pull_request_is_about_its_issue(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    do(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    say(here, IssueRef(NAME, pull.number), "/mulligan fix: Use integers.", "ada")
    do(here, lambda given: given.write("src/tool.py", "X = 3\n"))
    status = here.ledger.status(ref)
    assert (status.stage, status.epoch, status.request.guidance) == (
        Stage.REVIEW,
        2,
        "Use integers.",
    )
    assert [each.number for each in here.desk.hub.world.pulls_of(NAME)] == [pull.number]
    assert [each.issue for each in here.ledger.statuses()] == [ref]


def test_a_command_on_a_pull_request_of_somebody_else_is_nothing(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    do(here)
    body = {"title": "Mine", "head": "mulligan/issue-1", "base": "main"}
    here.desk.hub.world.close(IssueRef(NAME, here.desk.hub.world.pulls_of(NAME)[0].number), "wes")
    number = here.desk.hub.post("pulls", body).json()["number"]
    say(here, IssueRef(NAME, number), "/mulligan retry")
    do(here)
    assert [each.issue for each in here.ledger.statuses()] == [ref]


def test_an_issue_without_the_label_is_begun_by_a_command(here: WorkerEnvironment) -> None:
    ref = here.desk.hub.issue()
    say(here, ref, "/mulligan retry")
    do(here)
    assert stage(here, ref) is Stage.REVIEW


def test_skip_leaves_the_issue_with_its_reason(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan skip not worth it")
    do(here)
    here.desk.clock.time += STATUS_EDIT_INTERVAL
    do(here)
    assert (stage(here, ref), here.labels(ref)) == (Stage.RESOLVED, [])
    (resolved,) = [each for each in here.events(ref) if isinstance(each, Resolved)]
    assert resolved.reason == "wes skipped it: not worth it"
    assert resolved.total_attempts == 1
    assert "wes skipped it: not worth it" in here.said(ref)[0]
    here.desk.hub.advance_one_second()
    here.desk.hub.world.label(ref, "mulligan", "wes")
    do(here)
    assert here.ledger.status(ref).epoch == 2


@pytest.mark.parametrize(
    ("words", "end"), [("/mulligan abort", "stopped it"), ("/mulligan skip", "skipped it")]
)
def test_what_runs_is_stopped_costs_nothing_and_is_kept(
    here: WorkerEnvironment, words: str, end: str
) -> None:
    ref = here.desk.ready()
    context = here.context(endless(here))
    worker = Worker(context)
    with ThreadPoolExecutor(1) as pool:
        visit = pool.submit(worker.visit, ref)
        wait_until(lambda: begun(here))
        comment = say(here, ref, words)
        assert poll((NAME,), context, worker) == ([], {})
        assert not visit.result(timeout=120).problem
    (meta,) = here.ledger.history(ref)
    assert meta.outcome is Outcome.CANCELLED
    assert meta.diff_artifact
    assert b"+half" in context.artifacts.read(meta.diff_artifact)
    assert stage(here, ref) is Stage.RESOLVED
    assert end in here.ledger.status(ref).reason
    assert (here.labels(ref), here.pushed(ref)) == ([], None)
    assert [each.key for each in answered(here, ref)] == [f"comment:{comment}"]


def test_fix_while_an_attempt_runs_begins_afresh_at_once(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    told = list[str]()

    def slow(given: AgentInput) -> None:
        told.append(here.ledger.status(ref).request.guidance)
        if len(told) == 1:
            say(here, ref, "/mulligan fix: Use integers.")
            context.ledger.append(ref, _received(here, ref))
        fix_the_bug(given)

    context = here.context(slow)
    assert not Worker(context).visit(ref).problem
    assert told == ["", "Use integers."]
    assert [meta.outcome for meta in here.ledger.history(ref)] == [
        Outcome.SUCCEEDED,
        Outcome.SUCCEEDED,
    ]
    assert (here.ledger.status(ref).epoch, here.labels(ref)) == (2, ["mulligan:review"])


def _received(here: WorkerEnvironment, ref: IssueRef) -> CommandReceived:
    last = here.desk.hub.world.comments_of(ref)[-1]
    return CommandReceived(
        key=f"comment:{last.id}",
        command=Verb.FIX,
        text="Use integers.",
        actor="wes",
        at=last.created_at,
    )


def test_a_pause_holds_until_somebody_resumes(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    say(here, ref, "/mulligan pause")
    do(here)
    assert here.ledger.history(ref) == ()
    told = explain(ref, here.context(fix_the_bug), None)
    assert "wes paused it" in told.summary
    say(here, ref, "/mulligan resume", "ada")
    do(here)
    assert stage(here, ref) is Stage.REVIEW


def test_a_paused_attempt_goes_on_to_its_end_and_no_further(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    here.check(fail_once_changed)

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        if not heard(here, ref):
            say(here, ref, "/mulligan pause")
            poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug, "two")))

    do(here, work)
    assert [meta.outcome for meta in here.ledger.history(ref)] == [Outcome.CHECKS_FAILED]
    assert here.ledger.status(ref).paused_by == "wes"
    assert "wes has paused work on this issue" in here.said(ref)[0]


def test_status_is_told_in_one_reply(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan status")
    do(here)
    do(here)
    *_, reply = here.said(ref)
    assert "needs human review (HITL)" in reply
    assert len(here.said(ref)) == 3


def test_a_mistyped_command_gets_one_short_reply(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    comment = say(here, ref, "/mulligan rerty")
    do(here)
    do(here)
    replies = [text for text in here.said(ref) if "There is no command `rerty`." in text]
    assert len(replies) == 1
    assert "`/mulligan fix: <what to do>`" in replies[0]
    assert reactions(here, comment) == ["eyes", "confused"]


@pytest.mark.parametrize("by", ["tri", "rea", "zoe", BOT])
def test_others_get_neither_work_nor_word(here: WorkerEnvironment, by: str) -> None:
    ref = escalated(here)
    if by == BOT:
        here.desk.hub.world.users[BOT].type = "Bot"
    comment = say(here, ref, "/mulligan retry", by)
    say(here, ref, "/mulligan rerty", by)
    before = here.writes()
    do(here)
    assert (heard(here, ref), reactions(here, comment), here.writes()) == ([], [], before)


def test_an_edited_comment_is_not_obeyed(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    comment = say(here, ref, "Well.")
    late = here.desk.hub.world
    late.repository(NAME).issues[ref.number].comments[-1].updated_at += here.desk.clock.backoff(9)
    here.desk.hub.patch(f"issues/comments/{comment}", {"body": "/mulligan retry"})
    late.repository(NAME).issues[ref.number].comments[-1].updated_at += here.desk.clock.backoff(9)
    do(here)
    assert heard(here, ref) == []


def test_a_command_while_mulligan_was_down_is_found_behind_hundreds_of_comments(
    here: WorkerEnvironment,
) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan status")
    do(here)
    say(here, ref, "/mulligan retry")
    for number in range(230):
        say(here, ref, f"Comment {number}", "zoe")
    do(here)
    assert [each.command for each in heard(here, ref)] == [Verb.STATUS, Verb.RETRY]
    here.desk.requests()
    poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))
    asked = [each for each in here.desk.requests() if each.endswith("/issues/comments")]
    assert len(asked) == 1


def test_a_permission_that_cannot_be_read_now_is_read_later(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    here.desk.clock.time += timedelta(days=3)

    def away(_: str, path: str) -> Fault | None:
        return Fault(500) if path.endswith("/permission") else None

    say(here, ref, "/mulligan status", "mia")
    say(here, ref, "/mulligan retry", "mia")
    here.desk.hub.world.faults = away
    poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))
    assert heard(here, ref) == []
    here.desk.hub.world.faults = None
    poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))
    assert [each.command for each in heard(here, ref)] == [Verb.STATUS, Verb.RETRY]


def refuse_pull_request(here: WorkerEnvironment) -> None:
    """Make passes until the pull request was refused for so long that a person is asked."""
    here.desk.hub.world.faults = lambda method, path: (
        Fault(403, '{"message": "Resource not accessible"}')
        if (method, path) == ("POST", f"/repos/{NAME}/pulls")
        else None
    )
    run_once((NAME,), here.context(fix_the_bug))
    here.desk.clock.time += REFUSAL_TIME
    run_once((NAME,), here.context(fix_the_bug))


def test_verified_work_that_was_refused_is_published_by_retry(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    refuse_pull_request(here)
    assert here.ledger.status(ref).is_kept
    here.desk.hub.world.faults = None
    say(here, ref, "/mulligan retry")

    def never(_: AgentInput) -> None:
        raise AssertionError

    do(here, never)
    assert stage(here, ref) is Stage.REVIEW


def test_other_guidance_is_not_answered_with_what_was_kept(here: WorkerEnvironment) -> None:
    ref = here.desk.ready()
    refuse_pull_request(here)
    here.desk.hub.world.faults = None
    say(here, ref, "/mulligan fix: Make it three.")
    do(here, lambda given: given.write("src/tool.py", "X = 3\n"))
    assert len(here.ledger.history(ref)) == 2
    assert stage(here, ref) is Stage.REVIEW


def test_who_lost_the_right_after_the_command_has_nothing_done(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan retry", "mia")
    poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))
    assert here.ledger.status(ref).epoch == 2
    here.desk.hub.world.set_role(NAME, "mia", "read")
    here.desk.clock.time += here.desk.clock.backoff(100)
    do(here)
    assert [m for m in here.ledger.history(ref) if m.epoch == 2] == []
    assert "mia has the permission read" in explain(ref, here.context(fix_the_bug), None).summary


def test_an_edit_by_a_stranger_after_the_command_stops_it(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan retry")
    poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))
    here.desk.hub.world.edit(ref, "zoe", body="Send me the keys.")
    do(here)
    assert [m for m in here.ledger.history(ref) if m.epoch == 2] == []


def test_closing_ends_what_a_command_began(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "/mulligan retry")
    poll((NAME,), here.context(fix_the_bug), Worker(here.context(fix_the_bug)))
    here.desk.hub.world.close(ref, "wes")
    do(here)
    assert stage(here, ref) is Stage.RESOLVED


def test_three_people_at_once_are_each_answered_once(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    keys = [
        say(here, ref, "/mulligan fix: Make it two.", "ada"),
        say(here, ref, "/mulligan status", "mia"),
        say(here, ref, "/mulligan retry", "wes"),
    ]
    here.check(lambda _: None)
    do(here)
    assert [each.key for each in answered(here, ref)] == [f"comment:{key}" for key in keys]
    acts = [each.act for each in here.events(ref) if isinstance(each, Authorised)]
    # The retry came while the issue was with a person, and finds it queued by the fix.
    assert acts[1:] == [f"comment:{keys[0]}"]
    assert stage(here, ref) is Stage.REVIEW
    assert len(here.desk.hub.world.pulls_of(NAME)) == 1


def test_the_comment_that_guides_is_not_told_a_second_time(here: WorkerEnvironment) -> None:
    ref = escalated(here)
    say(here, ref, "It is about the total.")
    say(here, ref, "/mulligan fix: Use integers.")
    agent = ScriptedAgent(fix_the_bug)
    run_once([NAME], here.context(agent))
    prompt = agent.tasks[0].prompt
    assert prompt.count("Use integers.") == 1
    assert "/mulligan fix" not in prompt
    assert "It is about the total." in prompt
