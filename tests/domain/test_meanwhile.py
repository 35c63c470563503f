"""What people wrote after an attempt began: how it is found, and the sentence about it (PR-9)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mulligan.domain.events import AgentStarted, AttemptStarted, Event, IssueSeen
from mulligan.domain.issue import Comment, Edit, Issue, IssueRef
from mulligan.domain.meanwhile import (
    RETRY,
    Given,
    Missed,
    changed_parts,
    describe_missed,
    digests_of,
    find_missed,
    given_to,
)

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 4, 12, 0, tzinfo=UTC)
ISSUE = Issue(IssueRef("octo/calc", 7), "Old title", "Old text.", url="https://x.org/7")
KNOWN = Comment("wes", "Known.", NOW, 1)
GIVEN = Given("Old title", ISSUE.text_sha256, digests_of([KNOWN]))
SEEN = IssueSeen(title="Old title", text_sha256=ISSUE.text_sha256)
LATER = replace(ISSUE, title="New title")


def started(number: int, comments: dict[str, str] | None) -> AttemptStarted:
    return AttemptStarted(attempt=number, number=number, worker="w", comments=comments)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], None),
        ([SEEN, started(1, None)], None),
        ([SEEN, started(2, digests_of([KNOWN]))], GIVEN),
        ([started(1, {}), SEEN, started(2, digests_of([KNOWN]))], GIVEN),
        (
            [
                SEEN,
                AgentStarted(agent="x"),
                started(2, digests_of([KNOWN])),
                IssueSeen(title="New", text_sha256="f"),
            ],
            GIVEN,
        ),
        ([started(2, {})], Given("", "", {})),
    ],
)
def test_an_attempt_was_given_the_text_and_comments_before_it(
    events: list[Event], expected: Given | None
) -> None:
    assert given_to(events, 2) == expected


@pytest.mark.parametrize(
    ("given", "now", "expected"),
    [
        (GIVEN, ISSUE, ()),
        (replace(GIVEN, text_sha256=""), LATER, ()),
        (GIVEN, LATER, ("title",)),
        (GIVEN, replace(ISSUE, body="New."), ("text",)),
        (GIVEN, replace(LATER, body="New."), ("title", "text")),
    ],
)
def test_title_and_text_are_compared(given: Given, now: Issue, expected: tuple[str, ...]) -> None:
    assert changed_parts(given, now) == expected


def test_new_and_edited_comments_and_the_last_editor_are_found() -> None:
    new, edited = replace(KNOWN, id=2), replace(KNOWN, body="Said otherwise.")
    edits = [Edit("ada", NOW, "title"), Edit("mia", NOW, "title"), Edit("ada", NOW, "text")]
    assert find_missed(GIVEN, ISSUE, [KNOWN], edits) == Missed(ISSUE)
    assert find_missed(GIVEN, LATER, [new, edited], edits) == Missed(
        LATER, (new,), (edited,), (("title", "mia"),)
    )
    assert find_missed(GIVEN, LATER, [], []).changed == (("title", ""),)


def by(who: str, number: int) -> Comment:
    return Comment(who, "Words.", NOW, number)


@pytest.mark.parametrize(
    ("missed", "said"),
    [
        (
            Missed(ISSUE, (by("wes", 2),)),
            "wes commented (https://x.org/7#issuecomment-2)",
        ),
        (
            Missed(ISSUE, (by("wes", 2),), (by("ada", 3),)),
            (
                "wes commented (https://x.org/7#issuecomment-2) and "
                "ada edited a comment (https://x.org/7#issuecomment-3)"
            ),
        ),
        (Missed(ISSUE, changed=(("text", ""),)), "somebody edited the text"),
        (
            Missed(ISSUE, changed=(("title", "ada"), ("text", "ada"))),
            "ada edited the title and the text",
        ),
        (
            Missed(ISSUE, changed=(("title", "ada"), ("text", "mia"))),
            "ada edited the title and mia edited the text",
        ),
    ],
)
def test_the_sentence_names_who_wrote_what(missed: Missed, said: str) -> None:
    assert describe_missed(missed, RETRY) == (
        f"After this work began, {said}. The work does not take that into account. To start again "
        "with it, write `/mulligan retry`."
    )


@pytest.mark.parametrize(
    ("count", "end"), [(4, "1 more comment followed"), (5, "2 more comments followed")]
)
def test_three_comments_are_linked_and_the_others_counted(count: int, end: str) -> None:
    said = describe_missed(Missed(ISSUE, tuple(by("wes", n) for n in range(count))), RETRY)
    assert said.count("wes commented (") == 3
    assert f"#issuecomment-2) and {end}. The work" in said


def test_nothing_is_said_if_nobody_wrote() -> None:
    assert describe_missed(Missed(ISSUE), RETRY) == ""
