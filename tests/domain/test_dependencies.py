"""What an issue says it waits for."""

import pytest

from mulligan.domain.eligibility import (
    MAX_DEPENDENCIES,
    cycle_reason,
    dependencies,
    dependency_reason,
    depends_on_itself,
    find_cycle,
    ignored_reason,
)
from mulligan.domain.issue import IssueRef

pytestmark = pytest.mark.pure
THIS = IssueRef("octo/calc", 7)


GONE = "#99 was deleted or transferred"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", []),
        ("Depends on #3", ["octo/calc#3"]),
        ("It is BLOCKED BY: #3.", ["octo/calc#3"]),
        ("depends on #3, #4 and other/one#5, and #6", [*"346", "other/one#5"]),
        ("- Depends on #3\n- Blocked by #4", [*"34"]),
        ("Depends on #3 and on luck #9", ["octo/calc#3"]),
        ("Depends on #7, #3, #3", ["octo/calc#3"]),
        ("Depends on 3", []),
        ("See #3", []),
        ("Depends on #0", []),
        ("> Depends on #3\n", []),
        ("`Depends on #3`", []),
        ("```\nDepends on #3\n```\nDepends on #4", ["octo/calc#4"]),
        ("~~~\nDepends on #3", []),
    ],
)
def test_issues_are_named(text: str, named: list[str]) -> None:
    wanted = {name if "/" in name else f"octo/calc#{name}" for name in named}
    assert {str(ref) for ref in dependencies(text, THIS)} == wanted


def test_there_is_an_end_to_what_is_waited_for() -> None:
    text = "Depends on " + ", ".join(f"#{number}" for number in range(10, 40))
    assert len(dependencies(text, THIS)) == MAX_DEPENDENCIES


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
        (
            [99],
            True,
            f"Mulligan ignores a dependency: it cannot wait for itself; {GONE}.",
        ),
    ],
)
def test_what_is_not_waited_for_is_told(missing: list[int], itself: bool, said: str) -> None:  # noqa: FBT001
    refs = [IssueRef("octo/calc", each) for each in missing]
    assert ignored_reason(THIS, refs, itself=itself).endswith(said)
    assert depends_on_itself("Depends on #7", THIS)
    assert not depends_on_itself("Depends on #8", THIS)
