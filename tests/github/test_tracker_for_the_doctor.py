"""What the doctor asks of GitHub: rights, switches, labels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.domain.errors import UnavailableError
from world.simulated import NAME
from world.trackers import BOT, TrackerEnvironment, tracker_environment


@pytest.fixture
def office(tmp_path: Path) -> Iterator[TrackerEnvironment]:
    with tracker_environment(tmp_path) as found:
        yield found


@pytest.mark.parametrize(("role", "may"), [("admin", True), ("write", True), ("triage", False)])
def test_what_the_account_may_do_is_read(
    *, role: str, may: bool, office: TrackerEnvironment
) -> None:
    office.hub.world.set_role(NAME, BOT, role)
    assert office.tracker.repository(NAME).may_push is may


def test_a_server_that_does_not_say_is_not_guessed_at(office: TrackerEnvironment) -> None:
    body = (
        f'{{"full_name": "{NAME}", "clone_url": "x", "default_branch": "main",'
        ' "has_issues": false}'
    )
    office.hub.world.faults = lambda _method, _path: Fault(200, body=body)
    facts = office.tracker.repository(NAME)
    assert (facts.may_push, facts.has_issues) == (None, False)


def test_issues_are_switched_on_and_labels_listed(office: TrackerEnvironment) -> None:
    assert office.tracker.repository(NAME).has_issues
    office.ready()
    assert "mulligan" in office.tracker.label_names(NAME)
    with pytest.raises(UnavailableError):
        office.tracker.label_names("acme/nowhere")


def test_a_locked_conversation_is_seen(office: TrackerEnvironment) -> None:
    ref = office.ready()
    assert not office.tracker.read(ref).is_locked
    office.hub.world.set_lock(ref, "wes", locked=True)
    assert office.tracker.read(ref).is_locked
