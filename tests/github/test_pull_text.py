"""What people write in a pull request stays; Mulligan's part of it is brought up to date (PR-7)."""

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.github.marks import MARKER
from mulligan.github.pull_text import OwnText, PullText, new_text, opened_by, updated_text

pytestmark = pytest.mark.pure

REF = IssueRef("octo/calc", 12)
FIRST = new_text(OwnText("Fix it", "Closes #12\n\nOne attempt."), REF, "abc123")
DRAFT = new_text(OwnText("Not verified: Fix it", "Closes #12"), REF, "abc123")
SECOND = new_text(OwnText("Fix it well", "Closes #12\n\nTwo attempts."), REF, "abc123")


def update(title: str, body: str, wanted: str = "Fix it well") -> PullText:
    return updated_text(PullText(title, body), OwnText(wanted, "Closes #12\n\nTwo attempts."), REF)


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("Mind the tax.\n\n", ""), ("", "\n\nSigned-off-by: Ann")]
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_only_the_marked_part_changes(before: str, after: str, ends: str) -> None:
    body = f"{before}{FIRST.body}{after}".replace("\n", ends)
    assert update("Fix it", body) == PullText("Fix it well", f"{before}{SECOND.body}{after}")


@pytest.mark.parametrize(
    ("now", "wanted", "then"),
    [
        ("Ours", "Fix it well", "Ours"),
        ("Not verified: Ours", "Fix it well", "Ours"),
        ("Not verified: Ours", "Not verified: Fix it", "Not verified: Ours"),
        (" Fix it ", "Fix it well", "Fix it well"),
    ],
)
def test_a_title_that_a_person_changed_stays(now: str, wanted: str, then: str) -> None:
    found = update(now, FIRST.body, wanted)
    assert (found.title, found.kept) == (then, False)


def test_a_persons_title_stays_after_any_number_of_updates() -> None:
    once = update("Ours", FIRST.body)
    assert update("Ours", once.body, "Another") == once
    assert update("Fix it", once.body).title == "Fix it well"


def test_an_edit_inside_the_part_keeps_it_and_the_title_is_still_updated() -> None:
    edited = FIRST.body.replace("One attempt.", "One attempt, by us.")
    found = update("Fix it", edited)
    assert (found.title, found.kept) == ("Fix it well", True)
    assert "One attempt, by us." in found.body
    again = update("Fix it well", found.body, "Another")
    assert (again.title, again.kept) == ("Another", True)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "Our own words.",
        FIRST.body.partition("\n")[2],
        FIRST.body.rpartition("\n")[0],
        "\n".join(reversed(FIRST.body.splitlines())),
    ],
)
def test_without_both_marks_all_is_the_persons(body: str) -> None:
    assert update("Fix it", body) == PullText("Fix it", body, kept=True)


def test_a_draft_whose_text_a_person_took_over_is_no_longer_called_unverified() -> None:
    assert update(DRAFT.title, "Ours").title == "Fix it"


def test_marks_that_an_agent_wrote_do_not_end_the_part() -> None:
    forged = new_text(OwnText("Fix it", f"Closes #12\n\n{FIRST.body}\n\nMore."), REF, "abc123")
    assert update("Fix it", forged.body) == SECOND


@pytest.mark.parametrize(("body", "by"), [(FIRST.body, "abc123"), ("Ours", None)])
def test_a_text_names_the_installation_that_wrote_it(body: str, by: str | None) -> None:
    assert opened_by(body) == by


@pytest.mark.parametrize("sums", ["", " title=0123 text=4567"])
def test_the_installation_is_read_from_older_texts_too(sums: str) -> None:
    assert opened_by(f"Closes #1\n\n{MARKER}pull-request octo/hello#1 by=ab12{sums} -->") == "ab12"
    assert opened_by("Closes #1") is None


TEMPLATE = "## Summary\n\n## Checklist\n\n- [ ] Tests\n"
ONE = OwnText("Fix it", "All of it.", "The first change.", "Beside it.")
TWO = OwnText("Fix it", "All of it, again.", "The second change.", "Beside it, again.")


def test_the_template_stands_before_mulligans_part_and_takes_the_description() -> None:
    body = new_text(ONE, REF, "abc123", TEMPLATE).body
    before, _, part = body.partition(f"{MARKER}text")
    assert before.startswith("## Summary\n\n<!-- mulligan:description octo/calc#12")
    assert "\nThe first change.\n" in before
    assert before.endswith("## Checklist\n\n- [ ] Tests\n\n")
    assert "Beside it." in part
    assert "All of it" not in body
    assert opened_by(body) == "abc123"


def test_an_update_replaces_description_and_part_and_keeps_what_people_ticked() -> None:
    body = new_text(ONE, REF, "abc123", TEMPLATE).body.replace("- [ ]", "- [x]")
    found = updated_text(PullText("Fix it", body), TWO, REF)
    wanted = new_text(TWO, REF, "abc123", TEMPLATE).body.replace("- [ ]", "- [x]")
    assert found == PullText("Fix it", wanted)
    assert updated_text(found, TWO, REF) == found


def test_a_description_that_a_person_edited_stays_and_the_part_goes_on() -> None:
    body = new_text(ONE, REF, "abc123", TEMPLATE).body.replace("The first change.", "Ours.")
    found = updated_text(PullText("Fix it", body), TWO, REF)
    assert (found.kept, "Ours." in found.body) == (False, True)
    assert "Beside it, again." in found.body
    assert "The second change." not in found.body


def test_without_the_description_in_the_template_the_part_has_it() -> None:
    body = new_text(ONE, REF, "abc123", TEMPLATE).body
    without = body[body.index("## Checklist") :]
    assert "All of it, again." in updated_text(PullText("Fix it", without), TWO, REF).body
    assert "All of it." in new_text(ONE, REF, "abc123", "## Other\n").body


@pytest.mark.parametrize("template", ["", "<!-- only a comment -->", "x\n" * 8000])
def test_a_template_that_is_empty_or_too_long_leaves_mulligans_part_alone(template: str) -> None:
    own = OwnText("Fix it", "y" * 59_000, "", "z" * 59_000)
    assert new_text(own, REF, "abc123", template) == new_text(own, REF, "abc123")


def test_every_text_is_changed_before_it_is_compared_with_what_github_shows() -> None:
    own = OwnText("a title", "a text", "a description", "a rest")
    assert own.mapped(str.upper) == OwnText("A TITLE", "A TEXT", "A DESCRIPTION", "A REST")
