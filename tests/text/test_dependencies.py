"""What an issue says it waits for, as GitHub shows its text."""

import pytest

from mulligan.domain.issue import Issue, IssueRef
from mulligan.text.dependencies import MAX_DEPENDENCIES, dependencies, depends_on_itself

pytestmark = pytest.mark.pure
THIS = IssueRef("octo/calc", 7)
URL = "https://github.com/octo/calc/issues"


def issue(text: str) -> Issue:
    return Issue(THIS, "Add", text, url=f"{URL}/7")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", []),
        # At the beginning of a line or list item.
        ("Depends on #3", ["octo/calc#3"]),
        ("Add it.\nBLOCKED BY: #3.", ["3"]),
        ("- Depends on #3\n- [ ] Blocked by #4\n1. depends on #5", [*"345"]),
        ("**Depends on:** #3", ["3"]),
        ("**Depends on**: _#3_", ["3"]),
        ("__Blocked by #3__", ["3"]),
        ("## Depends on #3", ["3"]),
        ("⛔ Blocked by #3", ["3"]),
        ("Depends-On: #3", ["3"]),
        ("Depends\u00a0on\u00a0#3", ["3"]),
        ("Text<br>Depends on #3<br/>Blocked by #4", [*"34"]),
        ("<details><summary>More</summary>\n\nDepends on #3\n\n</details>", ["3"]),
        # Not elsewhere.
        ("I was blocked by #3 last week, no longer.", []),
        ("It is blocked by #3.", []),
        ("Not blocked by #3", []),
        ("This no longer depends on #3", []),
        ("See #3", []),
        ("Depends online #3", []),
        ('"Depends on #3" was wrong', []),
        # Several.
        ("depends on #3, #4 and other/one#5, and #6", [*"346", "other/one#5"]),
        ("Depends on #3 #4; #5 & #6", [*"3456"]),
        ("Depends on issues #3 and #4, PR #5", [*"345"]),
        ("Depends on #3 (the parser), #4", [*"34"]),
        ("Depends on #3 and on luck #9", ["3"]),
        ("Depends on #7, #3, #3", ["3"]),
        # What is no name.
        ("Depends on 3", []),
        ("Depends on #0", []),
        ("Depends on the weather, see #3", []),
        ("Depends on `#3`", []),
        # A list or paragraph below the words.
        ("Depends on:\n- #3\n- [ ] #4 first\n- the deploy\n- other/one#5", [*"34", "other/one#5"]),
        ("**Depends on**\n\n* #3\n  * #4\n* #5\n\nUnlike #6\n\n#8 is fixed", [*"345"]),
        ("- Blocked by:\n  - #3\n  - #4\n- #5 is another", [*"34"]),
        ("### Blocked by\n\n#3, #4\n\n### Notes\n\n#5", [*"34"]),
        ("Depends on:\n#3\n#4", [*"34"]),
        ("Depends on:\n\nNothing.\n\n- #3", []),
        ("Depends on:\n- nothing\n- #3", []),
        ("Depends on:\n- [x] #3\n- ~~#4~~\n- #5", ["5"]),
        ("- [x] Depends on:\n  - #3", []),
        # Addresses.
        (f"Depends on {URL}/3", ["3"]),
        (f"Blocked by: <{URL}/3>, {URL}/4#issuecomment-5 and {URL}/5?a=b.", [*"345"]),
        ("Depends on https://GitHub.com/other/one/pull/5/files", ["other/one#5"]),
        (f"Depends on [the parser]({URL}/3), [#4]({URL}/5)", [*"35"]),
        ("Depends on [the docs](https://example.org), #3", []),
        (f"Depends on:\n- {URL}/3\n- [x] {URL}/4", ["3"]),
        ("Depends on https://gitlab.com/octo/calc/issues/3", []),
        (f"Depends on {URL}", []),
        # Struck out, done, quoted, code, tables, images.
        ("- [x] Depends on #3\n- [X] Blocked by #4", []),
        ("- [x] Depends on #3\n  - Depends on #4", ["4"]),
        ("~~Depends on #3~~", []),
        ("- ~~Depends on #3~~\n- Depends on ~~#4,~~ #5", ["5"]),
        ("<del>Depends on #3</del>\n<s>Depends on #4</s>\nDepends on #5", ["5"]),
        ("[x] Depends on #3", []),
        ("> Depends on #3\n", []),
        ("`Depends on #3`", []),
        ("```\nDepends on #3\n```\nDepends on #4", ["octo/calc#4"]),
        ("~~~\nDepends on #3", []),
        ("    Depends on #3", []),
        ("| Depends on #3 |\n|---|\n| Depends on #4 |", []),
        ("Depends on #3<!-- Blocked by #4 --> ![x](y) \\#", ["3"]),
        ("Depends on OCTO/calc#7, Octo/Calc#3", ["3"]),
    ],
)
def test_issues_are_named(text: str, named: list[str]) -> None:
    wanted = {name if "/" in name else f"octo/calc#{name}" for name in named}
    assert {str(each.ref) for each in dependencies(issue(text))} == wanted


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Add.\n\n- [ ] **Depends on:** #3 (`a`), the parser", "Depends on: #3 (`a`), the parser"),
        ("## Blocked by\n\n- [#3]() the parser", "Blocked by #3 the parser"),
        ("Depends on #3" + " x" * 100, "Depends on #3" + " x" * 43 + "…"),
    ],
)
def test_the_line_that_says_so_is_quoted(text: str, line: str) -> None:
    assert [each.line for each in dependencies(issue(text))] == [line]


def test_without_an_address_of_its_own_an_issue_has_no_server() -> None:
    text = f"Depends on {URL}/3, #4"
    assert [each.ref.number for each in dependencies(Issue(THIS, "Add", text))] == [4]


def test_there_is_an_end_to_what_is_waited_for() -> None:
    text = "Depends on " + ", ".join(f"#{number}" for number in range(10, 40))
    assert len(dependencies(issue(text))) == MAX_DEPENDENCIES


def test_an_issue_that_waits_for_itself_is_told_apart() -> None:
    assert depends_on_itself(issue("Depends on #7"))
    assert not depends_on_itself(issue("Depends on #8"))
