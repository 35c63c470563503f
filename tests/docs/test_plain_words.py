"""Pages and code use plain words, pages have sound tables, and no path of a developer's machine."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", ".github/CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
CODE = sorted((ROOT / "src/mulligan").rglob("*.py"))
TEMPLATES = sorted((ROOT / "src/mulligan").rglob("*.html"))
MARKDOWN = MarkdownIt("commonmark").enable("table")

INSTEAD = {
    r"mend(?:s|ed|ing)?": "fix",
    r"set-up lines?": "setup command",
    r"nor": "or",
    r"neither": "not …, and not …",
    r"shall": "will, must",
    r"whoever": "name the person",
    r"in vain": "say what does not happen",
    r"for ever": "always",
    r"at the latest": "within",
    r"as of now": "now",
    r"obeys|obeyed|heeds?": "runs, accepts",
    r"with a person|a person is asked": "needs human review",
    r"is left alone|was left alone|left alone": "skipped, stopped",
    r"the key, please|not this way|say which it is": "a label of two words",
    r"or never was": "may have been deleted",
    r"is put off|are put off|was put off": "delayed",
}
WORDS = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
QUOTED = re.compile(r"`[^`\n]*`|\"Shall I[^\"]*\"")

MACHINE = re.compile(r"(?<![\w.$}])/(?:home|Users|work|tmp/pytest[\w-]*)/\w+")

LONGEST = 35
"""Words of a sentence; 25 is the aim."""

SENTENCE = re.compile(r"(?<=[.!?:;])\s+")


def test_words_are_plain() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {word[0]!r}"
        for file in (*PAGES, *CODE, *TEMPLATES)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        for word in WORDS.finditer(QUOTED.sub("", line))
    ]
    assert found == [], INSTEAD


def test_no_path_of_a_developers_machine() -> None:
    found = {file: MACHINE.findall(file.read_text()) for file in (*PAGES, *CODE)}
    assert {file: paths for file, paths in found.items() if paths} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_rendered_with_all_their_cells(page: Path) -> None:
    text = page.read_text()
    tokens = MARKDOWN.parse(text)
    shown = {
        number
        for token in tokens
        if token.type in {"table_open", "fence", "code_block"} and token.map
        for number in range(*token.map)
    }
    for number, line in enumerate(text.splitlines()):
        if line.startswith("|"):
            assert number in shown, f"line {number + 1} is not in a table"
            if not is_code(tokens, number):
                width = len(re.findall(r"(?<!\\)\|", line)) - 1
                assert width == columns(tokens, number), f"line {number + 1}"


def is_code(tokens: list[Token], line: int) -> bool:
    return any(
        token.type in {"fence", "code_block"} and token.map and line in range(*token.map)
        for token in tokens
    )


def columns(tokens: list[Token], line: int) -> int:
    start = next(
        place
        for place, token in enumerate(tokens)
        if token.type == "table_open" and token.map and line in range(*token.map)
    )
    row = tokens[start:]
    end = next(place for place, token in enumerate(row) if token.type == "tr_close")
    return sum(token.type == "th_open" for token in row[:end])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    long = [sentence for sentence in sentences(page) if len(sentence.split()) > LONGEST]
    assert long == []


def sentences(page: Path) -> Iterator[str]:
    inside = [token for token in MARKDOWN.parse(page.read_text()) if token.type == "inline"]
    for token in inside:
        text = "".join(
            " " if part.type in {"softbreak", "hardbreak"} else part.content
            for part in token.children or ()
            if part.type in {"text", "code_inline", "softbreak", "hardbreak"}
        )
        yield from SENTENCE.split(text)
