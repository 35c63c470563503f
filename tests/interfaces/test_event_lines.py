"""A line of `mulligan events`: the same fields for every kind of event, as the schema says."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from mulligan.domain.events import (
    EVENT_TYPES,
    AgentFinished,
    Decided,
    Event,
    IssueSeen,
    PublishStarted,
    RecordedEvent,
    StoodDown,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Retry
from mulligan.interfaces.cli.events import (
    FIELDS,
    event_json,
    event_text,
    name_of,
    schema,
)
from mulligan.text.redact import Redactor
from world.attempts import check
from world.ledgers import completed, events

pytestmark = pytest.mark.pure

DOCS = Path(__file__).parents[2] / "docs"
REF = IssueRef("acme/tools", 3)
NOON = datetime(2026, 11, 1, 12, 0, 5, tzinfo=UTC)
PASSED = check("pytest", passed=True)
VALID = Draft202012Validator(schema())


def recorded(event: Event, attempt: int | None = 2) -> RecordedEvent:
    return RecordedEvent(seq=17, at=NOON, issue=REF, epoch=1, attempt=attempt, event=event)


@given(events())
def test_every_event_is_as_the_schema_says(event: Event) -> None:
    line = json.loads(event_json(recorded(event), Redactor()))
    assert list(line) == list(FIELDS)
    assert line["name"] == event.kind
    assert "kind" not in line["payload"]
    VALID.validate(line)  # pyright: ignore[reportUnknownMemberType] - it has no types


def test_a_line_holds_no_secret_and_nothing_that_steers() -> None:
    token = "ghp_" + "a1B2" * 9
    line = event_json(
        recorded(IssueSeen(title=f"x {token} hunter2-hunter2\n\x1b[31m\u202e\u2028")),
        (Redactor(("hunter2-hunter2",))),
    )
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["payload"]["title"] == "x [redacted] [redacted]\n\x1b[31m\u202e\u2028"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            completed(REF, 2),
            "attempt_completed  Attempt 2 ended. Checks failed: 1 of 3 checks failed",
        ),
        (
            Decided(decision=Retry(reason="Again.")),
            "decided  Decision: make another attempt. Again.",
        ),
        (
            AgentFinished(exit_code=0, duration_ms=5000),
            "agent_finished  The agent ended with exit code 0 after 5s.",
        ),
        (StoodDown(reason="a\nb"), "stood_down  Mulligan stopped work on the issue. a b"),
        (
            PublishStarted(head_sha="c0ffee" * 6 + "1234"),
            "publish_started  Mulligan pushes the commit c0ffeec0ff.",
        ),
    ],
)
def test_people_read_one_line(event: Event, words: str) -> None:
    assert event_text(recorded(event)) == f"2026-11-01 12:00:05  17  {REF}  attempt 2  {words}"


def test_an_event_before_any_attempt_names_none() -> None:
    line = event_text(recorded(IssueSeen(title="Mend it"), attempt=None))
    assert line == f"2026-11-01 12:00:05  17  {REF}  issue_seen  Mulligan read the issue: Mend it"


def test_the_page_tells_of_every_event_and_each_of_its_fields() -> None:
    page = (DOCS / "events.md").read_text()
    for kind in EVENT_TYPES:
        assert f"### `{name_of(kind)}`" in page
        for name in set(kind.model_fields) - {"kind"}:
            assert f"| `{name}` |" in page.partition(f"### `{name_of(kind)}`")[2]
