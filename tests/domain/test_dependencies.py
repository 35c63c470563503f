"""What an issue says it waits for."""

import pytest

from mulligan.domain.dependencies import MOST, dependencies, waiting_for
from mulligan.domain.issue import IssueRef

pytestmark = pytest.mark.pure
THIS = IssueRef("octo/calc", 7)


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
    assert len(dependencies(text, THIS)) == MOST


@pytest.mark.parametrize(
    ("ref", "returns", "left", "said"),
    [
        ("octo/calc#3", False, "", "It waits until #3 is closed."),
        ("octo/else#3", False, "", "It waits until octo/else#3 is closed."),
        ("octo/calc#3", True, "", "waits for this one in turn; take `Depends on` out of one"),
        ("octo/calc#3", False, "Not now.", "#3, which is open, but Mulligan has left it (Not now)"),
    ],
)
def test_waiting_is_explained(ref: str, returns: bool, left: str, said: str) -> None:  # noqa: FBT001
    assert said in waiting_for(IssueRef.parse(ref), THIS, returns=returns, left=left)
