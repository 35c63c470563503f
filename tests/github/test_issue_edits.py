"""Who changed title or text after the label was put on, as GitHub tells it (TRUST-2)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from github_simulator.world import Fault
from mulligan.config.operator import Trust
from mulligan.domain.errors import UnavailableError, WorldError
from mulligan.domain.issue import AuthorisingAct, Edits, IssueRef, LabelAct, OperatorAct
from mulligan.domain.status import IssueStatus, Request, SeenText
from mulligan.github.authorization import MAX_PAGES_OF_EDITS
from mulligan.github.client import Client, RetrySettings
from mulligan.github.tracker import GitHubTracker
from world.faulty_http_server import FaultyServer, Reply, faulty_server
from world.simulated import NAME
from world.trackers import FrozenClock, TrackerEnvironment


def wait(office: TrackerEnvironment) -> None:
    """Let a minute pass on GitHub, whose times are whole seconds."""
    world, before = office.hub.world, office.hub.world.stamps.clock
    world.stamps = replace(world.stamps, clock=lambda: before() + timedelta(minutes=1))


def act(office: TrackerEnvironment, ref: IssueRef) -> AuthorisingAct:
    found = office.tracker.authorising_act(ref, "mulligan")
    assert found
    assert found.trusted
    return found


def changes(office: TrackerEnvironment, ref: IssueRef) -> list[tuple[str, str]]:
    found = act(office, ref).edits
    assert found.names_authors
    return [(edit.actor, edit.what) for edit in found.by_strangers]


def test_a_text_that_nobody_changed_is_the_one_that_was_asked_for(
    office: TrackerEnvironment,
) -> None:
    assert act(office, office.ready()).edits == Edits()


def test_changes_by_strangers_are_listed_oldest_first(office: TrackerEnvironment) -> None:
    ref = office.ready()
    wait(office)
    office.hub.world.edit(ref, "zoe", title="Give me the keys")
    wait(office)
    office.hub.world.edit(ref, "tri", body="Send them to me.")
    office.hub.world.edit(ref, "wes", title="Mend it", body="Please.")
    assert changes(office, ref) == [("zoe", "title"), ("tri", "text")]


@pytest.mark.parametrize("who", ["wes", "mia", "ada"])
def test_those_who_may_ask_for_work_may_change_it(who: str, office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.hub.world.edit(ref, who, title="Better", body="Clearer.")
    assert changes(office, ref) == []


def test_what_was_changed_before_the_label_was_read_by_who_put_it_on(
    office: TrackerEnvironment,
) -> None:
    ref = office.hub.issue()
    office.hub.world.edit(ref, "zoe", title="Now I know", body="It is this.")
    wait(office)
    office.hub.world.label(ref, "mulligan", "wes")
    assert changes(office, ref) == []


def test_a_change_in_the_same_second_counts_as_one_after_the_label(
    office: TrackerEnvironment,
) -> None:
    now = office.clock.time
    office.hub.world.stamps = replace(office.hub.world.stamps, clock=lambda: now)
    ref = office.ready()
    office.hub.world.edit(ref, "zoe", body="At once.")
    assert changes(office, ref) == [("zoe", "text")]


def test_an_account_that_is_gone_and_bots_are_strangers(office: TrackerEnvironment) -> None:
    ref = office.ready()
    wait(office)
    office.hub.world.add_user("robot[bot]", "Bot")
    office.hub.world.set_role(NAME, "robot[bot]", "admin")
    office.hub.world.edit(ref, "robot[bot]", body="Beep.")
    wait(office)
    office.hub.world.edit(ref, "rea", title="Read", body="Reed.")
    office.hub.world.delete_user("rea")
    found = changes(office, ref)
    assert found[0] == ("robot[bot]", "text")
    assert set(found[1:]) == {("", "title"), ("", "text")}


def test_long_histories_are_read_to_their_end(office: TrackerEnvironment) -> None:
    ref = office.ready()
    wait(office)
    office.hub.world.edit(ref, "zoe", body="First of many.")
    for number in range(150):
        office.hub.world.edit(ref, "wes", body=f"Version {number}")
    assert changes(office, ref) == [("zoe", "text")]


def test_a_server_without_graphql_tells_renamings_only(office: TrackerEnvironment) -> None:
    office.hub.world.graphql = False
    ref = office.ready()
    office.hub.world.edit(ref, "zoe", body="Anything.")
    assert act(office, ref).edits == Edits(names_authors=False)
    office.hub.world.edit(ref, "zoe", title="Anything")
    found = act(office, ref).edits
    assert [edit.actor for edit in found.by_strangers] == ["zoe"]


UNREADABLE = {
    "403": Fault(403),
    "500": Fault(500),
    "nothing": Fault(200, ""),
    "a web page": Fault(200, "<html>", content_type="text/html"),
    "half": Fault(200, '{"data": {"reposi'),
    "no data": Fault(200, "{}"),
    "null": Fault(200, '{"data": null}'),
    "an error": Fault(200, '{"data": null, "errors": [{"message": "Field is unknown."}]}'),
    "a failure": Fault(200, '{"errors": [{"message": "Something went wrong while executing."}]}'),
    "no rights": Fault(200, '{"errors": [{"type": "FORBIDDEN", "message": "No."}]}'),
    "not found": Fault(200, '{"errors": [{"type": "NOT_FOUND", "message": "None."}]}'),
    "a limit": Fault(200, '{"errors": [{"type": "RATE_LIMITED", "message": "Enough."}]}'),
    "a redirect": Fault(307, headers={"location": "http://127.0.0.1:1/"}),
    "cut": Fault(cut=True),
}


@pytest.mark.parametrize("fault", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_not_taken_for_unchanged(
    fault: Fault, office: TrackerEnvironment
) -> None:
    ref = office.ready()
    office.hub.world.faults = lambda _, path: fault if path == "/graphql" else None
    with pytest.raises(WorldError, match="POST /graphql") as raised:
        act(office, ref)
    assert "\n" not in str(raised.value)


def test_an_editor_whose_rights_cannot_be_read_is_no_stranger_yet(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    office.hub.world.edit(ref, "zoe", body="Anything.")
    office.hub.world.faults = lambda _, path: (
        Fault(500) if path.endswith("zoe/permission") else None
    )
    with pytest.raises(WorldError, match="zoe/permission"):
        act(office, ref)


def status(office: TrackerEnvironment, ref: IssueRef) -> IssueStatus:
    """Give the status of an epoch whose text was recorded as it stands now."""
    found, issue = act(office, ref), office.tracker.read(ref)
    return IssueStatus(
        ref,
        epoch=1,
        request=Request(str(found.act), found.actor, found.actor_id, found.at),
        text=SeenText(issue.title, issue.text_sha256, str(found.act)),
    )


def test_a_text_that_stands_as_recorded_is_not_asked_about(office: TrackerEnvironment) -> None:
    ref = office.ready()
    known = status(office, ref)
    office.requests()
    assert office.tracker.objection(ref, known) is None
    assert "POST /graphql" not in office.requests()


def by_title(office: TrackerEnvironment, ref: IssueRef, who: str) -> None:
    office.hub.world.edit(ref, who, title="Another")


def by_text(office: TrackerEnvironment, ref: IssueRef, who: str) -> None:
    office.hub.world.edit(ref, who, body="Another.")


CHANGES = pytest.mark.parametrize("change", [by_title, by_text])
Change = Callable[[TrackerEnvironment, IssueRef, str], None]


@CHANGES
def test_a_strangers_change_stands_against_what_was_begun(
    change: Change, office: TrackerEnvironment
) -> None:
    ref = office.ready()
    known = status(office, ref)
    change(office, ref, "wes")
    assert office.tracker.objection(ref, known) is None
    change(office, ref, "wes")
    office.hub.world.edit(ref, "zoe", title="Worse", body="Worse.")
    found = office.tracker.objection(ref, known)
    assert found
    assert found.by_edit
    assert found.reason.startswith("zoe changed the ")


@CHANGES
def test_where_nobody_tells_who_it_was_any_change_does(
    change: Change, office: TrackerEnvironment
) -> None:
    office.hub.world.graphql = False
    ref = office.ready()
    known = status(office, ref)
    assert office.tracker.objection(ref, known) is None
    change(office, ref, "wes")
    found = office.tracker.objection(ref, known)
    assert found
    assert "does not report who changed it" in found.reason


def test_a_status_without_a_text_goes_by_what_github_tells(office: TrackerEnvironment) -> None:
    ref = office.ready()
    old = replace(status(office, ref), text=SeenText())
    assert office.tracker.objection(ref, old) is None
    office.hub.world.edit(ref, "zoe", body="Another.")
    assert office.tracker.objection(ref, old)


def test_an_operators_command_is_not_looked_up(office: TrackerEnvironment) -> None:
    ref = office.ready(by="tri")
    issue = office.tracker.read(ref)
    known = IssueStatus(
        ref,
        request=Request(str(OperatorAct("now")), at=office.clock.now()),
        text=SeenText(sha256=issue.text_sha256),
    )
    assert office.tracker.objection(ref, known) is None
    wait(office)
    office.hub.world.edit(ref, "zoe", title="Another")
    found = office.tracker.objection(ref, known)
    assert found
    assert found.by_edit


def test_an_account_that_took_the_place_of_another_is_not_obeyed(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    known = status(office, ref)
    known = replace(known, request=replace(known.request, actor_id=4711))
    found = office.tracker.objection(ref, known)
    assert found
    assert "not the account" in found.reason


def test_a_label_that_github_does_not_show_any_more_is_asked_about_later(
    office: TrackerEnvironment,
) -> None:
    ref = office.ready()
    known, act = status(office, ref), LabelAct(1)
    request, text = (replace(each, written_act=str(act)) for each in (known.request, known.text))
    known = replace(known, request=request, text=text)
    with pytest.raises(UnavailableError, match="does not report who"):
        office.tracker.objection(ref, known)


def test_an_issue_that_is_gone_is_objected_to(office: TrackerEnvironment) -> None:
    ref = office.ready()
    known = status(office, ref)
    office.hub.world.delete(ref)
    found = office.tracker.objection(ref, known)
    assert found
    assert "deleted" in found.reason


@pytest.mark.parametrize("path", ["/graphql", "/permission"])
def test_an_objection_that_cannot_be_read_is_none_and_no_consent(
    path: str, office: TrackerEnvironment
) -> None:
    ref = office.ready()
    known = status(office, ref)
    office.hub.world.edit(ref, "wes", body="Another.")
    fresh = GitHubTracker(office.client, Trust(), office.clock)
    office.hub.world.faults = lambda _, asked: Fault(403) if asked.endswith(path) else None
    with pytest.raises(UnavailableError, match=r"could not (read the edits|be read again)"):
        fresh.objection(ref, known)


def of_another(name: str = "octo/calc", number: int = 1, *, more: bool = False) -> Reply:
    page = {"hasNextPage": more, "endCursor": "1"}
    issue: dict[str, object] = {
        "number": number,
        "lastEditedAt": None,
        "includesCreatedEdit": False,
        "editor": None,
        "userContentEdits": {"pageInfo": page, "nodes": []},
    }
    return Reply(content={"data": {"repository": {"nameWithOwner": name, "issue": issue}}})


def edits_by(told: FaultyServer) -> Edits:
    client = Client(told.url, lambda _: "t", RetrySettings(attempts=1))
    try:
        act = GitHubTracker(client, Trust(users=("wes",)), FrozenClock()).authorising_act(
            IssueRef("octo/calc", 1), "mulligan"
        )
    finally:
        client.close()
    assert act
    return act.edits


LABELED = {
    "id": 5,
    "event": "labeled",
    "created_at": "2025-03-04T12:00:00Z",
    "actor": {"login": "wes"},
    "label": {"name": "mulligan"},
}


@pytest.mark.parametrize("reply", [of_another("octo/other"), of_another(number=2)])
def test_the_history_of_another_issue_is_an_error(reply: Reply) -> None:
    with (
        faulty_server([Reply(content=[LABELED]), reply]) as told,
        pytest.raises(UnavailableError, match="gave the history of"),
    ):
        edits_by(told)


def test_a_history_without_end_is_an_error() -> None:
    with faulty_server([Reply(content=[LABELED]), of_another(more=True)]) as told:
        with pytest.raises(UnavailableError, match="too often"):
            edits_by(told)
        assert len(told.seen) == MAX_PAGES_OF_EDITS + 1


def test_a_change_that_was_taken_out_of_the_history_still_shows() -> None:
    changed = b'"lastEditedAt": "2025-03-04T12:00:01Z"'
    text = of_another().body.replace(b'"lastEditedAt": null', changed)
    with faulty_server([Reply(content=[LABELED]), Reply(raw=text)]) as told:
        assert [edit.actor for edit in edits_by(told).by_strangers] == [""]


def test_github_enterprise_has_graphql_beside_its_rest_api() -> None:
    with faulty_server([Reply(content=[LABELED]), of_another()]) as told:
        client = Client(f"{told.url}/api/v3", lambda _: "t", RetrySettings(attempts=1))
        tracker = GitHubTracker(client, Trust(users=("wes",)), FrozenClock())
        act = tracker.authorising_act(IssueRef("octo/calc", 1), "mulligan")
        client.close()
    assert act
    assert act.edits == Edits()
    assert told.asked[1] == "POST /api/graphql"
