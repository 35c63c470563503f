"""Every defence that docs/security.md tells of is shown by a test that is there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "security.md"
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGE.read_text())
    assert named
    for file, test in named:
        path = TESTS.parent / file if file.startswith("tests/") else TESTS / "attacks" / file
        assert f"def {test}(" in path.read_text(), f"{file}::{test}"


def test_every_threat_of_the_table_names_a_test() -> None:
    table = PAGE.read_text().partition("| threat | defence | shown by |\n|---|---|---|\n")[2]
    rows = table.partition("\n\n")[0].splitlines()
    assert rows
    assert [row for row in rows if not NAMED.search(row.rpartition(" | ")[2])] == []
