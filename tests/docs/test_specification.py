"""docs/specification.md has every rule that is cited, and every rule names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "specification.md"
SKIPPED = {"fixtures", "golden", "__pycache__", PAGE.name, Path(__file__).name}
"""Files that hold other programs' words, and the two that name ids as examples."""
RULE = re.compile(r"^### ([A-Z]+-\d+)$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")
ID = re.compile(r"\b[A-Z]{2,}-\d+\b")
CITED = re.compile(r"\((?:[A-Z]{2,}-\d+(?:, )?)+\)")
OUTSIDE = (
    re.compile(r"\b(?:SPEC|DESIGN)\b"),
    re.compile(r"\(([A-Z]\d{1,2}[a-z]?)(?:, [A-Z]?\d{1,2}[a-z]?)*\)"),
    re.compile(r"\b(?:findings|facts)/[\w.-]+"),
)
"""Forms of citations of pages that are not in the repository."""
NAMED_PAGE = re.compile(r"(?:\bdocs/|\b[Ss]ee `?)([\w-]+\.md)\b")


def rules(page: str) -> dict[str, list[tuple[str, str]]]:
    """Give the tests that each rule of the page names, as file and perhaps function."""
    parts = RULE.split(page)
    return {
        rule: TEST.findall(text.partition("\nTests: ")[2])
        for rule, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def untested(page: str, root: Path = ROOT) -> list[str]:
    """List the rules without a test, and the tests that do not exist."""
    found = rules(page)
    missing = [rule for rule, tests in found.items() if not tests]
    named = {test for tests in found.values() for test in tests}
    return missing + sorted(
        f"{file}::{test}" for file, test in named if not exists(file, test, root)
    )


def exists(file: str, test: str, root: Path) -> bool:
    path = root / file
    return path.is_file() and (not test or f"def {test}(" in path.read_text())


def unknown(text: str, known: set[str]) -> set[str]:
    """Give the cited ids that no rule has: all in brackets, and those of a known topic anywhere."""
    topics = {rule.partition("-")[0] for rule in known}
    bracketed = {rule for group in CITED.findall(text) for rule in ID.findall(group)}
    named = {rule for rule in ID.findall(text) if rule.partition("-")[0] in topics}
    return (bracketed | named) - known


def outside(text: str) -> list[str]:
    """Give what a text cites of pages that are not in the repository."""
    return [found[0] for form in OUTSIDE for found in form.finditer(text)]


def sources() -> list[Path]:
    """List all that could cite a rule."""
    found = [file for top in ("src", "tests") for file in (ROOT / top).rglob("*.py")]
    found += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "schemas").glob("*.json")]
    found += [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.*"), ROOT / "Makefile"]
    return sorted(file for file in found if not SKIPPED & set(file.parts))


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    return {str(file.relative_to(ROOT)): file.read_text() for file in sources()}


def test_every_id_that_is_cited_is_a_rule(said: dict[str, str]) -> None:
    known = set(rules(PAGE.read_text()))
    wrong = {file: unknown(text, known) for file, text in said.items()}
    assert {file: ids for file, ids in wrong.items() if ids} == {}


def test_every_rule_names_a_test_that_exists() -> None:
    assert untested(PAGE.read_text()) == []


def test_no_rule_stands_twice() -> None:
    ids = RULE.findall(PAGE.read_text())
    assert len(ids) == len(set(ids)) > 80


def test_nothing_outside_the_repository_is_cited(said: dict[str, str]) -> None:
    cited = {file: outside(text) for file, text in said.items()}
    assert {file: forms for file, forms in cited.items() if forms} == {}


def test_every_page_that_the_code_names_exists(said: dict[str, str]) -> None:
    pages = {page.name for place in ("", "docs", ".github") for page in (ROOT / place).glob("*.md")}
    named = {
        (file, page)
        for file, text in said.items()
        if file.startswith("src")
        for page in NAMED_PAGE.findall(text)
        if page not in pages
    }
    assert named == set()


def test_a_wrong_citation_is_found() -> None:
    known = {"LABEL-1", "LABEL-2"}
    assert unknown("as on the labels (LABEL-1, LABEL-3); in UTF-8", known) == {"LABEL-3"}
    assert unknown("LABEL-9 says so, beside (LABLE-1)", known) == {"LABEL-9", "LABLE-1"}


def test_a_rule_without_a_test_is_found() -> None:
    page = "### A-1\n\nText.\n\nTests: `tests/test_shape.py::test_gone`\n\n### A-2\n\nText.\n"
    assert untested(page) == ["A-2", "tests/test_shape.py::test_gone"]


@pytest.mark.parametrize(
    "text",
    [
        "as it should (" + "SP" + "EC A2)",
        "(" + "A4)",
        "(" + "T1, 17)",
        "see " + "findings/words.md",
    ],
)
def test_a_citation_of_another_page_is_found(text: str) -> None:
    assert outside(text)
