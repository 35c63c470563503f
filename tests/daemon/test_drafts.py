"""Unverified work is shown as a draft, and becomes the pull request later (ESCALATION-3)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.records import Issue
from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.domain.events import Drafted, Published, Resolved
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from world.behaviours import AgentInput, Behaviour
from world.repositories import commit_to, git, read_branch
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE, READY = "src/tool.py", "/graphql"


def red_unless_mended(tree: Path) -> str | None:
    said = (tree / FILE).read_text()
    return "It is red." if "Y = " in said and "X = 2" not in said else None


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy |= {"max_issue_attempts": 1, "escalation": {"draft_pr": True}}
        made.policy["review"] = {"settle": "0s"}
        made.check(red_unless_mended)
        yield made


def spoil(given: AgentInput) -> None:
    """Write something that no check likes."""
    given.write(FILE, f"X = 1\nY = {len(given.prompt)}\n")


def mend(given: AgentInput) -> None:
    """Add the line that is wanted to what is there."""
    given.write(FILE, (given.directory / FILE).read_text() + "X = 2\n")


def make_pass(here: WorkerEnvironment, agent: Behaviour) -> tuple[str, ...]:
    here.desk.clock.time += timedelta(hours=1)
    return run_once([NAME], here.context(agent)).problems


def handed_over(here: WorkerEnvironment, agent: Behaviour = spoil) -> IssueRef:
    ref = here.desk.ready()
    assert make_pass(here, agent) == ()
    assert here.labels(ref) == ["mulligan:hitl"]
    return ref


def pull_of(here: WorkerEnvironment) -> Issue:
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return pull


def is_draft(here: WorkerEnvironment) -> bool:
    pull = pull_of(here).pull
    assert pull
    return pull.draft


def say(here: WorkerEnvironment, ref: IssueRef, words: str) -> None:
    here.desk.hub.world.comment(ref, words, "wes")


def test_the_last_attempt_is_shown_as_a_draft_that_says_what_fails(here: WorkerEnvironment) -> None:
    ref = handed_over(here)
    pull, status = pull_of(here), here.ledger.status(ref)
    assert is_draft(here)
    assert (pull.title, pull.labels) == ("Not verified: It is broken", [])
    for words in ("**This work is not verified", "| check | failed |", "Closes #1"):
        assert words in (pull.body or "")
    assert here.pushed(ref) == here.ledger.history(ref)[-1].head_sha
    standing, plea = here.said(ref)
    url = f"{here.desk.hub.url}/{NAME}/pull/{pull.number}"
    assert f"draft pull request: {url}" in standing
    assert f"The work is in a draft pull request, **not verified**: {url}" in plea
    assert (status.stage, status.pull.number, status.pull.draft_of) == (Stage.HITL, pull.number, 1)


def test_verified_work_takes_its_place_and_it_is_ready(here: WorkerEnvironment) -> None:
    here.policy["pull_request"] = {"labels": ["bug"], "reviewers": ["wes"]}
    ref = handed_over(here)
    say(here, ref, "/mulligan fix: add the line")
    assert make_pass(here, mend) == ()
    pull = pull_of(here)
    assert not is_draft(here)
    assert (pull.title, pull.label_names) == ("It is broken", ["bug"])
    assert "not verified" not in (pull.body or "")
    assert pull.pull
    assert [user.login for user in pull.pull.reviewers] == ["wes"]
    assert here.labels(ref) == ["mulligan:review"]
    assert read_branch(here.desk.hub.bare, ref.branch, FILE) == "X = 1\nX = 2"
    # Only Mulligan had committed there, so that it was built on the base branch again.
    assert git(here.desk.hub.bare, "rev-list", "--count", f"main..{ref.branch}") == "1"


def test_it_stays_a_draft_where_all_pull_requests_are(here: WorkerEnvironment) -> None:
    here.policy["pull_request"] = {"draft": True}
    ref = handed_over(here)
    say(here, ref, "/mulligan retry")
    make_pass(here, mend)
    assert is_draft(here)
    assert "still a draft" not in here.said(ref)[0]


def test_attempts_go_on_top_of_what_others_committed_to_it(here: WorkerEnvironment) -> None:
    ref = handed_over(here)
    theirs = commit_to(here.desk.hub.bare, {"b.txt": "by hand\n"}, ref.branch)
    prompts = list[str]()

    def go_on(given: AgentInput) -> None:
        prompts.append(given.prompt)
        mend(given)

    say(here, ref, "/mulligan retry")
    make_pass(here, go_on)
    assert git(here.desk.hub.bare, "rev-parse", f"{ref.branch}^") == theirs
    assert "Y = " in read_branch(here.desk.hub.bare, ref.branch, FILE)
    assert not is_draft(here)
    assert "stand in the pull request" in " ".join(prompts[0].split())


def test_a_second_failure_brings_the_same_draft_up_to_date(here: WorkerEnvironment) -> None:
    ref = handed_over(here)
    first = here.pushed(ref)
    say(here, ref, "/mulligan retry")
    make_pass(here, spoil)
    assert is_draft(here)
    assert first != here.pushed(ref) == here.ledger.history(ref)[-1].head_sha
    assert [each.attempt for each in here.events(ref) if isinstance(each, Drafted)] == [1, 2]
    assert here.labels(ref) == ["mulligan:hitl"]


def test_a_failure_without_work_leaves_the_draft_as_it_is(here: WorkerEnvironment) -> None:
    ref = handed_over(here)
    first, body = here.pushed(ref), pull_of(here).body
    say(here, ref, "/mulligan retry")
    make_pass(here, lambda given: None)
    assert (here.pushed(ref), pull_of(here).body) == (first, body)
    assert "The work of an earlier attempt is in a draft pull request" in here.said(ref)[-1]


@pytest.mark.parametrize("who", ["made it ready", "pushed to it"])
def test_what_a_person_took_over_is_left_to_them(here: WorkerEnvironment, who: str) -> None:
    ref = handed_over(here)
    ours, pull = here.pushed(ref), pull_of(here)

    def spoil_meanwhile(given: AgentInput) -> None:
        spoil(given)
        if who == "pushed to it":
            commit_to(here.desk.hub.bare, {"b.txt": "by hand\n"}, ref.branch)
        else:
            here.desk.hub.world.mark_ready(IssueRef(NAME, pull.number), "wes")

    say(here, ref, "/mulligan retry")
    make_pass(here, spoil_meanwhile)
    left = (
        here.pushed(ref)
        if who == "made it ready"
        else git(here.desk.hub.bare, "rev-parse", f"{ref.branch}^")
    )
    assert left == ours
    assert here.labels(ref) == ["mulligan:hitl"]


def test_verified_work_in_review_never_gives_way_to_what_was_not_verified(
    here: WorkerEnvironment,
) -> None:
    ref = here.desk.ready()
    make_pass(here, mend)
    good, pull = here.pushed(ref), IssueRef(NAME, pull_of(here).number)
    here.desk.hub.world.review(pull, "wes", "REQUEST_CHANGES", "Otherwise, please.")
    make_pass(here, spoil)
    assert here.labels(ref) == ["mulligan:hitl"]
    assert here.pushed(ref) == good
    assert not is_draft(here)


@pytest.mark.parametrize("how", ["out of scope", "out of time", "nothing done"])
def test_work_that_no_guard_let_pass_stays_here(here: WorkerEnvironment, how: str) -> None:
    if how == "out of scope":
        here.policy["scope"] = {"deny": ["src/**"]}

    def agent(given: AgentInput) -> None:
        if how != "nothing done":
            spoil(given)
        if how == "out of time":
            given.report("blocked", "No time is left.")

    ref = handed_over(here, agent)
    assert here.desk.hub.world.pulls_of(NAME) == []
    assert here.pushed(ref) is None


@pytest.mark.parametrize("end", ["closed", "merged"])
def test_a_person_ends_the_draft_and_the_issue_with_it(here: WorkerEnvironment, end: str) -> None:
    ref = handed_over(here)
    world, pull = here.desk.hub.world, IssueRef(NAME, pull_of(here).number)
    if end == "merged":
        world.mark_ready(pull, "wes")
        world.merge(pull, "wes")
    else:
        world.close(pull, "wes")
    make_pass(here, spoil)
    assert here.labels(ref) == []
    assert here.pushed(ref) is None
    assert [isinstance(each, Resolved) for each in here.events(ref)].count(True) == 1
    status = here.ledger.status(ref)
    assert (status.pull.number, status.pull.draft_of) == (None, 0)


def test_changes_requested_of_a_draft_make_another_attempt(here: WorkerEnvironment) -> None:
    ref = handed_over(here)
    pull = IssueRef(NAME, pull_of(here).number)
    here.desk.hub.world.review(pull, "wes", "REQUEST_CHANGES", "Add the line.")
    make_pass(here, mend)
    assert here.labels(ref) == ["mulligan:review"]
    assert not is_draft(here)


def test_where_there_are_no_drafts_the_comment_says_so(here: WorkerEnvironment) -> None:
    here.policy["escalation"] = {"draft_pr": True, "push_work": True}
    here.desk.hub.world.repository(NAME).drafts = False
    ref = handed_over(here)
    plea = here.said(ref)[-1]
    assert "Mulligan could not open a draft pull request: GitHub refused" in plea
    assert "Draft pull requests are not supported in this repository" in plea
    assert "git fetch origin refs/mulligan/attempts/1-1" in plea
    assert here.pushed(ref) is None
    assert here.desk.hub.world.pulls_of(NAME) == []


@pytest.mark.parametrize("apply", [True, False])
def test_a_draft_that_failed_for_now_is_opened_later_and_once(
    here: WorkerEnvironment, *, apply: bool
) -> None:
    def fail(method: str, path: str) -> Fault | None:
        return (
            Fault(502, apply=apply) if (method, path) == ("POST", f"/repos/{NAME}/pulls") else None
        )

    here.desk.hub.world.faults = fail
    ref = here.desk.ready()
    assert bool(make_pass(here, spoil)) is not apply
    here.desk.hub.world.faults = None
    assert make_pass(here, spoil) == ()
    assert is_draft(here)
    assert here.labels(ref) == ["mulligan:hitl"]
    assert len(here.ledger.history(ref)) == 1


def test_a_draft_that_cannot_be_ended_is_told_of_and_tried_again(here: WorkerEnvironment) -> None:
    ref = handed_over(here)
    say(here, ref, "/mulligan retry")
    before = here.desk.hub.world.faults
    here.desk.hub.world.faults = lambda _, path: (
        Fault(403) if path == READY and ends_now(here) else None
    )
    assert make_pass(here, mend) == ()
    assert is_draft(here)
    assert here.labels(ref) == ["mulligan:review"]
    assert (
        "**The pull request is still a draft:** please press *Ready for review*."
        in here.said(ref)[0]
    )
    here.desk.hub.world.faults = before
    say(here, ref, "/mulligan fix: once more")
    make_pass(here, mend)
    assert not is_draft(here)
    assert "still a draft" not in here.said(ref)[0]


def ends_now(here: WorkerEnvironment) -> bool:
    """Tell whether the verified work was pushed, so that GraphQL is asked to end the draft."""
    return pull_of(here).title == "It is broken"


@pytest.mark.parametrize("apply", [True, False])
def test_a_lost_answer_ends_a_draft_once(here: WorkerEnvironment, *, apply: bool) -> None:
    ref = handed_over(here)
    say(here, ref, "/mulligan retry")
    faults = [Fault(502, apply=apply)]

    def lose(_method: str, path: str) -> Fault | None:
        return faults.pop() if path == READY and faults and ends_now(here) else None

    here.desk.hub.world.faults = lose
    make_pass(here, mend)
    make_pass(here, mend)
    assert not is_draft(here)
    assert [meta.outcome for meta in here.ledger.history(ref)][1:] == [Outcome.SUCCEEDED]
    assert [isinstance(each, Published) for each in here.events(ref)].count(True) == 1
