"""What the tracker writes on GitHub is there once, whatever happens to an answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from github_simulator.world import Fault, Faults
from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.errors import DeniedError, UnavailableError
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import NO_EFFECTS, StageShown, StatusWritten
from mulligan.domain.status import STATUS_EDIT_INTERVAL, Request
from mulligan.github.marks import MARKER
from world.simulated import NAME
from world.stories import attempt, case, escalated, published
from world.trackers import BOT, TrackerEnvironment, case_for, pushed, tracker_environment

LABELS = Labels()
SETTINGS = PullRequestSettings()


def verified(ref: IssueRef) -> IssueContext:
    return case_for(published(attempt(1, Outcome.SUCCEEDED)), ref)


def hopeless(ref: IssueRef) -> IssueContext:
    return case_for(escalated(attempt(1), reason="It did not work out."), ref)


def once(verb: str, part: str, fault: Fault) -> Faults:
    """Let the first request that fits go wrong, and no other."""
    left = [fault]

    def faults(method: str, path: str) -> Fault | None:
        return left.pop() if left and method == verb and part in path else None

    return faults


def always(verb: str, part: str, fault: Fault) -> Faults:
    return lambda method, path: fault if method == verb and part in path else None


def start(office: TrackerEnvironment, ref: IssueRef) -> None:
    office.writer.set_stage_labels(ref, Stage.RUNNING, LABELS)


def finish(office: TrackerEnvironment, ref: IssueRef) -> None:
    office.writer.set_stage_labels(ref, Stage.HITL, LABELS)


def tell(office: TrackerEnvironment, ref: IssueRef) -> None:
    office.writer.update_status(case_for(case(), ref))


def tell_again(office: TrackerEnvironment, ref: IssueRef) -> None:
    office.writer.update_status(case_for(case(attempt(1)), ref))


def ask(office: TrackerEnvironment, ref: IssueRef) -> None:
    office.writer.post_escalation(hopeless(ref), Escalation())


def publish(office: TrackerEnvironment, ref: IssueRef) -> None:
    office.writer.open_pull_request(verified(ref), "main", SETTINGS)


def publish_again(office: TrackerEnvironment, ref: IssueRef) -> None:
    told = case_for(published(attempt(1), attempt(2, Outcome.SUCCEEDED)), ref)
    office.writer.open_pull_request(told, "main", SETTINGS)


Step = Callable[[TrackerEnvironment, IssueRef], None]
WRITES: dict[str, tuple[tuple[Step, ...], Step, str, str]] = {
    "a label is put on": ((), start, "POST", "/labels"),
    "a label is taken off": ((start,), finish, "DELETE", "/labels/mulligan"),
    "the status comment is written": ((), tell, "POST", "/comments"),
    "the status comment is edited": ((tell,), tell_again, "PATCH", "/comments/"),
    "help is asked for": ((), ask, "POST", "/comments"),
    "the pull request is opened": ((), publish, "POST", "/pulls"),
    "the pull request is edited": ((publish,), publish_again, "PATCH", "/pulls/"),
}


@dataclass
class Write:
    """One write on one issue, and what it leaves behind for people to see."""

    office: TrackerEnvironment
    ref: IssueRef
    step: Step
    verb: str
    part: str

    def make(self) -> None:
        self.step(self.office, self.ref)

    def meets(self, faults: Faults | None) -> None:
        self.office.hub.world.faults = faults

    def pulls(self) -> list[tuple[str, str | None]]:
        found = self.office.hub.world.pulls_of(NAME)
        return [
            (pull.title, pull.body)
            for pull in found
            if pull.pull and pull.pull.head_ref == self.ref.branch
        ]

    def shown(self) -> object:
        world = self.office.hub.world
        comments = [comment.body for comment in world.comments_of(self.ref)]
        return sorted(world.labels_of(self.ref)), comments, self.pulls()


LOST = {
    "502": Fault(502, apply=True),
    "the connection ends": Fault(cut=True, apply=True),
    "a web page": Fault(200, "<html>", apply=True, content_type="text/html"),
    "another object": Fault(201, '{"id": "none"}', apply=True),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest, shared: TrackerEnvironment) -> Iterator[Write]:
    """Prepare an issue of its own for one write."""
    before, step, verb, part = WRITES[request.param]
    ref = shared.ready()
    shared.branch(ref)
    for earlier in before:
        earlier(shared, ref)
    shared.requests()
    yield Write(shared, ref, step, verb, part)
    shared.hub.world.faults = None


@pytest.mark.parametrize("lost", LOST)
def test_a_write_whose_answer_is_lost_is_found_again(lost: str, write: Write) -> None:
    write.meets(once(write.verb, write.part, LOST[lost]))
    write.make()
    shown = write.shown()
    write.make()
    assert write.shown() == shown
    assert len(write.office.hub.world.comments_of(write.ref)) <= 1
    assert len(write.pulls()) <= 1


def test_a_write_that_failed_is_made_the_next_time(write: Write) -> None:
    write.meets(always(write.verb, write.part, Fault(502)))
    with pytest.raises(UnavailableError, match="try again later"):
        write.make()
    write.meets(None)
    write.make()
    shown = write.shown()
    write.make()
    assert write.shown() == shown


def test_a_write_is_never_sent_again_without_a_look(write: Write) -> None:
    write.meets(always(write.verb, write.part, Fault(502)))
    with pytest.raises(UnavailableError):
        write.make()
    asked = [line.partition(" ")[0] for line in write.office.requests()]
    assert "GET" in asked[asked.index(write.verb) :]
    assert (write.verb, write.verb) not in pairwise(asked)


def test_a_right_that_is_missing_is_named(write: Write) -> None:
    refusal = Fault(403, '{"message": "Resource not accessible by personal access token"}')
    write.meets(always(write.verb, write.part, refusal))
    with pytest.raises(DeniedError, match=r"not accessible .*; the token needs .*write"):
        write.make()


def test_a_write_is_never_redirected(write: Write) -> None:
    place = {"location": f"{write.office.hub.url}/repos/{NAME}/issues/{write.ref.number}/comments"}
    for status in (301, 307):
        write.meets(always(write.verb, write.part, Fault(status, headers=place)))
        with pytest.raises(UnavailableError, match="renamed"):
            write.make()
    asked = [line for line in write.office.requests() if line.startswith(write.verb)]
    assert all(write.part in line for line in asked)


def test_the_new_label_is_put_on_before_the_old_ones_go(office: TrackerEnvironment) -> None:
    ref = office.ready()
    start(office, ref)
    office.requests()
    finish(office, ref)
    path = f"/repos/{NAME}/issues/{ref.number}"
    assert [line.replace("%3A", ":") for line in office.requests()] == [
        f"GET {path}",
        f"POST {path}/labels",
        f"DELETE {path}/labels/mulligan",
        f"DELETE {path}/labels/mulligan:running",
    ]


def test_labels_that_are_right_cost_one_look(office: TrackerEnvironment) -> None:
    ref = office.ready()
    start(office, ref)
    office.requests()
    start(office, ref)
    assert office.requests() == [f"GET /repos/{NAME}/issues/{ref.number}"]


def test_a_label_that_somebody_else_took_off_is_no_matter(office: TrackerEnvironment) -> None:
    ref = office.ready()
    gone = Fault(404, '{"message": "Label does not exist"}', apply=True)
    office.hub.world.faults = once("DELETE", "/labels/mulligan", gone)
    finish(office, ref)
    assert office.hub.world.labels_of(ref) == ["mulligan:hitl"]


def test_a_status_comment_that_says_the_same_is_left_alone(office: TrackerEnvironment) -> None:
    ref = office.ready()
    tell(office, ref)
    office.requests()
    tell(office, ref)
    assert all(line.startswith("GET ") for line in office.requests())


def test_a_status_comment_on_record_is_found_by_its_id(office: TrackerEnvironment) -> None:
    ref = office.ready()
    known = office.writer.update_status(case_for(case(), ref)) or ""
    told = on_record(case_for(case(attempt(1)), ref), known)
    office.clock.time += STATUS_EDIT_INTERVAL
    office.requests()
    assert office.writer.update_status(told) == known
    asked = [line for line in office.requests() if known in line]
    assert asked == [f"PATCH /repos/{NAME}/issues/comments/{known}"]


def test_a_status_comment_on_record_is_found_where_the_list_lacks_it(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    known = office.writer.update_status(case_for(case(), ref)) or ""
    told = on_record(case_for(case(attempt(1)), ref), known)
    office.clock.time += STATUS_EDIT_INTERVAL
    where = f"/repos/{NAME}/issues/{ref.number}/comments"

    def lack(method: str, path: str) -> Fault | None:
        return Fault(200, "[]") if (method, path) == ("GET", where) else None

    office.hub.world.faults = lack
    assert office.writer.update_status(told) == known
    assert len(office.hub.world.comments_of(ref)) == 1


def on_record(told: IssueContext, known: str) -> IssueContext:
    effects = NO_EFFECTS.plus(StatusWritten(comment=known)).plus(StageShown(stage=None))
    return replace(told, status=replace(told.status, effects=effects))


def test_a_status_comment_that_a_person_deleted_is_written_anew(office: TrackerEnvironment) -> None:
    ref = office.ready()
    known = office.writer.update_status(case_for(case(), ref)) or ""
    office.hub.ask("DELETE", f"issues/comments/{known}", by=BOT)
    office.clock.time += STATUS_EDIT_INTERVAL
    again = office.writer.update_status(on_record(case_for(case(), ref), known))
    assert again != known
    assert len(office.hub.world.comments_of(ref)) == 1


def test_a_record_of_a_dry_run_does_not_count(office: TrackerEnvironment) -> None:
    ref = office.ready()
    assert (
        office.writer.update_status(on_record(case_for(case(), ref), "dry-run")) or ""
    ).isdecimal()


def test_a_comment_on_record_of_another_issue_is_an_error(office: TrackerEnvironment) -> None:
    ref, other = office.ready(), office.ready()
    known = office.writer.update_status(case_for(case(), other)) or ""
    with pytest.raises(UnavailableError, match="another issue"):
        office.writer.update_status(on_record(case_for(case(), ref), known))


def test_of_two_comments_the_oldest_stays(office: TrackerEnvironment) -> None:
    ref = office.ready()
    text = f"{MARKER}status {ref} -->\n\nOld."
    first = office.hub.world.comment(ref, text, BOT)
    office.hub.world.comment(ref, text, BOT)
    assert office.writer.update_status(case_for(case(), ref)) == str(first)


@pytest.mark.parametrize("pretender", ["zoe", "ada"])
def test_a_marker_by_somebody_else_is_ignored(pretender: str, office: TrackerEnvironment) -> None:
    ref = office.ready()
    false = office.hub.world.comment(ref, f"{MARKER}status {ref} -->", pretender)
    assert office.writer.update_status(case_for(case(), ref)) != str(false)


def test_the_comment_that_asks_for_help_is_linked(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.add_user("ada")
    url = office.writer.post_escalation(hopeless(ref), Escalation(assignees=("ada",)))
    comment = office.hub.world.comments_of(ref)[0]
    assert url.endswith(f"/issues/{ref.number}#issuecomment-{comment.id}")
    assert [user.login for user in office.hub.world.issue_of(ref).assignees] == ["ada"]


def test_an_assignee_who_is_refused_does_not_stop_the_escalation(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    office.hub.world.faults = always("POST", "/assignees", Fault(422, '{"message": "No"}'))
    assert office.writer.post_escalation(hopeless(ref), Escalation(assignees=("nobody",)))


def test_a_locked_conversation_is_a_matter_for_a_person(office: TrackerEnvironment) -> None:
    ref = office.ready()
    words = '{"message": "Unable to create comment because issue is locked."}'
    office.hub.world.faults = always("POST", "/comments", Fault(403, words))
    with pytest.raises(DeniedError, match="locked"):
        ask(office, ref)


def test_a_pull_request_has_what_was_configured(office: TrackerEnvironment) -> None:
    ref = office.ready("Fixes #1 for @ann")
    office.branch(ref)
    settings = PullRequestSettings(draft=True, reviewers=("ada", "mia"), labels=("bot",))
    told = replace(verified(ref), issue=office.tracker.read(ref))
    opened = office.writer.open_pull_request(told, "main", settings)
    found = office.hub.world.pulls_of(NAME)[0]
    assert found.pull
    assert opened.number == found.number
    assert found.title == "Fixes `#1` for `@ann`"
    assert f"\nCloses #{ref.number}\n" in (found.body or "")
    assert (found.pull.head_ref, found.pull.base_ref) == (ref.branch, "main")
    assert found.pull.draft
    assert [user.login for user in found.pull.reviewers] == ["ada", "mia"]
    assert found.label_names == ["bot"]


def by(found: IssueContext, act: str, actor: str) -> IssueContext:
    return replace(found, status=replace(found.status, request=Request(act, actor)))


@pytest.mark.parametrize(
    ("act", "actor", "asked"),
    [
        ("labeled:7", "wes", ["wes"]),
        ("labeled:7", BOT, []),
        ("labeled:7", "robot[bot]", []),
        ("operator:2025", "wes", []),
    ],
)
def test_who_put_the_label_on_is_asked_for_the_review(
    act: str, actor: str, asked: list[str], office: TrackerEnvironment
) -> None:
    ref = office.ready()
    office.branch(ref)
    office.writer.open_pull_request(by(verified(ref), act, actor), "main", SETTINGS)
    pull = office.hub.world.pulls_of(NAME)[0].pull
    assert pull
    assert [user.login for user in pull.reviewers] == asked
    assert any(line.endswith("/requested_reviewers") for line in office.requests()) == bool(asked)


def test_reviewers_and_labels_that_are_refused_do_not_stop_the_publishing(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    office.branch(ref)
    settings = PullRequestSettings(
        reviewers=("nobody-at-all",), team_reviewers=("core",), labels=("bot",)
    )
    office.hub.world.faults = always("POST", "/labels", Fault(403))
    assert office.writer.open_pull_request(verified(ref), "main", settings).number
    assert len(office.hub.world.pulls_of(NAME)) == 1


def test_a_second_publishing_asks_nobody_again(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.branch(ref)
    settings = PullRequestSettings(reviewers=("ada",), labels=("bot",))
    office.writer.open_pull_request(verified(ref), "main", settings)
    office.requests()
    office.writer.open_pull_request(pushed(verified(ref)), "main", settings)
    assert [line for line in office.requests() if not line.startswith("GET ")] == []


def test_a_pull_request_that_another_worker_opened_meanwhile_is_the_one(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    office.branch(ref)
    publish(office, ref)
    office.hub.world.faults = once("GET", "/pulls", Fault(200, "[]"))
    opened = office.writer.open_pull_request(pushed(verified(ref)), "main", SETTINGS)
    assert opened.number == office.hub.world.pulls_of(NAME)[0].number
    assert len(office.hub.world.pulls_of(NAME)) == 1


def test_a_text_that_people_took_over_is_left_to_them(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.branch(ref)
    publish(office, ref)
    number = office.hub.world.pulls_of(NAME)[0].number
    office.hub.world.edit(IssueRef(NAME, number), "ada", title="Ours", body="Our own words.")
    publish_again(office, ref)
    found = office.hub.world.pulls_of(NAME)[0]
    assert (found.title, found.body) == ("Ours", "Our own words.")


def test_a_closed_pull_request_is_not_the_open_one(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.branch(ref)
    publish(office, ref)
    office.hub.world.close(IssueRef(NAME, office.hub.world.pulls_of(NAME)[0].number), "ada")
    publish(office, ref)
    assert [pull.state for pull in office.hub.world.pulls_of(NAME)] == ["closed", "open"]


def test_a_branch_that_is_not_there_is_told_in_githubs_words(office: TrackerEnvironment) -> None:
    with pytest.raises(UnavailableError, match=r"Validation Failed.*head"):
        publish(office, office.ready())
