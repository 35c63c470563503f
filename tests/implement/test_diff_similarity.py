"""Two attempts at nearly the same change are told apart from two different ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.config.policy import ContextLimits
from mulligan.domain.issue_context import PatternKind
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.prompt.context_sections import assemble
from mulligan.implement.prompt.diff import changed_lines
from mulligan.implement.prompt.patterns import (
    SIMILARITY_THRESHOLD,
    SKETCH_LINES,
    find_patterns,
    similarity,
    sketch_of,
)
from world.attempts import DIFF, attempt, case, check, red

pytestmark = pytest.mark.pure

SAME = "Nearly the same change was made in attempts {}."


def diff(*added: str, path: str = "a.py") -> bytes:
    body = "".join(f"+{line}\n" for line in added)
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{body}".encode()


def numbered(first: int, last: int) -> bytes:
    return diff(*(f"x{number} = {number}" for number in range(first, last)))


def test_only_what_is_added_or_removed_counts() -> None:
    assert list(changed_lines(DIFF)) == [
        ("src/almanac/importer.py", "-    return EPOCH + timedelta(days=days)"),
        ("src/almanac/importer.py", "+    # Dates before the epoch have negative days."),
        ("src/almanac/importer.py", "+    return EPOCH + timedelta(days=abs(days))"),
    ]
    assert list(changed_lines(diff("", "--- a/b", "++x"))) == [
        ("a.py", "+--- a/b"),
        ("a.py", "+++x"),
    ]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (numbered(0, 10), numbered(0, 10), True),
        (numbered(0, 10), numbered(0, 11), True),
        (numbered(0, 10), numbered(1, 10), True),
        (diff("if a:", "    b()"), diff("if a:", "        b()"), True),
        (diff("x = 1"), diff("x = 2"), False),
        (diff("x = 1"), diff("x = 1", path="b.py"), False),
        (numbered(0, 10), numbered(0, 5), False),
        (numbered(0, 1000), numbered(0, 990), True),
        (numbered(0, 1000), numbered(500, 1500), False),
        (b"", b"", False),
        (b"", diff("x"), False),
    ],
)
def test_changes_are_compared_by_their_lines(one: bytes, other: bytes, *, alike: bool) -> None:
    found = similarity(sketch_of(one), sketch_of(other))
    assert (found >= SIMILARITY_THRESHOLD) is alike
    assert found == similarity(sketch_of(other), sketch_of(one))


@given(st.integers(0, 400), st.integers(1, 400))
def test_a_sketch_is_small_and_its_estimate_is_fair(first: int, length: int) -> None:
    one, other = sketch_of(numbered(0, 400)), sketch_of(numbered(first, first + length))
    common = max(0, min(400, first + length) - first)
    assert max(len(one), len(other)) <= SKETCH_LINES
    assert similarity(one, other) == pytest.approx(common / max(400, first + length), abs=0.3)


TIMED_OUT = Outcome.AGENT_TIMED_OUT


def made(number: int, change: bytes, outcome: Outcome | None = None) -> WorkerResultMeta:
    """Make an attempt with this change; without an outcome, the same test fails each time."""
    meta = red(number) if outcome is None else attempt(number, outcome)
    return meta.model_copy(update={"sketch": sketch_of(change), "files_modified": ()})


@pytest.mark.parametrize(
    ("epoch", "told"),
    [
        ((made(1, DIFF), made(2, DIFF)), (SAME.format("1 and 2"),)),
        ((made(1, DIFF), made(2, numbered(0, 3)), made(3, DIFF)), (SAME.format("1 and 3"),)),
        ((made(1, DIFF), made(2, DIFF), made(3, DIFF)), (SAME.format("1, 2 and 3"),)),
        ((made(1, DIFF), made(2, DIFF), made(3, numbered(0, 3))), ()),
        ((made(1, DIFF), made(2, DIFF, Outcome.INTERRUPTED)), ()),
        ((made(1, b""), made(2, b"")), ()),
        ((made(1, DIFF, TIMED_OUT), made(2, DIFF, TIMED_OUT)), (SAME.format("1 and 2"),)),
        ((made(1, DIFF, TIMED_OUT), made(2, DIFF, Outcome.REJECTED)), ()),
        ((made(1, DIFF, TIMED_OUT), made(2, DIFF)), ()),
        ((made(1, DIFF), made(2, DIFF, Outcome.REJECTED)), ()),
    ],
)
def test_the_same_change_again_is_told(
    epoch: tuple[WorkerResultMeta, ...], told: tuple[str, ...]
) -> None:
    found = find_patterns(epoch)
    assert tuple(each.text for each in found if each.kind is PatternKind.SAME_CHANGE) == told


def test_the_same_change_is_no_reason_to_change_course_if_the_failures_are_not_known() -> None:
    killed = red(1, check("tests", exit_code=137)).model_copy(update={"sketch": sketch_of(DIFF)})
    again = killed.model_copy(update={"number": 2, "attempt": 2})
    assert not any(each.is_advice for each in find_patterns((killed, again)))


@pytest.mark.parametrize("fingerprint", ["one", "other"])
def test_another_failure_that_no_tool_names_is_progress(fingerprint: str) -> None:
    """A script that died: no finding, and only the fingerprint of its output."""
    first, second = (
        made(number, DIFF).model_copy(
            update={"checks": (check().model_copy(update={"fingerprint": mark}),)}
        )
        for number, mark in ((1, "one"), (2, fingerprint))
    )
    told = tuple(each.text for each in find_patterns((first, second)) if each.is_advice)
    same = ("The same failure occurred twice.", SAME.format("1 and 2"))
    assert told == (same if fingerprint == "one" else ())


def test_the_advice_is_no_part_of_what_is_quoted() -> None:
    text = assemble(case(made(1, DIFF), made(2, DIFF)), ContextLimits(), b"").text
    told = f"{SAME.format('1 and 2')} Take a different approach."
    assert f"occurred twice. Take a different approach.\n{told}" in text
    assert f"- {SAME.format('1 and 2')}" not in text
