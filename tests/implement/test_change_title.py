"""A change is named in the form of its repository, by the agent if its title fits (PR-11)."""

from dataclasses import replace

import pytest

from mulligan.domain.issue import Issue, IssueRef
from mulligan.implement.change_title import (
    PLAIN,
    Form,
    TitleStyle,
    fitting_title,
    issue_title,
    kind_of,
    style_of,
    title_of,
    title_request,
)

pytestmark = pytest.mark.pure

ISSUE = Issue(IssueRef("octo/calc", 12), "Adding subtracts", "", "ada", "", is_open=True)
BUG = replace(ISSUE, labels=frozenset({"type: bug"}))
WISH = replace(ISSUE, labels=frozenset({"enhancement"}))

# Five conventions of repositories, by the newest subjects of their base branch.
HISTORIES = {
    Form.PLAIN: ["add tax", "fix the thing", "wip", "Tidy", "more tests", "oops"],
    Form.CONVENTIONAL: [
        "feat(cart): add tax (#31)",
        "fix: round down",
        "chore(deps): bump x",
        "Merge branch 'x'",
        'Revert "feat: y"',
        "docs!: say how",
        "ci: cache",
        "Oops",
    ],
    Form.GITMOJI: ["✨ Add tax", ":bug: Round down", "📝 Say how", "♻️ Move", "🔥 Drop", "⬆ Bump"],
    Form.AREA: ["cart: add tax", "net/http: fix a race", "a, b: tidy", "all: move", "x/y.go: z"],
    Form.CAPITALISED: ["Add tax", "Round down", "Say how (#4)", "Move it", "drop it", "Bump x"],
}
STYLES = {form: style_of(subjects) for form, subjects in HISTORIES.items()}


@pytest.mark.parametrize("form", Form)
def test_the_form_is_that_of_most_subjects(form: Form) -> None:
    assert STYLES[form].form is form


def test_a_short_or_mixed_history_has_no_form() -> None:
    assert style_of([]) == style_of(["fix: a", "fix: b"]) == PLAIN
    assert style_of(["fix: a", "fix: b", "c", "d", "e"]) == PLAIN


def test_signs_are_written_as_most_write_them() -> None:
    assert not STYLES[Form.GITMOJI].has_codes
    codes = style_of([":bug: a", ":sparkles: b", ":memo: c", ":fire: d", "✨ e"])
    assert (codes.form, codes.has_codes) == (Form.GITMOJI, True)
    assert issue_title(WISH, codes) == ":sparkles: Adding subtracts"


@pytest.mark.parametrize(
    ("form", "fix", "feature"),
    [
        (Form.PLAIN, "", ""),
        (Form.AREA, "", ""),
        (Form.CAPITALISED, "", ""),
        (Form.CONVENTIONAL, "fix: adding subtracts", "feat: adding subtracts"),
        (Form.GITMOJI, "🐛 Adding subtracts", "✨ Adding subtracts"),
    ],
)
def test_without_a_proposal_the_title_is_the_issues(form: Form, fix: str, feature: str) -> None:
    assert title_of(BUG, "", STYLES[form]) == fix
    assert title_of(WISH, "", STYLES[form]) == feature


@pytest.mark.parametrize(
    ("form", "proposed", "title"),
    [
        (Form.PLAIN, "add the numbers.", "add the numbers"),
        (Form.PLAIN, " Add the numbers (#12) ", "Add the numbers"),
        (Form.CAPITALISED, "add the numbers", "Add the numbers"),
        (Form.CONVENTIONAL, "fix(cart): add the numbers", "fix(cart): add the numbers"),
        (Form.CONVENTIONAL, "Refactor!: add the numbers", "refactor: add the numbers"),
        (Form.CONVENTIONAL, "Add the numbers", "fix: add the numbers"),
        (Form.CONVENTIONAL, "HTTP answers are read", "fix: HTTP answers are read"),
        (Form.CONVENTIONAL, "cart: add the numbers", "fix: cart: add the numbers"),
        (Form.GITMOJI, "Add the numbers", "🐛 Add the numbers"),
        (Form.GITMOJI, "♻️ Move the numbers", "♻ Move the numbers"),
        (Form.AREA, "cart: add the numbers", "cart: add the numbers"),
    ],
)
def test_an_agents_title_takes_the_form(form: Form, proposed: str, title: str) -> None:
    assert fitting_title(proposed, BUG, STYLES[form]) == title


@pytest.mark.parametrize(
    "proposed",
    [
        "",
        "short",
        "12345678",
        "x" * 73,
        "Add the numbers\nand more",
        "Add the numbers for @ann",
        "Add the numbers, fixes #3",
        "Add the numbers, see GH-3",
        "Add the numbers of acme/tools#3",
        "Read https://example.org first",
        "Read www.example.org first",
        "Add the numbers [skip ci]",
        "Add <!-- mulligan:text --> numbers",
        "Add\u200b the numbers",
        "Add\u202e the numbers",
        "Add \x1b[31mthe numbers",
        "Add  the   numbers",
    ],
)
@pytest.mark.parametrize("form", Form)
def test_a_title_that_does_not_fit_gives_way(form: Form, proposed: str) -> None:
    style = STYLES[form]
    assert fitting_title(proposed, BUG, style) == ""
    assert title_of(BUG, proposed, style) == title_of(BUG, "", style)


def test_a_title_that_is_too_long_with_its_type_or_lacks_its_area_gives_way() -> None:
    assert fitting_title("x" * 70, BUG, STYLES[Form.CONVENTIONAL]) == ""
    assert fitting_title("Add the numbers", BUG, STYLES[Form.AREA]) == ""


RULES = {
    "type-enum": [2, "always", ["bugfix", "chore", "new", "not a name"]],
    "scope-enum": [2, "always", ["cart"]],
    "header-max-length": [2, "always", 50],
}


def test_commitlint_decides_on_types_scopes_and_length() -> None:
    style = style_of(["no form"] * 9, {"rules": RULES})
    assert (style.form, style.types, style.most) == (
        Form.CONVENTIONAL,
        ("bugfix", "chore", "new"),
        50,
    )
    assert fitting_title("new(cart): add numbers", BUG, style) == "new(cart): add numbers"
    assert fitting_title("new(tax): add numbers", BUG, style) == "new: add numbers"
    assert issue_title(BUG, style) == "chore: adding subtracts"
    assert len(issue_title(replace(BUG, title="y" * 99), style)) == 50
    only = style_of([], {"rules": {"type-enum": [1, "always", ["new"]]}})
    assert issue_title(BUG, only) == "new: adding subtracts"


@pytest.mark.parametrize(
    "rules",
    [
        None,
        "x",
        {"type-enum": [0, "always", ["x"]]},
        {"type-enum": [2, "never", ["x"]], "header-max-length": [2, "always", 900]},
        {"type-enum": "x", "header-max-length": [2]},
        {"type-enum": [2, "always", [7]]},
    ],
)
def test_rules_that_are_off_or_odd_leave_the_usual_types(rules: object) -> None:
    style = style_of([], {"rules": rules})
    assert style.form is Form.CONVENTIONAL
    assert "fix" in style.types
    assert style.most in {72, 100}


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("[Bug]: Adding subtracts", "fix: adding subtracts"),
        ("Bug report: Adding subtracts", "fix: adding subtracts"),
        ("feat(cart): adds", "feat(cart): adds"),
        ("README lies", "fix: README lies"),
        ("A sum is wrong", "fix: a sum is wrong"),
        ("Sums  for\n@ann", "fix: sums for @ann"),
        ("", ""),
    ],
)
def test_an_issues_title_becomes_a_conventional_one(title: str, wanted: str) -> None:
    assert issue_title(replace(BUG, title=title), STYLES[Form.CONVENTIONAL]) == wanted


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ((), "fix"),
        (("C-bug",), "fix"),
        (("kind/feature",), "feat"),
        (("Documentation",), "docs"),
        (("enhancement", "bug"), "fix"),
        (("debugging", "p1"), "fix"),
    ],
)
def test_labels_say_what_an_issue_asks_for(labels: tuple[str, ...], kind: str) -> None:
    assert kind_of(labels) == kind


@pytest.mark.parametrize("form", Form)
def test_the_agent_is_told_the_form(form: Form) -> None:
    told = title_request(STYLES[form])
    assert "at most 72 characters" in told
    assert ("fix" in told) is (form is Form.CONVENTIONAL)
    assert STYLES[form].has_number is (form in {Form.PLAIN, Form.CAPITALISED})


def test_a_plain_style_is_the_default() -> None:
    assert TitleStyle() == PLAIN
