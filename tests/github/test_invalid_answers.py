"""Whatever GitHub is asked, an answer that is none ends in one sentence, never in a junk object."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from github_simulator.world import Fault, Faults
from mulligan.config.operator import Trust
from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.errors import DeniedError, UnavailableError
from mulligan.domain.issue import IssueRef, LabelAct, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.status import Request, SeenText
from mulligan.github.comments import StatusComments
from mulligan.github.tracker import GitHubTracker
from mulligan.github.writer import GitHubWriter
from world.simulated import NAME
from world.stories import attempt, case, escalated, published
from world.trackers import TrackerEnvironment, case_for, pushed

REPO, ISSUE = f"/repos/{NAME}", f"/repos/{NAME}/issues/1"
OTHER = "http://127.0.0.1/repos/acme/other"
Ask = Callable[[TrackerEnvironment, IssueRef], object]


def fresh(office: TrackerEnvironment) -> GitHubTracker:
    """Give a tracker that remembers nothing."""
    return GitHubTracker(office.client, Trust(), office.clock)


def fresh_writer(office: TrackerEnvironment) -> GitHubWriter:
    """Give a writer that remembers nothing."""
    return GitHubWriter(office.client, fresh(office).own_login, StatusComments(office.clock))


def verified(ref: IssueRef) -> IssueContext:
    return case_for(published(attempt(1, Outcome.SUCCEEDED)), ref)


def hopeless(ref: IssueRef) -> IssueContext:
    return case_for(escalated(attempt(1), reason="It did not work out."), ref)


def object_to(office: TrackerEnvironment, ref: IssueRef) -> object:
    """Look again at an issue whose text was changed since by somebody with rights."""
    request = Request(str(LabelAct(office.hub.world.events_of(ref)[0].id)))
    told = replace(case_for(case(), ref).status, request=request, text=SeenText(sha256="another"))
    return fresh(office).objection(ref, told)


def withdraw(office: TrackerEnvironment, ref: IssueRef) -> object:
    return fresh(office).withdrawal(ref, case_for(case(), ref).status, Labels())


def show(stage: Stage) -> Ask:
    return lambda office, ref: fresh_writer(office).set_stage_labels(ref, stage, Labels())


def publish(office: TrackerEnvironment, ref: IssueRef) -> object:
    return fresh_writer(office).open_pull_request(verified(ref), "main", PullRequestSettings())


def publish_again(office: TrackerEnvironment, ref: IssueRef) -> object:
    told = pushed(verified(ref))
    return fresh_writer(office).open_pull_request(told, "main", PullRequestSettings())


REQUESTS: dict[str, tuple[Ask, str, str]] = {
    "who Mulligan is": (lambda office, _: fresh(office).own_login(), "GET", "/user"),
    "the repository": (lambda office, _: fresh(office).repository(NAME), "GET", REPO),
    "its labels": (lambda office, _: fresh(office).label_names(NAME), "GET", f"{REPO}/labels"),
    "the labelled issues": (
        lambda office, _: fresh(office).list_labelled(NAME, "mulligan"),
        "GET",
        f"{REPO}/issues",
    ),
    "an issue": (lambda office, ref: fresh(office).read(ref), "GET", ISSUE),
    "its comments": (
        lambda office, ref: fresh(office).read(ref, with_comments=True),
        "GET",
        f"{ISSUE}/comments",
    ),
    "its events": (withdraw, "GET", f"{ISSUE}/events"),
    "its events again": (object_to, "GET", f"{ISSUE}/events"),
    "its edits": (object_to, "POST", "/graphql"),
    "a permission": (object_to, "GET", f"{REPO}/collaborators/wes/permission"),
    "labels put on": (show(Stage.REVIEW), "POST", f"{ISSUE}/labels"),
    "a label taken off": (show(Stage.RESOLVED), "DELETE", f"{ISSUE}/labels/mulligan"),
    "a comment written": (
        lambda office, ref: fresh_writer(office).update_status(case_for(case(), ref)),
        "POST",
        f"{ISSUE}/comments",
    ),
    "help asked for": (
        lambda office, ref: fresh_writer(office).post_escalation(hopeless(ref), Escalation()),
        "POST",
        f"{ISSUE}/comments",
    ),
    "the label asked for": (
        lambda office, ref: fresh_writer(office).ask_for_label(
            case_for(case(), ref), LabelAct(7), "No"
        ),
        "POST",
        f"{ISSUE}/comments",
    ),
    "the pull requests": (publish_again, "GET", f"{REPO}/pulls"),
    "a pull request opened": (publish, "POST", f"{REPO}/pulls"),
}

LIES = {
    "a redirect": Fault(301, headers={"location": f"{OTHER}/issues/1"}),
    "a redirect of a write": Fault(307, headers={"location": f"{OTHER}/issues/1"}),
    "a web page": Fault(200, "<html>It works!</html>", content_type="text/html"),
    "nothing": Fault(200, ""),
    "half of it": Fault(200, '[{"id": 1, "number"'),
    "null": Fault(200, "null"),
    "an object without fields": Fault(200, "{}"),
    "a list of such": Fault(200, "[{}]"),
    "the connection ends": Fault(cut=True),
}


def meets(verb: str, path: str, fault: Fault) -> Faults:
    return lambda method, asked: fault if (method, asked) == (verb, path) else None


def prepared(office: TrackerEnvironment) -> IssueRef:
    """Have an issue that was commented on, and whose branch is pushed."""
    ref = office.ready()
    office.hub.world.comment(ref, "Please hurry.", "wes")
    office.branch(ref)
    return ref


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", REQUESTS)
def test_an_answer_that_is_none_is_one_sentence(
    kind: str, lie: str, office: TrackerEnvironment
) -> None:
    ref = prepared(office)
    ask, verb, path = REQUESTS[kind]
    office.hub.world.faults = meets(verb, path, LIES[lie])
    with pytest.raises((UnavailableError, DeniedError)) as caught:
        ask(office, ref)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", ")"))
    office.hub.world.faults = None
    ask(office, ref)


def elsewhere(office: TrackerEnvironment, path: str) -> Fault:
    """Give the true answer, but of another repository."""
    body = office.hub.get(path, by="mulligan-bot").text
    return Fault(200, body.replace(f"/repos/{NAME}/", "/repos/acme/other/"))


@pytest.mark.parametrize(
    "kind", ["an issue", "its comments", "its events", "its events again", "the labelled issues"]
)
def test_an_object_of_another_repository_is_not_believed(
    kind: str, office: TrackerEnvironment
) -> None:
    ref = prepared(office)
    ask, verb, path = REQUESTS[kind]
    office.hub.world.faults = meets(verb, path, elsewhere(office, path))
    with pytest.raises(UnavailableError, match=r"of another (repository|issue)"):
        ask(office, ref)


def test_a_repository_of_another_name_is_not_believed(office: TrackerEnvironment) -> None:
    body = office.hub.get(REPO).text.replace(f'"full_name":"{NAME}"', '"full_name":"acme/other"')
    office.hub.world.faults = meets("GET", REPO, Fault(200, body))
    with pytest.raises(UnavailableError, match="now named acme/other"):
        fresh(office).repository(NAME)


@pytest.mark.parametrize("kind", ["a comment written", "help asked for", "the label asked for"])
def test_a_comment_that_went_elsewhere_is_not_believed(
    kind: str, office: TrackerEnvironment
) -> None:
    ref = prepared(office)
    ask, verb, path = REQUESTS[kind]
    body = office.hub.get(f"{ISSUE}/comments").json()[0]
    body["issue_url"] = f"{OTHER}/issues/1"
    office.hub.world.faults = meets(verb, path, Fault(201, json.dumps(body)))
    with pytest.raises(UnavailableError, match="a comment of another issue"):
        ask(office, ref)


def test_the_permission_of_another_account_is_not_believed(office: TrackerEnvironment) -> None:
    ref = prepared(office)
    ask, verb, path = REQUESTS["a permission"]
    body = office.hub.get(f"{REPO}/collaborators/ada/permission").text
    office.hub.world.faults = meets(verb, path, Fault(200, body))
    with pytest.raises(UnavailableError, match="permission of another account"):
        ask(office, ref)


@pytest.mark.parametrize(
    "kind",
    [
        *("its labels", "the labelled issues", "its comments", "its events", "its events again"),
        "the pull requests",
    ],
)
def test_no_list_is_followed_to_another_host(kind: str, office: TrackerEnvironment) -> None:
    ref = prepared(office)
    ask, verb, path = REQUESTS[kind]
    link = {"link": '<http://evil.example/list?page=2>; rel="next"'}
    office.hub.world.faults = meets(verb, path, Fault(200, "[]", link))
    with pytest.raises(UnavailableError, match="does not read"):
        ask(office, ref)


def test_labels_that_were_taken_and_not_put_on_are_missed(office: TrackerEnvironment) -> None:
    ref = prepared(office)
    office.hub.world.faults = meets("POST", f"{ISSUE}/labels", Fault(200, "[]"))
    with pytest.raises(UnavailableError, match="did not add the labels of"):
        fresh_writer(office).set_stage_labels(ref, Stage.REVIEW, Labels())
