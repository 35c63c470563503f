"""Who is trusted: the matrix of TRUST-1, and what cannot be read counts against somebody."""

from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from github_simulator.world import Fault
from mulligan.config.operator import Trust
from mulligan.domain.errors import UnconfirmedError
from mulligan.domain.issue import Permission
from mulligan.github.authorization import TrustReader, last_label_event, permission_of
from mulligan.github.shapes import Account, EventShape, Label, PermissionShape
from world.simulated import NAME
from world.trackers import TrackerEnvironment

ROLES: list[tuple[str | None, str, Permission]] = [
    ("admin", "admin", Permission.ADMIN),
    ("maintain", "write", Permission.MAINTAIN),
    ("write", "write", Permission.WRITE),
    ("triage", "read", Permission.TRIAGE),
    ("read", "read", Permission.READ),
    ("none", "none", Permission.NONE),
    ("security-champion", "write", Permission.WRITE),
    ("issue-sorter", "read", Permission.READ),
    (None, "admin", Permission.ADMIN),
    (None, "push", Permission.WRITE),
    (None, "pull", Permission.READ),
    ("write", "push", Permission.WRITE),
    (None, "emperor", Permission.NONE),
    ("", "", Permission.NONE),
]


@pytest.mark.pure
@pytest.mark.parametrize(("role", "permission", "found"), ROLES)
def test_a_role_is_read_and_a_custom_one_by_its_base(
    role: str | None, permission: str, found: Permission
) -> None:
    assert permission_of(PermissionShape(permission=permission, role_name=role)) is found


def event(number: int, kind: str = "labeled", label: str | None = "mulligan") -> EventShape:
    return EventShape(
        id=number,
        event=kind,
        created_at=datetime(2025, 3, 4, tzinfo=UTC),
        label=Label(name=label) if label else None,
    )


@pytest.mark.pure
def test_the_latest_labelling_is_the_one_with_the_highest_id() -> None:
    events = [event(5), event(9), event(7), event(11, label="bug"), event(12, "unlabeled")]
    found = last_label_event([*events, event(13, label=None)], "Mulligan")
    assert found
    assert found.id == 9
    assert last_label_event([], "mulligan") is None


def reader(office: TrackerEnvironment, trust: Trust | None = None) -> TrustReader:
    return TrustReader(office.client, trust or Trust(), office.clock)


@pytest.mark.parametrize("login", ["ada", "mia", "wes"])
def test_those_who_may_write_are_trusted(login: str, office: TrackerEnvironment) -> None:
    assert not reader(office).refusal(NAME, Account(login=login))


@pytest.mark.parametrize(("login", "role"), [("tri", "triage"), ("rea", "read"), ("zoe", "read")])
def test_those_who_may_not_write_are_not(login: str, role: str, office: TrackerEnvironment) -> None:
    refusal = reader(office).refusal(NAME, Account(login=login))
    assert refusal
    assert f"{login} has the permission {role}" in refusal


def test_somebody_whom_github_does_not_find_is_asked_for_again(office: TrackerEnvironment) -> None:
    nobody = Account(login="nobody/../../ada")
    refusal = reader(office).refusal(NAME, nobody)
    assert refusal
    assert "could not be read: GitHub does not find" in refusal
    with pytest.raises(UnconfirmedError, match="the permission of nobody"):
        reader(office).check(NAME, nobody)


def test_an_author_whom_github_does_not_find_for_a_day_is_not_trusted(
    office: TrackerEnvironment,
) -> None:
    written, nobody = office.clock.now(), Account(login="nobody")
    office.clock.time += timedelta(hours=23)
    with pytest.raises(UnconfirmedError):
        reader(office).check_act(NAME, nobody, written)
    office.clock.time += timedelta(hours=1)
    assert reader(office).check_act(NAME, nobody, written)
    assert not reader(office).check_act(NAME, Account(login="wes"), written)


def test_the_operator_may_ask_for_more_or_for_less(office: TrackerEnvironment) -> None:
    strict = reader(office, Trust(permission=Permission.ADMIN))
    assert strict.refusal(NAME, Account(login="mia"))
    assert not strict.refusal(NAME, Account(login="ada"))
    lenient = reader(office, Trust(permission=Permission.TRIAGE))
    assert not lenient.refusal(NAME, Account(login="tri"))


def test_who_is_listed_is_trusted_whatever_they_may_do(office: TrackerEnvironment) -> None:
    listed = reader(office, Trust(users=("Zoe", "robot[bot]")))
    assert not listed.refusal(NAME, Account(login="zoe"))
    assert not listed.refusal(NAME, Account(login="robot[bot]", type="Bot"))
    assert office.requests() == []


@pytest.mark.parametrize(
    "bot", [Account(login="wes[bot]"), Account(login="wes", type="Bot")], ids=str
)
def test_bots_are_not_trusted_unless_they_are_listed(
    bot: Account, office: TrackerEnvironment
) -> None:
    refusal = reader(office).refusal(NAME, bot)
    assert refusal
    assert "trust.users" in refusal
    assert office.requests() == []


def test_an_account_that_is_gone_is_not_trusted(office: TrackerEnvironment) -> None:
    assert reader(office).refusal(NAME, None)


UNREADABLE = [
    Fault(500),
    Fault(403, '{"message": "Must have push access to view collaborator permission."}'),
    Fault(200, "<html>", content_type="text/html"),
    Fault(200, '{"role_name": "admin"}'),
    Fault(200, "[]"),
    Fault(cut=True),
]


@pytest.mark.parametrize("fault", UNREADABLE, ids=str)
def test_what_cannot_be_read_counts_against_somebody(
    fault: Fault, office: TrackerEnvironment
) -> None:
    office.hub.world.faults = lambda _, __: fault
    with capture_logs() as logs:
        refusal = reader(office).refusal(NAME, Account(login="ada"))
    assert refusal
    assert "could not be read" in refusal
    assert [each["reason"] for each in logs] == [refusal]


def test_a_permission_is_asked_for_once_a_minute(office: TrackerEnvironment) -> None:
    found, wes = reader(office), Account(login="wes")
    assert not found.refusal(NAME, wes)
    office.hub.world.set_role(NAME, "wes", "read")
    office.clock.time += timedelta(seconds=59)
    assert not found.refusal(NAME, Account(login="Wes"))
    assert len(office.requests()) == 1
    office.clock.time += timedelta(seconds=1)
    assert found.refusal(NAME, wes)


def test_a_permission_that_could_not_be_read_is_asked_for_again(office: TrackerEnvironment) -> None:
    found, wes = reader(office), Account(login="wes")
    office.hub.world.faults = lambda _, __: Fault(404)
    assert found.refusal(NAME, replace_login(wes, "nobody"))
    office.hub.world.faults = lambda _, __: Fault(500)
    assert found.refusal(NAME, wes)
    office.hub.world.faults = None
    assert not found.refusal(NAME, wes)


def replace_login(who: Account, login: str) -> Account:
    return who.model_copy(update={"login": login})
