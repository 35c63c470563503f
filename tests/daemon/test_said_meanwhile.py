"""What trusted people write after work began is named with the command that takes it in (PR-9)."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.once import run_once
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.recorded_effects import Topic
from world.behaviours import AgentInput
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.trackers import BOT
from world.workers import WorkerEnvironment, worker_environment

NOT_TAKEN_IN = "The work does not take that into account. To start again with it, write"
RETRY = f"{NOT_TAKEN_IN} `/mulligan retry`."
FIX = f"{NOT_TAKEN_IN} `/mulligan fix: <what to do>`."


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        yield made


@dataclass
class Story:
    """One issue on which people write something during the agent or the checks."""

    here: WorkerEnvironment
    during_agent: Callable[[], object] = lambda: None
    during_checks: Callable[[], object] = lambda: None
    verdict: str | None = None

    def __post_init__(self) -> None:
        self.world = self.here.desk.hub.world
        self.ref = self.here.desk.ready()
        self.agent = ScriptedAgent(self._work)
        self.here.check(self._check)

    def _work(self, given: AgentInput) -> None:
        given.write("src/tool.py", f"X = {len(self.agent.tasks) + 1}\n")
        self.here.desk.clock.time += timedelta(seconds=5)
        self.during_agent()

    def _check(self, tree: Path) -> str | None:
        if (tree / "src/tool.py").read_text() == "X = 1\n":
            return None
        self.during_checks()
        return self.verdict

    def comment(self, text: str = "Keep the old name.", by: str = "wes") -> int:
        return self.world.comment(self.ref, text, by)

    def edit_comment(self, number: int, by: str = "wes") -> None:
        self.here.desk.hub.patch(f"issues/comments/{number}", {"body": "Rather not."}, by=by)

    def work(self) -> None:
        run_once([NAME], self.here.context(self.agent))

    @property
    def note(self) -> str:
        return self.here.ledger.status(self.ref).effects.pull_note(Topic.MEANWHILE)

    @property
    def pull_body(self) -> str:
        (pull,) = self.world.pulls_of(NAME)
        return pull.body or ""

    def link(self, comment: int) -> str:
        issue = self.here.desk.tracker.read(self.ref)
        return f"({issue.url}#issuecomment-{comment})"

    def assert_said(self, what: str, command: str = RETRY) -> None:
        """Check that status comment and pull request say it once."""
        said = f"After this work began, {what}. {command}"
        assert self.pull_body.count(said) == 1
        assert self.here.said(self.ref)[0].count(said) == 1
        assert self.note == said

    def assert_nothing_said(self) -> None:
        assert self.here.ledger.status(self.ref).stage is Stage.REVIEW
        assert self.note == ""
        assert "After this work began" not in self.here.said(self.ref)[0] + self.pull_body


def test_a_comment_during_the_agent_is_named_and_linked(here: WorkerEnvironment) -> None:
    story, made = Story(here), list[int]()
    story.during_agent = lambda: made.append(story.comment())
    story.work()
    story.assert_said(f"wes commented {story.link(made[0])}")


def test_a_comment_during_the_checks_is_named(here: WorkerEnvironment) -> None:
    story, made = Story(here), list[int]()
    story.during_checks = lambda: made.append(story.comment(by="ada"))
    story.work()
    story.assert_said(f"ada commented {story.link(made[0])}")


def test_an_edited_comment_is_named(here: WorkerEnvironment) -> None:
    story = Story(here)
    known = story.comment("Keep the name.")
    story.during_agent = lambda: story.edit_comment(known)
    story.work()
    story.assert_said(f"wes edited a comment {story.link(known)}")


@pytest.mark.parametrize(
    ("title", "body", "said"),
    [
        ("It is slow", None, "ada edited the title"),
        (None, "Keep the old name.", "ada edited the text"),
        ("It is slow", "Keep the old name.", "ada edited the title and the text"),
    ],
)
def test_an_edit_by_a_maintainer_is_named(
    title: str | None, body: str | None, said: str, here: WorkerEnvironment
) -> None:
    story = Story(here)
    story.during_agent = lambda: story.world.edit(story.ref, "ada", title=title, body=body)
    story.work()
    story.assert_said(said)


def test_the_editor_of_a_text_is_unknown_where_the_server_does_not_tell(
    here: WorkerEnvironment,
) -> None:
    story = Story(here)

    def edit_before_an_outage() -> None:
        story.world.edit(story.ref, "ada", body="Keep the old name.")

    story.during_agent = edit_before_an_outage
    asked = list[str]()

    def fail_the_first(_method: str, path: str) -> Fault | None:
        asked.extend([path] if path == "/graphql" else [])
        return Fault(403) if path == "/graphql" and len(asked) == 1 else None

    story.during_checks = lambda: setattr(story.world, "faults", fail_the_first)
    story.work()
    story.assert_said("somebody edited the text")


def test_an_edit_before_the_attempt_is_not_named(here: WorkerEnvironment) -> None:
    story = Story(here)
    story.world.edit(story.ref, "ada", body="Keep the old name.")
    story.work()
    story.assert_nothing_said()


def test_all_that_people_wrote_is_in_one_sentence(here: WorkerEnvironment) -> None:
    story, made = Story(here), list[int]()

    def talk() -> None:
        made.extend(story.comment(by=by) for by in ("wes", "ada", "mia", "wes", "ada"))
        story.world.edit(story.ref, "mia", title="It is slow")

    story.during_agent = talk
    story.work()
    first, second, third = (
        f"{by} commented {story.link(number)}"
        for by, number in zip(("wes", "ada", "mia"), made, strict=False)
    )
    story.assert_said(
        f"{first}, {second}, {third}, 2 more comments followed and mia edited the title"
    )


@pytest.mark.parametrize("by", ["zoe", "rea", "tri"])
def test_a_comment_by_a_stranger_is_not_named(by: str, here: WorkerEnvironment) -> None:
    story = Story(here)
    story.during_agent = lambda: story.comment(by=by)
    story.work()
    story.assert_nothing_said()


@pytest.mark.parametrize("text", ["/mulligan status", "/mulligan retry", "/mulligan fnord"])
def test_a_command_is_not_named(text: str, here: WorkerEnvironment) -> None:
    story = Story(here)
    story.during_agent = lambda: story.comment(text)
    story.work()
    story.assert_nothing_said()


def test_a_comment_that_became_a_command_by_an_edit_is_named(here: WorkerEnvironment) -> None:
    story = Story(here)
    known = story.comment()
    body = {"body": "/mulligan fix: Keep the name."}
    story.during_agent = lambda: here.desk.hub.patch(f"issues/comments/{known}", body, by="wes")
    story.work()
    story.assert_said(f"wes edited a comment {story.link(known)}")


def test_mulligans_own_comments_are_not_named(here: WorkerEnvironment) -> None:
    story = Story(here)
    story.comment("/mulligan status")
    context = here.context(story.agent)
    crews = [Runtime((NAME,), context, Worker(context))]
    daemon = Daemon(lambda: crews.pop() if crews else None)

    def answer_a_command() -> None:
        story.comment("/mulligan status", "ada")
        woken = list[IssueRef]()
        daemon.poll(woken.extend)
        daemon.watch()

    story.during_agent = answer_a_command
    Worker(context).visit(story.ref)
    assert len(here.said(story.ref)) >= 2
    story.assert_nothing_said()


def test_words_before_the_last_attempt_are_in_its_prompt(here: WorkerEnvironment) -> None:
    story = Story(here, verdict="It is red.")

    def write_once() -> None:
        if len(story.agent.tasks) == 1:
            story.comment()
            story.world.edit(story.ref, "ada", body="Also rename the module.")
        else:
            story.verdict = None

    story.during_agent = write_once
    for _ in range(2):
        story.work()
    assert len(story.agent.tasks) == 2
    assert "Keep the old name." in story.agent.tasks[1].prompt
    assert "Also rename the module." in story.agent.tasks[1].prompt
    story.assert_nothing_said()


def test_an_escalation_names_it(here: WorkerEnvironment) -> None:
    here.policy["max_issue_attempts"] = 1
    story, made = Story(here, verdict="It is red."), list[int]()
    story.during_agent = lambda: made.append(story.comment())
    story.work()
    assert here.ledger.status(story.ref).stage is Stage.HITL
    said = f"After this work began, wes commented {story.link(made[0])}. {RETRY}"
    assert [text.count(said) for text in here.said(story.ref)] == [1, 1]


def test_the_draft_of_an_escalation_names_it(here: WorkerEnvironment) -> None:
    here.policy |= {"max_issue_attempts": 1, "escalation": {"draft_pr": True}}
    story, made = Story(here, verdict="It is red."), list[int]()
    story.during_agent = lambda: made.append(story.comment())
    story.work()
    story.assert_said(f"wes commented {story.link(made[0])}")


def test_verified_work_that_cannot_be_published_is_started_again_by_fix(
    here: WorkerEnvironment,
) -> None:
    story, made = Story(here), list[int]()

    def refuse_the_pull_request(method: str, path: str) -> Fault | None:
        is_refused = method == "POST" and path.endswith("/pulls")
        return Fault(422, body='{"message": "Validation Failed"}') if is_refused else None

    story.world.faults = refuse_the_pull_request
    story.during_agent = lambda: made.append(story.comment())
    story.work()
    assert here.ledger.status(story.ref).stage is Stage.HITL
    said = f"After this work began, wes commented {story.link(made[0])}. "
    assert story.note == said + FIX
    story.world.faults = None
    story.comment("/mulligan retry")
    story.work()
    assert len(story.agent.tasks) == 1
    story.assert_said(f"wes commented {story.link(made[0])}")


def test_a_comment_while_the_publication_is_delayed_is_named_once(
    here: WorkerEnvironment,
) -> None:
    story = Story(here)
    story.world.faults = lambda method, path: (
        Fault(502) if method == "POST" and path.endswith("/pulls") else None
    )
    story.work()
    assert here.ledger.status(story.ref).stage is Stage.RUNNING
    made = story.comment()
    for _ in range(2):
        story.work()
    story.world.faults = None
    story.work()
    assert len(story.agent.tasks) == 1
    story.assert_said(f"wes commented {story.link(made)}")


def test_retry_takes_it_in_and_the_sentence_goes(here: WorkerEnvironment) -> None:
    story = Story(here)

    def write_once() -> None:
        if len(story.agent.tasks) == 1:
            story.comment()
            story.world.edit(story.ref, "ada", body="Also rename the module.")

    story.during_agent = write_once
    story.work()
    assert story.note
    story.comment("/mulligan retry")
    story.work()
    prompt = story.agent.tasks[1].prompt
    assert "Keep the old name." in prompt
    assert "Also rename the module." in prompt
    story.assert_nothing_said()


def test_the_sentence_goes_with_the_new_request(here: WorkerEnvironment) -> None:
    story = Story(here)
    story.during_agent = story.comment
    story.work()
    story.comment("/mulligan pause")
    story.work()
    assert story.note
    here.desk.clock.time += timedelta(minutes=1)
    story.world.label(story.ref, "mulligan", "wes")
    story.work()
    assert story.note == ""


def test_an_issue_without_words_of_people_costs_no_request(here: WorkerEnvironment) -> None:
    story = Story(here)
    asked = story.world.requests

    def start_counting() -> None:
        asked.clear()

    story.during_checks = start_counting
    story.work()
    story.assert_nothing_said()
    comments = f"/repos/{NAME}/issues/1/comments"
    before_pull = [one for one in asked if one.path in {comments, "/graphql"}]
    assert not [one for one in before_pull if one.method == "GET"]
    assert BOT in {one.author.login for one in story.world.comments_of(story.ref)}
