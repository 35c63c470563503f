"""What the tracker reads is GitHub's, of this repository, and asked for with few requests."""

import pytest

from github_simulator.world import Fault
from mulligan.config.operator import Trust
from mulligan.config.policy import PullRequestSettings
from mulligan.domain.errors import DeniedError, GoneError, UnavailableError, WorldError
from mulligan.domain.issue import IssueRef
from mulligan.github.client import Client, RetrySettings
from mulligan.github.comments import StatusComments
from mulligan.github.marks import MARKER
from mulligan.github.tracker import MAX_PERMISSION_LOOKUPS, GitHubTracker
from mulligan.github.writer import GitHubWriter
from world.faulty_http_server import Reply, faulty_server
from world.simulated import NAME
from world.stories import attempt, case, published
from world.trackers import BOT, FrozenClock, TrackerEnvironment, case_for, tracker_environment


def path_of(ref: IssueRef) -> str:
    return f"/repos/{NAME}/issues/{ref.number}"


def test_an_issue_without_comments_is_one_request(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.tracker.read(ref)
    assert office.requests() == [f"GET {path_of(ref)}"]


def test_blockers_are_counted_with_the_issue_and_listed_once_asked(
    office: TrackerEnvironment,
) -> None:
    ref, first, done = office.ready(), office.ready(), office.ready()
    office.hub.world.block(ref, first)
    office.hub.world.block(ref, done)
    office.hub.world.close(done, "wes")
    assert (office.tracker.read(ref).blockers, office.tracker.read(first).blockers) == (1, 0)
    assert office.tracker.blockers(ref) == [first]


def test_people_without_a_marker_do_not_make_mulligan_ask_who_it_is(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    for _ in range(3):
        office.hub.world.comment(ref, "Please hurry.", "wes")
    assert len(office.tracker.read(ref, with_comments=True).comments) == 3
    assert office.requests() == [
        f"GET {path_of(ref)}",
        f"GET {path_of(ref)}/comments",
        f"GET /repos/{NAME}/collaborators/wes/permission",
    ]


def test_a_crowd_does_not_use_up_the_rate_limit(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.comment(ref, "I was first.", "ada")
    for number in range(MAX_PERMISSION_LOOKUPS):
        office.hub.world.comment(ref, "Me too!", f"fan-{number}")
    office.hub.world.comment(ref, "Calm down.", "wes")
    said = office.tracker.read(ref, with_comments=True).comments
    assert [comment.body for comment in said] == ["Calm down."]
    assert len(office.requests()) == MAX_PERMISSION_LOOKUPS + 2


def test_a_marker_by_a_trusted_person_is_a_comment_like_any_other(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    office.hub.world.comment(ref, f"{MARKER}status {ref} --> see above", "wes")
    assert [
        comment.author for comment in office.tracker.read(ref, with_comments=True).comments
    ] == ["wes"]


def test_long_lists_are_read_to_their_end(office: TrackerEnvironment) -> None:
    refs = [office.ready() for _ in range(103)]
    assert office.tracker.list_labelled(NAME, "mulligan") == refs
    for number in range(101):
        office.hub.world.label(refs[0], f"label-{number}", "tri")
    office.hub.world.unlabel(refs[0], "mulligan", "wes")
    office.hub.world.label(refs[0], "mulligan", "ada")
    act = office.tracker.authorising_act(refs[0], "mulligan")
    assert act
    assert act.actor == "ada"


def test_an_unchanged_list_costs_no_rate_limit(office: TrackerEnvironment) -> None:
    ref = office.ready()
    assert office.tracker.list_labelled(NAME, "mulligan") == [ref]
    before = len(office.hub.world.requests)
    assert office.tracker.list_labelled(NAME, "mulligan") == [ref]
    again = office.hub.world.requests[before:]
    assert [(one.status, one.counted) for one in again] == [(304, False)]
    other = office.ready()
    assert office.tracker.list_labelled(NAME, "mulligan") == [ref, other]


@pytest.mark.parametrize("fault", [Fault(500), Fault(403), Fault(200, "{}")], ids=str)
def test_events_that_cannot_be_read_authorise_nothing_and_are_a_problem(
    fault: Fault, office: TrackerEnvironment
) -> None:
    ref = office.ready()
    office.hub.world.faults = lambda _, path: fault if path.endswith("/events") else None
    with pytest.raises(WorldError, match=f"/issues/{ref.number}/events"):
        office.tracker.authorising_act(ref, "mulligan")


def test_a_label_put_on_by_somebody_who_is_gone_is_not_trusted() -> None:
    labeled = {"id": 5, "event": "labeled", "created_at": "2025-03-04T12:00:00.123Z"}
    events = [{**labeled, "actor": None, "label": {"name": "mulligan", "color": "fff"}}]
    with faulty_server([Reply(content=events)]) as told:
        client = Client(told.url, lambda _: "t")
        tracker = GitHubTracker(client, Trust(), FrozenClock())
        act = tracker.authorising_act(IssueRef("octo/calc", 1), "mulligan")
        client.close()
    assert act
    assert (act.actor, act.trusted) == ("", False)
    assert "no longer exists" in act.reason


def listed(number: int, *labels: object, **more: object) -> dict[str, object]:
    return {
        "number": number,
        "title": "x",
        "state": "open",
        "html_url": "x",
        "url": f"https://ghe.example/api/v3/repos/octo/calc/issues/{number}",
        "labels": list(labels),
        **more,
    }


def test_a_list_with_other_things_is_sifted() -> None:
    found = [
        listed(1, "Mulligan"),
        listed(2, {"name": "bug"}),
        listed(3, "mulligan", pull_request={}),
        listed(1, {"name": "mulligan"}),
    ]
    with faulty_server([Reply(content=found)]) as told:
        client = Client(told.url, lambda _: "t")
        refs = GitHubTracker(client, Trust(), FrozenClock()).list_labelled("octo/calc", "mulligan")
        client.close()
    assert refs == [IssueRef("octo/calc", 1)]


ELSEWHERE = {"title": "x", "state": "open", "html_url": "x"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"number": 2, "url": "http://h/repos/octo/calc/issues/2"}, "gave issue 2"),
        ({"number": 1, "url": "http://h/repos/octo/other/issues/1"}, "another repository"),
        ({"number": 1, "url": "http://h/repos/x-octo/calc/issues/1"}, "another repository"),
    ],
)
def test_an_object_that_is_not_the_one_asked_for_is_an_error(
    content: dict[str, object], words: str
) -> None:
    with faulty_server([Reply(content={**ELSEWHERE, **content})]) as told:
        client = Client(told.url, lambda _: "t")
        with pytest.raises(UnavailableError, match=words):
            GitHubTracker(client, Trust(), FrozenClock()).read(IssueRef("octo/calc", 1))
        client.close()


def test_a_pull_request_of_another_repository_is_an_error() -> None:
    head = {"ref": "mulligan/issue-12", "repo": {"full_name": "octo/calc"}}
    url = "http://h/repos/octo/other/pulls/3"
    pull = {"number": 3, "title": "x", "html_url": "x", "url": url, "head": head}
    with faulty_server([Reply(content=[pull])]) as told:
        client = Client(told.url, lambda _: "t")
        writer = GitHubWriter(client, lambda: BOT, StatusComments(FrozenClock()))
        with pytest.raises(UnavailableError, match="another repository"):
            writer.open_pull_request(published(attempt(1)), "main", PullRequestSettings())
        client.close()


def test_a_branch_of_a_fork_is_not_the_issues_branch() -> None:
    url = "http://h/repos/octo/calc/pulls/"
    pulls = [
        {
            "number": number,
            "title": "x",
            "html_url": f"{url}{number}",
            "url": f"{url}{number}",
            "head": {"ref": "mulligan/issue-12", "repo": repository},
        }
        for number, repository in (
            (3, {"full_name": "evil/calc"}),
            (4, None),
            (6, {"full_name": "Octo/Calc"}),
            (5, {"full_name": "octo/calc"}),
        )
    ]
    with faulty_server([Reply(content=pulls)]) as told:
        client = Client(told.url, lambda _: "t")
        writer = GitHubWriter(client, lambda: BOT, StatusComments(FrozenClock()))
        opened = writer.open_pull_request(published(attempt(1)), "main", PullRequestSettings())
        client.close()
    assert opened.number == 5


def test_a_transferred_issue_is_not_read_from_its_new_place(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.add_repository("acme/other", office.hub.bare)
    office.hub.world.transfer(ref, "acme/other", "ada")
    with pytest.raises(GoneError, match="was transferred to another repository"):
        office.tracker.read(ref)


def test_a_renamed_repository_is_not_followed(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.rename_repository(NAME, "gadgets")
    for ask in (
        lambda: office.tracker.repository(NAME),
        lambda: office.tracker.list_labelled(NAME, "mulligan"),
        lambda: office.tracker.read(ref),
    ):
        with pytest.raises(
            GoneError, match=f"{NAME} was renamed or transferred; write its new name"
        ):
            ask()


def test_a_redirect_of_another_kind_is_no_rename() -> None:
    found = Reply(301, {}, {"Location": "https://elsewhere.example/repos/octo/calc"})
    with faulty_server([found]) as told:
        client = Client(told.url, lambda _: "t", RetrySettings(1))
        tracker = GitHubTracker(client, Trust(), FrozenClock())
        with pytest.raises(UnavailableError, match="redirects GET /repos/octo/calc"):
            tracker.repository("octo/calc")
        with pytest.raises(UnavailableError, match="redirects GET /repos/octo/calc"):
            tracker.list_labelled("octo/calc", "mulligan")
        client.close()


def test_a_repository_that_answers_under_another_name_is_an_error() -> None:
    facts = {"full_name": "octo/new", "default_branch": "main", "clone_url": "x"}
    with faulty_server([Reply(content=facts)]) as told:
        client = Client(told.url, lambda _: "t")
        with pytest.raises(UnavailableError, match="now named octo/new"):
            GitHubTracker(client, Trust(), FrozenClock()).repository("octo/calc")
        client.close()


def test_names_are_compared_as_github_does(office: TrackerEnvironment) -> None:
    ref = office.ready()
    loud = IssueRef(NAME.upper(), ref.number)
    assert office.tracker.repository(NAME.upper()).name == NAME.upper()
    assert office.tracker.list_labelled(NAME.upper(), "mulligan") == [loud]
    assert office.tracker.read(loud).ref == loud


def test_who_mulligan_is_is_asked_once(office: TrackerEnvironment) -> None:
    ref = office.ready()
    for _ in range(3):
        office.writer.update_status(case_for(case(), ref))
    assert office.requests().count("GET /user") == 1


def test_a_token_that_is_refused_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    with tracker_environment(tmp_path_factory.mktemp("desk"), token="token-of-nobody") as office:
        for ask in (
            lambda: office.tracker.read(office.ready()),
            lambda: office.tracker.list_labelled(NAME, "mulligan"),
            office.tracker.own_login,
        ):
            with pytest.raises(DeniedError, match=r"refused the token .*github\.token"):
                ask()
