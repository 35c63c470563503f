"""A commit says for what and for whom it is, whatever the words of the issue."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.policy import CommitSettings
from mulligan.domain.issue import IssueRef
from mulligan.implement.commit_message import (
    CommitText,
    commit_text,
    identity_of,
    merge_text,
    message_of,
    sanitised,
)
from mulligan.text.redact import Redactor
from world.attempts import REF, case

pytestmark = pytest.mark.pure

PLAIN = CommitSettings(name="Mull", email="m@example.org")
SIGNED = CommitSettings(name="Mull", email="m@example.org", signoff=True)
MULL = "Signed-off-by: Mull <m@example.org>"
ADA = "Co-authored-by: ada <ada@users.noreply.github.com>"


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (CommitText("S", ""), PLAIN, "S\n"),
        (CommitText("S", "Body."), PLAIN, "S\n\nBody.\n"),
        (CommitText("S", "Body.", "ada"), PLAIN, f"S\n\nBody.\n\n{ADA}\n"),
        (CommitText("S", "", "ada"), PLAIN, f"S\n\n{ADA}\n"),
        (CommitText("S", "Body.\n\nIssue: x", "ada"), PLAIN, f"S\n\nBody.\n\nIssue: x\n{ADA}\n"),
        (CommitText("S", "Issue: x"), SIGNED, f"S\n\nIssue: x\n{MULL}\n"),
        (CommitText("S", "", "a[bot]"), PLAIN, f"S\n\n{ADA.replace('ada', 'a[bot]')}\n"),
        (CommitText("S", "", "a>\nSigned-off-by: x"), PLAIN, "S\n"),
        (CommitText("two\nlines", "Issue: x"), PLAIN, "two lines\n\nIssue: x\n"),
    ],
)  # fmt: skip
def test_a_message_has_its_trailers_together(
    text: CommitText, settings: CommitSettings, message: str
) -> None:
    assert message_of(text, settings) == message


def test_what_no_message_can_hold_is_dropped() -> None:
    assert sanitised("a\0b\x1b[31m\nc\ud800 ü\u202e") == "ab[31m\nc ü"


def test_author_and_committer_are_those_of_the_policy() -> None:
    plain = {
        "GIT_AUTHOR_NAME": "Mull",
        "GIT_AUTHOR_EMAIL": "m@example.org",
        "GIT_COMMITTER_NAME": "Mull",
        "GIT_COMMITTER_EMAIL": "m@example.org",
    }
    dated = {"GIT_AUTHOR_DATE": "1 +0000", "GIT_COMMITTER_DATE": "1 +0000"}
    assert identity_of(replace_name(PLAIN, "Mu\x1bll")) == plain
    assert identity_of(PLAIN, "1 +0000") == plain | dated


def replace_name(settings: CommitSettings, name: str) -> CommitSettings:
    return settings.model_copy(update={"name": name})


def test_a_merge_names_both_branches() -> None:
    message = message_of(merge_text(REF, "main"), SIGNED)
    assert message == f"Merge main into {REF.branch}\n\nIssue: {REF}\n{MULL}\n"


def titled(title: str) -> str:
    found = case()
    return commit_text(replace(found, issue=replace(found.issue, title=title)), Redactor()).subject


@pytest.mark.parametrize(
    ("title", "subject"),
    [
        ("Dates crash", "Dates crash (#12)"),
        ("two\nlines", "two lines (#12)"),
        ("", "Work on octo/almanac#12 (#12)"),
        ("x" * 200, "x" * 93 + "… (#12)"),
        ("Regression, fixes #3, cc @ann", "Regression, fixes `#3`, cc `@ann` (#12)"),
    ],
)
def test_the_commit_is_named_after_the_issue(title: str, subject: str) -> None:
    assert titled(title) == subject


def test_the_commit_says_for_what_and_for_whom_it_is() -> None:
    text = commit_text(case(), Redactor())
    assert text.body == "Issue: octo/almanac#12\nMulligan-Attempt: 1"
    assert text.co_author == "ann"


@given(st.text(), st.integers(1, 10**9))
def test_a_subject_is_one_line_of_at_most_100_characters(title: str, number: int) -> None:
    found = case()
    issue = replace(found.issue, ref=IssueRef("octo/almanac", number), title=title)
    subject = commit_text(replace(found, issue=issue), Redactor()).subject
    assert len(subject) <= 100
    assert len(subject.splitlines()) == 1
    assert subject.endswith(f"(#{number})")


def test_a_title_of_the_change_is_the_subject_and_does_nothing() -> None:
    text = commit_text(case(), Redactor(), "fix: sums for @ann and #3", has_number=False)
    assert text.subject == "fix: sums for `@ann` and `#3`"
    assert commit_text(case(), Redactor(), "Add it up").subject == "Add it up (#12)"
