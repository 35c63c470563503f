"""What docs/ repeats from the code is up to date (`make docs`)."""

import runpy
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))
FILES: Mapping[Path, str] = GENERATE["generated"](ROOT)
with_parts: Callable[[Path, Mapping[str, str]], str] = GENERATE["with_parts"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_generated_file_is_up_to_date(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == FILES[file], "run: make docs"


def test_every_schema_is_generated() -> None:
    assert {*(ROOT / "docs" / "schemas").rglob("*.json")} <= set(FILES)


def test_a_page_without_the_lines_of_a_part_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- generated: keys -->\n")
    with pytest.raises(ValueError, match=r"page\.md needs the lines .* <!-- end of keys -->"):
        with_parts(page, {"keys": "a"})
