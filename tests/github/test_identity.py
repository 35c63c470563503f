"""Whom Mulligan acts as: a person, an app, or the token that GitHub gives to an Action."""

from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.domain.errors import UnavailableError
from mulligan.github.credentials import ACTIONS_LOGIN, Identity
from world.stories import case
from world.trackers import BOT, TrackerEnvironment, case_for, tracker_environment

APP, APPS_TOKEN = "calc-helper[bot]", "token-of-the-app"


def test_a_persons_token_tells_its_login(office: TrackerEnvironment) -> None:
    assert Identity(office.client).login() == BOT
    assert office.requests() == ["GET /user"]


def test_a_login_is_asked_for_once(office: TrackerEnvironment) -> None:
    identity = Identity(office.client)
    assert identity.login() == identity.login()
    assert len(office.requests()) == 1


def test_an_apps_token_tells_its_slug_by_graphql(tmp_path: Path) -> None:
    with tracker_environment(tmp_path, token=APPS_TOKEN) as office:
        office.hub.world.add_user(APP, "Bot", APPS_TOKEN)
        assert Identity(office.client).login() == APP
        assert office.requests() == ["GET /user", "POST /graphql"]


def test_the_token_of_an_action_need_not_say_who_it_is(tmp_path: Path) -> None:
    with tracker_environment(tmp_path, token=APPS_TOKEN) as office:
        office.hub.world.add_user(ACTIONS_LOGIN, "Bot", APPS_TOKEN)
        assert Identity(office.client).login() == ACTIONS_LOGIN


def test_without_graphql_the_token_of_an_action_need_not_say_who_it_is(tmp_path: Path) -> None:
    with tracker_environment(tmp_path, token=APPS_TOKEN) as office:
        office.hub.world.add_user(ACTIONS_LOGIN, "Bot", APPS_TOKEN)
        office.hub.world.graphql = False
        assert Identity(office.client).login() == ACTIONS_LOGIN


def test_graphql_that_was_there_and_is_not_found_may_come_back(tmp_path: Path) -> None:
    with tracker_environment(tmp_path, token=APPS_TOKEN) as office:
        office.hub.world.add_user(APP, "Bot", APPS_TOKEN)
        assert Identity(office.client).login() == APP
        office.hub.world.graphql = False
        with pytest.raises(UnavailableError, match="GraphQL"):
            Identity(office.client).login()


def test_a_login_that_cannot_be_read_now_is_not_guessed(office: TrackerEnvironment) -> None:
    identity = Identity(office.client)
    office.hub.world.faults = lambda _, path: Fault(403 if path == "/user" else 502)
    with pytest.raises(UnavailableError):
        identity.login()
    office.hub.world.faults = None
    assert identity.login() == BOT


def test_an_app_knows_its_own_comments(tmp_path: Path) -> None:
    with tracker_environment(tmp_path, token=APPS_TOKEN) as office:
        world = office.hub.world
        world.add_user(APP, "Bot", APPS_TOKEN)
        world.set_role("acme/tools", APP, "write")
        ref = office.ready()
        told = case_for(case(), ref)
        assert office.writer.update_status(told) == office.writer.update_status(told)
        assert [comment.author.login for comment in world.comments_of(ref)] == [APP]
        assert office.tracker.read(ref).comments == ()
