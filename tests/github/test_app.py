"""A GitHub App has a token for each repository, for an hour, and a new one in time."""

from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from github_simulator.app import running
from github_simulator.records import App
from mulligan.config.operator import AppSettings, Trust
from mulligan.domain.errors import DeniedError, MisconfiguredError
from mulligan.github.app import AppCredentials
from mulligan.github.client import Client, RetrySettings
from mulligan.github.tracker import GitHubTracker
from world.app_keys import JumpingClock, key_pair
from world.repositories import make_remote
from world.simulated_github import World

ONE, TWO, ELSEWHERE = "acme/one", "acme/two", "other/three"


@dataclass
class Office:
    """A GitHub with an app on two repositories, and the app's credentials."""

    world: World
    url: str
    clock: JumpingClock
    made: list[AppCredentials] = field(default_factory=list[AppCredentials])

    def credentials(self, key: str = "", app: int | str = 7) -> AppCredentials:
        settings = AppSettings(id=app, private_key=SecretStr(key or key_pair()[0]))
        self.made.append(AppCredentials(self.url, settings, self.clock, RetrySettings(attempts=1)))
        return self.made[-1]

    def tokens_made(self) -> int:
        return sum(one.path.endswith("/access_tokens") for one in self.world.requests)


@pytest.fixture
def office(tmp_path: Path) -> Generator[Office]:
    clock = JumpingClock()
    world = World(lambda: clock.time - clock.behind)
    bare = make_remote(tmp_path / "remote.git", {"a.txt": "a"})
    for name in (ONE, TWO, ELSEWHERE):
        world.add_repository(name, bare, collaborators={"mull[bot]": "write"}, private=True)
    user = world.add_user("mull[bot]", "Bot")
    world.apps.add(App(7, user, key_pair()[1], 70, frozenset({ONE, TWO})))
    with running(world) as url:
        made = Office(world, url, clock)
        yield made
        for credentials in made.made:
            credentials.close()


def test_a_token_is_good_for_its_repository_alone(office: Office) -> None:
    credentials = office.credentials()
    client = Client(office.url, credentials.api_token, RetrySettings(attempts=1))
    tracker = GitHubTracker(client, Trust(), office.clock, credentials.login)
    assert tracker.repository(ONE).name == ONE
    assert tracker.repository(TWO).name == TWO
    assert credentials.git_token(ONE) == credentials.api_token(ONE) != credentials.api_token(TWO)
    stolen = Client(office.url, lambda _: credentials.api_token(ONE), RetrySettings(attempts=1))
    with pytest.raises(DeniedError, match="not accessible by integration"):
        GitHubTracker(stolen, Trust(), office.clock).repository(TWO)
    assert tracker.own_login() == "mull[bot]"
    client.close()
    stolen.close()


def test_a_token_is_made_anew_ten_minutes_before_it_runs_out(office: Office) -> None:
    credentials = office.credentials()
    first = credentials.git_token(ONE)
    office.clock.time += timedelta(minutes=49)
    assert credentials.git_token(ONE) == first
    office.clock.time += timedelta(minutes=2)
    second = credentials.git_token(ONE)
    assert second != first
    office.clock.time += timedelta(hours=30)
    assert credentials.git_token(ONE) not in {first, second}
    assert office.tokens_made() == 3


def test_a_repository_without_the_app_is_named(office: Office) -> None:
    with pytest.raises(DeniedError, match=f"The app is not installed on {ELSEWHERE}; install"):
        office.credentials().git_token(ELSEWHERE)


def test_an_app_that_github_does_not_know_is_refused(office: Office) -> None:
    with pytest.raises(DeniedError, match="could not be decoded"):
        office.credentials(app="Iv1.unknown").git_token(ONE)


def test_a_clock_that_is_a_little_ahead_does_no_harm(office: Office) -> None:
    credentials = office.credentials()
    office.clock.behind = timedelta(seconds=45)
    assert credentials.git_token(ONE)


def test_a_key_that_is_none_is_named(office: Office, tmp_path: Path) -> None:
    with pytest.raises(MisconfiguredError, match=r"not in PEM form; fix github\.app"):
        office.credentials(key="no key").git_token(ONE)
    missing = AppSettings(id=7, private_key_file=tmp_path / "gone.pem")
    credentials = AppCredentials(office.url, missing, office.clock)
    office.made.append(credentials)
    with pytest.raises(MisconfiguredError, match=r"fix github\.app\.private_key_file"):
        credentials.git_token(ONE)


def test_the_key_may_stand_in_a_file(office: Office, tmp_path: Path) -> None:
    place = tmp_path / "key.pem"
    place.write_text(key_pair()[0])
    settings = AppSettings(id=7, private_key_file=place)
    credentials = AppCredentials(office.url, settings, office.clock)
    office.made.append(credentials)
    assert credentials.git_token(ONE).startswith("ghs_")
