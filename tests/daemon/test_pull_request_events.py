"""An open pull request asks for more work, or comes to its end (PR-2, PR-4, PR-5)."""

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.pulls import LineComment
from github_simulator.world import Fault
from mulligan.daemon.once import run_once
from mulligan.daemon.poll import FetchCache, poll
from mulligan.daemon.worker import Worker
from mulligan.domain.events import Conflicted, Resolved, ReviewReceived
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from world.behaviours import AgentInput
from world.repositories import branch_head, commit_to, git, read_branch
from world.simulated import NAME
from world.workers import WorkerEnvironment, worker_environment

FILE = "src/tool.py"


def do_what_is_asked(given: AgentInput) -> None:
    """Write the number that is asked for, below what is there."""
    asked = next((n for n in range(1, 9) if f"write {n}" in given.prompt), 0)
    given.write(FILE, (given.directory / FILE).read_text() + f"Y = {asked}\n")
    given.say(f"Wrote {asked}")


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        made.policy["review"] = {"settle": "1m"}
        yield made


def published(here: WorkerEnvironment) -> tuple[IssueRef, IssueRef]:
    """Have an issue worked on; give it and its pull request."""
    ref = here.desk.ready()
    make_pass(here)
    (pull,) = here.desk.hub.world.pulls_of(NAME)
    return ref, IssueRef(NAME, pull.number)


def make_pass(here: WorkerEnvironment, later: timedelta = timedelta(hours=1)) -> None:
    here.desk.clock.time += later
    assert run_once([NAME], here.context(do_what_is_asked)).problems == ()


def review(
    here: WorkerEnvironment, pull: IssueRef, body: str, *notes: LineComment, by: str = "wes"
) -> int:
    return here.desk.hub.world.review(pull, by, "REQUEST_CHANGES", body, notes)


def outcomes(here: WorkerEnvironment, ref: IssueRef) -> list[tuple[int, Outcome]]:
    return [(meta.epoch, meta.outcome) for meta in here.ledger.history(ref)]


def answers(here: WorkerEnvironment, pull: IssueRef) -> list[str]:
    found = here.desk.hub.world.issue_of(pull).pull
    assert found
    return [note.body for note in found.notes if note.in_reply_to]


DONE, FAULT = Outcome.SUCCEEDED, Fault(503)


def test_a_review_is_acted_on_once(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "Please write 2")
    for _ in range(3):
        make_pass(here)
    assert outcomes(here, ref) == [(1, DONE), (1, DONE)]
    assert read_branch(here.desk.hub.bare, ref.branch, FILE) == "X = 1\nY = 2"
    assert len(here.desk.hub.world.pulls_of(NAME)) == 1
    assert here.labels(ref) == ["mulligan:review"]


def test_reviews_are_answered_together_after_a_quiet_time(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    first = review(here, pull, "Please write 2")
    second = review(here, pull, "And mind the names.", by="mia")
    here.desk.clock.time -= timedelta(hours=1)
    make_pass(here, timedelta(seconds=2))
    assert len(here.ledger.history(ref)) == 1
    make_pass(here)
    (received,) = [each for each in here.events(ref) if isinstance(each, ReviewReceived)]
    assert received.reviews == (first, second)
    assert [said.author for said in received.remarks] == ["wes", "mia"]


@pytest.mark.parametrize(
    ("login", "event"), [("tri", "REQUEST_CHANGES"), ("wes", "COMMENT"), ("wes", "APPROVE")]
)
def test_other_reviews_ask_for_nothing(here: WorkerEnvironment, login: str, event: str) -> None:
    ref, pull = published(here)
    here.desk.hub.world.review(pull, login, event, "Please write 2")
    make_pass(here)
    assert outcomes(here, ref) == [(1, DONE)]


def test_a_review_that_cannot_be_judged_is_read_again(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "Please write 2", by="mia")
    world, fresh = here.desk.hub.world, FetchCache()
    context = here.context(do_what_is_asked)
    here.desk.clock.time += timedelta(hours=1)
    world.faults = lambda _, path: None if "permission" not in path else FAULT
    _, failed = poll([NAME], context, Worker(context), fresh)
    assert list(failed) == [str(ref)]
    world.faults = None
    assert poll([NAME], context, Worker(context), fresh)[0] == [ref]


def test_every_thread_is_answered_once(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    notes = (LineComment(FILE, 2, "Please write 3"), LineComment("README.md", 1, "Say so here."))
    review(here, pull, "", *notes)
    make_pass(here)
    make_pass(here)
    changed, left = answers(here, pull)
    head = (here.pushed(ref) or "")[:10]
    assert changed.endswith(f"\nChanged in {head}.\nLine 2 is now `Y = 3`.")
    assert left.endswith(
        f"\nThis file did not change. Commit {head} has the new work.\nThe agent: Wrote 3"
    )


def test_a_review_without_comments_on_lines_is_answered_once_as_a_whole(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    whole = review(here, pull, "Please write 3")
    review(here, pull, "And see below.", LineComment(FILE, 1, "Here."), by="mia")
    for _ in range(2):
        make_pass(here)
    (told,) = here.said(pull)
    head, url = here.pushed(ref), here.ledger.status(ref).pull.url
    assert told.startswith(f"<!-- mulligan:answer {ref} review={whole} -->\nTo [the review](")
    done = f"({url}#pullrequestreview-{whole}) by wes: the work is in {(head or '')[:10]}."
    assert told.endswith(f"{done}\nThe agent: Wrote 3")
    assert len(answers(here, pull)) == 1


def test_what_leaves_the_pull_request_as_it_is_counts_as_no_change(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "I do not like it.")
    here.policy["max_issue_attempts"] = 2
    make_pass(here)
    assert outcomes(here, ref) == [(1, DONE), *[(1, Outcome.ZERO_DIFF)] * 2]
    assert "the pull request's files are unchanged" in here.ledger.history(ref)[-1].error
    assert here.labels(ref) == ["mulligan:hitl"]
    (found,) = here.desk.hub.world.pulls_of(NAME)
    assert found.state == "open"


def test_the_attempts_for_a_review_are_counted_for_the_review(here: WorkerEnvironment) -> None:
    """The attempts before the pull request leave a review as many as any other one has (PR-2)."""
    here.policy["max_issue_attempts"] = 2
    ref, pull = published(here)
    for number in (2, 3):
        shown = list[str]()

        def ask(given: AgentInput, shown: list[str] = shown) -> None:
            shown.append(here.said(ref)[0].partition("\n**")[2].partition(" of 2")[0])
            do_what_is_asked(given)

        review(here, pull, f"Please write {number}")
        here.desk.clock.time += timedelta(hours=1)
        run_once([NAME], here.context(ask))
        assert shown == ["Mulligan is working on this issue: attempt 1"]
        assert "Attempt 1 of 2 for this review made a change; " in here.said(ref)[0]
        (found,) = here.desk.hub.world.pulls_of(NAME)
        assert "Attempt 1 of 2 for this review made a change; " in (found.body or "")
    assert outcomes(here, ref) == [(1, DONE), (1, DONE), (2, DONE)]


def test_a_review_that_led_to_no_change_is_answered_on_the_pull_request(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    here.policy["max_issue_attempts"] = 2
    review(here, pull, "I do not like it.")
    review(here, pull, "And see below.", LineComment(FILE, 1, "Why this name?"), by="mia")
    for _ in range(2):
        make_pass(here)
    asked = here.ledger.status(ref).asked_at
    (told,) = here.said(pull)
    assert told.startswith(f"<!-- mulligan:answer {ref} ")
    assert f"({asked})" in told
    assert "All 2 attempts failed." in told
    (on_line,) = answers(here, pull)
    assert f"({asked})" in on_line
    help_wanted = here.said(ref)[-1]
    for said in ("I do not like it.", "Why this name?"):
        assert f"> {said}" in help_wanted
    options = help_wanted.partition("### Your options")[2]
    assert f"#{pull.number}" in options
    here.desk.hub.world.comment(ref, "/mulligan fix: Please write 3", "wes")
    make_pass(here)
    assert here.labels(ref) == ["mulligan:review"]
    (told,), threads = here.said(pull), answers(here, pull)
    assert asked not in told
    assert [f"({asked})" in text for text in threads] == [True, False]


def test_a_review_after_the_last_attempt_opens_a_round_until_a_person_is_asked(
    here: WorkerEnvironment,
) -> None:
    here.policy |= {"max_issue_attempts": 1, "review": {"settle": "0s", "rounds": 1}}
    ref, pull = published(here)
    review(here, pull, "Please write 1")
    make_pass(here)
    assert outcomes(here, ref) == [(1, DONE), (2, DONE)]
    review(here, pull, "Please write 2")
    make_pass(here)
    assert here.labels(ref) == ["mulligan:hitl"]
    assert "Reviews have already started 1 round" in here.said(ref)[-1]
    assert len(here.ledger.history(ref)) == 2
    here.desk.hub.advance_one_second()
    here.desk.hub.world.label(ref, "mulligan", "wes")
    make_pass(here)
    assert outcomes(here, ref)[2:] == [(3, DONE)]
    assert read_branch(here.desk.hub.bare, ref.branch, FILE) == "X = 1\nY = 2"


def test_work_on_a_review_ends_when_the_pull_request_is_closed(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "Please write 2")

    def close_it(given: AgentInput) -> None:
        do_what_is_asked(given)
        here.desk.hub.world.close(pull, "wes")

    here.desk.clock.time += timedelta(hours=1)
    before = here.pushed(ref)
    run_once([NAME], here.context(close_it))
    assert here.pushed(ref) == before
    assert here.ledger.status(ref).stage is Stage.RESOLVED
    make_pass(here)
    assert here.pushed(ref) is None
    (resolved,) = [each for each in here.events(ref) if isinstance(each, Resolved)]
    assert resolved.reason == "Its pull request was closed without being merged."


def test_a_push_while_an_attempt_runs_is_built_upon(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    review(here, pull, "Please write 4")
    theirs = list[str]()

    def be_overtaken(given: AgentInput) -> None:
        do_what_is_asked(given)
        if not theirs:
            theirs.append(commit_to(here.desk.hub.bare, {"b": "by hand\n"}, ref.branch))

    here.desk.clock.time += timedelta(hours=1)
    run_once([NAME], here.context(be_overtaken))
    assert [each for _, each in outcomes(here, ref)] == [DONE, Outcome.INTERRUPTED, DONE]
    assert here.ledger.history(ref)[-1].start_sha == theirs[0]
    assert git(here.desk.hub.bare, "rev-parse", f"{ref.branch}^") == theirs[0]


def test_a_merge_resolves_the_issue_and_leaves_nothing(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    here.desk.hub.world.merge(pull, "wes")
    make_pass(here)
    assert here.labels(ref) == []
    assert here.pushed(ref) is None
    assert "Its pull request was merged." in here.said(ref)[0]
    (resolved,) = [each for each in here.events(ref) if isinstance(each, Resolved)]
    assert (resolved.total_attempts, resolved.reason) == (1, "Its pull request was merged.")
    assert not here.ledger.status(ref).pull.number


def test_an_issue_is_closed_where_the_merge_did_not_go_to_the_default_branch(
    here: WorkerEnvironment,
) -> None:
    ref, pull = published(here)
    here.desk.hub.world.merge(pull, "wes")
    here.desk.hub.world.reopen(ref, "wes")
    commit_to(here.desk.hub.bare, {"c": "1\n"}, "later")
    here.desk.hub.world.repository(NAME).default_branch = "later"
    make_pass(here)
    assert here.desk.hub.world.issue_of(ref).state == "closed"


def test_a_branch_that_others_work_on_is_left_to_them(here: WorkerEnvironment) -> None:
    ref, pull = published(here)
    theirs = commit_to(here.desk.hub.bare, {"b": "by hand\n"}, ref.branch)
    here.desk.hub.world.close(pull, "wes")
    make_pass(here)
    assert branch_head(here.desk.hub.bare, ref.branch) == theirs
    assert here.ledger.status(ref).stage is Stage.RESOLVED


@pytest.mark.parametrize("wanted", ["rebuild", "ignore"])
def test_a_conflict_is_resolved_where_that_is_wanted(here: WorkerEnvironment, wanted: str) -> None:
    here.policy["on_conflict"] = wanted
    ref, _ = published(here)
    commit_to(here.desk.hub.bare, {FILE: "X = 0\nZ = 0\n"})
    for _ in range(3):
        make_pass(here)
    found = [each.files for each in here.events(ref) if isinstance(each, Conflicted)]
    assert found == ([(FILE,)] if wanted == "rebuild" else [])
    files = {"rebuild": "X = 0\nZ = 0\nY = 0", "ignore": "X = 1\nY = 0"}
    assert read_branch(here.desk.hub.bare, ref.branch, FILE) == files[wanted]


def test_listening_costs_nothing_while_nobody_says_anything(here: WorkerEnvironment) -> None:
    ref, _ = published(here)
    context, fresh = here.context(do_what_is_asked), FetchCache()
    worker, world = Worker(context), here.desk.hub.world
    here.desk.clock.time += timedelta(hours=1)
    for _ in range(2):
        assert poll([NAME], context, worker, fresh) == ([], {})
    world.requests.clear()
    assert poll([NAME], context, worker, fresh) == ([], {})
    assert [one.path.rpartition("/")[2] for one in world.requests] == [
        "comments",
        "issues",
        "pulls",
    ]
    assert not any(one.counted for one in world.requests)
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_conflict_that_another_worker_kept_from_being_seen_is_seen_later(
    here: WorkerEnvironment,
) -> None:
    here.policy["on_conflict"] = "rebuild"
    ref, _ = published(here)
    commit_to(here.desk.hub.bare, {FILE: "X = 0\nZ = 0\n"})
    context, fresh = here.context(do_what_is_asked), FetchCache()
    here.desk.clock.time += timedelta(hours=1)
    other = here.leases.claim(ref, "two")
    assert other
    assert poll([NAME], context, Worker(context), fresh) == ([], {})
    here.leases.release(other)
    assert poll([NAME], context, Worker(context), fresh) == ([ref], {})
