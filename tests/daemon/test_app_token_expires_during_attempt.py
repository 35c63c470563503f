"""An attempt may take longer than the token of an app lasts that it began with."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pydantic import SecretStr

from github_simulator.records import App, IdsAndTimes
from mulligan.config.operator import AppSettings, Trust
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import Stage
from mulligan.github.app import AppCredentials
from mulligan.github.client import Client, RetrySettings
from mulligan.github.comments import StatusComments
from mulligan.github.tracker import GitHubTracker
from mulligan.github.writer import GitHubWriter
from world.app_keys import JumpingClock, key_pair
from world.behaviours import AgentInput
from world.simulated import NAME
from world.workers import fix_the_bug, worker_environment


def test_an_attempt_of_90_minutes_is_published_with_a_new_token(tmp_path: Path) -> None:
    clock, quick = JumpingClock(), RetrySettings(attempts=1)
    settings = AppSettings(id=7, private_key=SecretStr(key_pair()[0]))
    with worker_environment(tmp_path) as here:
        world, url = here.desk.hub.world, here.desk.hub.url
        world.stamps = IdsAndTimes(clock.now, world.stamps.ids)
        app = world.add_user("mull[bot]", "Bot")
        world.set_role(NAME, "mull[bot]", "write")
        world.apps.add(App(7, app, key_pair()[1], 70, frozenset({NAME})))
        credentials = AppCredentials(url, settings, clock, quick)
        client = Client(url, credentials.api_token, quick)

        def take_long(given: AgentInput) -> None:
            clock.time += timedelta(minutes=90)
            fix_the_bug(given)

        tracker = GitHubTracker(client, Trust(), here.desk.clock, credentials.login)
        writer = GitHubWriter(client, tracker.own_login, StatusComments(here.desk.clock))
        context = replace(here.context(take_long), tracker=tracker, writer=writer)
        ref, first = here.desk.ready(), credentials.git_token(NAME)
        done = Worker(context).visit(ref)
        assert (done.attempts, done.problem) == (1, "")
        assert here.ledger.status(ref).stage is Stage.REVIEW
        assert credentials.git_token(NAME) != first
        assert {comment.author.login for comment in world.comments_of(ref)} == {"mull[bot]"}
        client.close()
        credentials.close()
