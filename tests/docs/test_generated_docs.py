"""What docs/ repeats from the code is up to date (`make docs`)."""

import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generate() -> Mapping[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))


def test_generated_files_are_up_to_date_and_every_schema_is_one(
    generate: Mapping[str, Any],
) -> None:
    files: Mapping[Path, str] = generate["generated"](ROOT)
    stale = [file for file, text in files.items() if file.read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"
    assert {*(ROOT / "docs" / "schemas").rglob("*.json")} <= set(files)


def test_a_page_without_the_lines_of_a_part_is_refused(
    generate: Mapping[str, Any], tmp_path: Path
) -> None:
    with_parts: Callable[[Path, Mapping[str, str]], str] = generate["with_parts"]
    page = tmp_path / "page.md"
    page.write_text("<!-- generated: keys -->\n")
    with pytest.raises(ValueError, match=r"page\.md needs the lines .* <!-- end of keys -->"):
        with_parts(page, {"keys": "a"})
