"""What an issue waits for is explained, and circles are found."""

import pytest

from mulligan.domain.eligibility import (
    cycle_reason,
    dependency_reason,
    find_cycle,
    ignored_reason,
    with_line,
)
from mulligan.domain.issue import IssueRef

pytestmark = pytest.mark.pure
THIS = IssueRef("octo/calc", 7)


GONE = "#99 was deleted or transferred"


@pytest.mark.parametrize(
    ("ref", "is_pull_request", "left", "said"),
    [
        ("octo/calc#3", False, "", "It waits until #3 is closed."),
        ("octo/else#3", False, "", "It waits until octo/else#3 is closed."),
        ("octo/calc#3", True, "", "It waits until the pull request #3 is merged or closed."),
        ("octo/calc#3", False, "Not now.", "#3, on which Mulligan stopped work (Not now)"),
    ],
)
def test_waiting_is_explained(ref: str, is_pull_request: bool, left: str, said: str) -> None:  # noqa: FBT001
    told = dependency_reason(IssueRef.parse(ref), THIS, is_pull_request=is_pull_request, left=left)
    assert said in told


@pytest.mark.parametrize(
    ("waits", "way"),
    [
        ({}, []),
        ({7: (1,)}, []),
        ({7: (1,), 1: (7,)}, [1]),
        ({7: (1,), 1: (2,), 2: (1, 7)}, [1, 2]),
        ({7: (1, 2), 1: (3,), 3: (1,), 2: (7,)}, [2]),
        ({7: (1,), 1: (2,), 2: (1,)}, []),
        ({7: (1,)} | {each: (each % 6 + 1,) for each in range(1, 7)}, []),
        ({7: (21,)} | {each: (each + 1,) for each in range(21, 60)} | {60: (7,)}, []),
    ],
)
def test_a_circle_is_found_however_long(waits: dict[int, tuple[int, ...]], way: list[int]) -> None:
    def named(ref: IssueRef) -> tuple[IssueRef, ...]:
        return tuple(IssueRef("octo/calc", each) for each in waits.get(ref.number, ()))

    assert [ref.number for ref in find_cycle(THIS, named)] == way


def test_a_circle_is_told_in_its_order() -> None:
    way = [IssueRef("octo/calc", 3), IssueRef("octo/else", 4)]
    assert cycle_reason(THIS, way).startswith(
        "It waits for #3, which waits for octo/else#4, which waits for this one; remove"
    )


@pytest.mark.parametrize(
    ("missing", "itself", "said"),
    [
        ([], False, ""),
        (
            [],
            True,
            "Mulligan ignores a dependency: it cannot wait for itself.",
        ),
        ([99], False, f"Mulligan ignores a dependency: {GONE}."),
        ([98, 99], False, f"Mulligan ignores a dependency: #98, {GONE}."),
        (
            [99],
            True,
            f"Mulligan ignores a dependency: it cannot wait for itself; {GONE}.",
        ),
    ],
)
def test_what_is_not_waited_for_is_told(missing: list[int], itself: bool, said: str) -> None:  # noqa: FBT001
    refs = [IssueRef("octo/calc", each) for each in missing]
    assert ignored_reason(THIS, refs, itself=itself) == said


def test_the_line_that_says_so_is_told() -> None:
    assert with_line("It waits.", "") == "It waits. GitHub lists it as a blocker."
    assert with_line("It waits.", "Blocked by #3") == 'It waits. Its text says: "Blocked by #3".'
