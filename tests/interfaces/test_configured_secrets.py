"""The secrets of a configuration are known to whatever writes, and to whoever hears of events."""

from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.domain.events import Event, StoodDown
from mulligan.domain.issue import IssueRef
from mulligan.domain.status import IssueStatus
from mulligan.interfaces.bootstrap.container import with_listeners
from mulligan.interfaces.bootstrap.redaction import redactor_of

TOKEN = "a-token-that-looks-like-words"


def operator(place: Path) -> Operator:
    return Operator.model_validate(
        {
            "repositories": [{"name": "a/b"}],
            "agent": {"command": ["agent"]},
            "github": {"token_file": str(place)},
        }
    )


def test_the_token_of_a_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    found = redactor_of(operator(tmp_path / "token"), {})
    assert found.text(f"It said {TOKEN}.") == "It said [redacted]."


def test_a_file_that_cannot_be_read_holds_none(tmp_path: Path) -> None:
    assert redactor_of(operator(tmp_path / "token"), {}).text(TOKEN) == TOKEN


def test_whoever_hears_of_events_hears_no_secret(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    told, settings = list[Event](), operator(tmp_path / "token")

    def listen(_: IssueStatus, event: Event) -> None:
        told.append(event)

    with with_listeners(settings, {}, listen, redactor_of(settings, {})) as tell:
        tell(IssueStatus(IssueRef("a/b", 1)), StoodDown(reason=f"It said {TOKEN}."))
    assert told == [StoodDown(reason="It said [redacted].")]
