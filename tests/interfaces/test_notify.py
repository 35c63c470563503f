"""People elsewhere hear that they are needed; nothing waits for them to."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from mulligan.config.operator import Notify, Occasion
from mulligan.domain.command import Verb
from mulligan.domain.events import CommandReceived, Decided, Escalated, Event
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Retry, WaitForBudget
from mulligan.domain.status import IssueStatus
from mulligan.interfaces.notify import WebhookNotifier, message_of, open_notifier
from world.tls import Answers, Authority, serve_tls
from world.webhook_receiver import webhook_receiver

STATUS = IssueStatus(IssueRef("octo/calc", 12))
NOON = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
URL = "https://github.com/octo/calc/issues/12#issuecomment-9"
ASKED = Escalated(reason="All <!channel> 3 attempts failed.", comment=URL)
PAUSED = CommandReceived(key="comment:9", command=Verb.PAUSE, actor="ada", at=NOON)
BUDGET = Decided(decision=WaitForBudget(reason="The day's budget is used up."))


def settings(url: str, *events: Occasion) -> Notify:
    return Notify(url=SecretStr(url), events=events or tuple(Occasion))


@pytest.mark.parametrize(
    ("event", "occasion", "words"),
    [
        (ASKED, "escalated", f": All &lt;!channel&gt; 3 attempts failed. {URL}"),
        (PAUSED, "paused", "octo/calc#12: ada paused it."),
        (BUDGET, "budget", "octo/calc#12 waits: The day's budget is used up."),
    ],
)
def test_what_is_told_reads_in_slack(event: Event, occasion: str, words: str) -> None:
    message = message_of(STATUS, event)
    assert message
    assert (message["event"], message["issue"]) == (occasion, "octo/calc#12")
    assert words in message["text"]


def test_of_everything_else_nobody_is_told() -> None:
    assert message_of(STATUS, Decided(decision=Retry(reason="It is red."))) is None
    assert message_of(STATUS, PAUSED.model_copy(update={"command": Verb.RETRY})) is None


def test_a_message_is_sent_again_until_it_is_taken() -> None:
    with webhook_receiver(503, 429) as (url, heard):
        hook = WebhookNotifier(settings(url), waits=(0.01, 0.01))
        with hook.running():
            hook.on_event(STATUS, ASKED)
            until = time.monotonic() + 120
            while len(heard) < 3:
                assert time.monotonic() < until
                time.sleep(0.01)
    assert [each["event"] for each in heard] == ["escalated"] * 3


def test_a_certificate_that_is_not_trusted_is_named_with_the_fix(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    authority, heard = Authority(tmp_path), list[str]()

    class Hears(Answers):
        def parse_request(self) -> bool:
            parsed = super().parse_request()
            heard.append(self.command)
            return parsed

    with serve_tls(authority.certificate(), Hears) as url:
        for bundle in (None, authority.ca_file):
            with open_notifier(settings(url), bundle) as hook:
                assert hook
                hook.on_event(STATUS, ASKED)
    assert heard == ["POST"]
    assert (
        "The certificate of notify.url is signed by an authority that this machine does not trust;"
        " add the certificates of that authority to the system's certificates, or set SSL_CERT_FILE"
        in capfd.readouterr().out
    )


def test_what_was_not_asked_for_is_not_sent_and_the_end_waits_for_the_rest() -> None:
    with webhook_receiver() as (url, heard), open_notifier(settings(url, Occasion.PAUSED)) as hook:
        assert hook
        hook.on_event(STATUS, ASKED)
        hook.on_event(STATUS, PAUSED)
        until = time.monotonic() + 120
        while not heard:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert [each["event"] for each in heard] == ["paused"]


def test_an_address_that_is_away_blocks_nobody_and_is_not_told(
    capfd: pytest.CaptureFixture[str],
) -> None:
    hook = WebhookNotifier(settings("http://127.0.0.1:9/secret"), waits=(60.0,))
    started = time.monotonic()
    with hook.running():
        for _ in range(150):
            hook.on_event(STATUS, ASKED)
    assert time.monotonic() - started < 50
    said = capfd.readouterr()
    assert "notification_not_sent" in said.out
    assert "secret" not in said.out + said.err


def test_without_an_address_there_is_no_hook() -> None:
    with open_notifier(Notify()) as hook:
        assert hook is None


def test_an_address_is_one() -> None:
    with pytest.raises(ValidationError, match="begins with https://"):
        settings("ftp://example.org")
