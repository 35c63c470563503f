"""Every command that the documentation shows exists, and so does every link."""

import os
import re
from pathlib import Path

import pytest

from world.fork_server import run_forked

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / ".github").glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
COMMAND = re.compile(
    r"(?:\.venv/bin/)?\bmulligan ((?:debug )?(?:config |state |learnings (?=[a-z]))?[a-z]+)"
    r"((?: +(?:-{1,2}[a-z-]+|[^\s`]+))*)"
)
CODE = re.compile(r"`([^`\n]+)`|^\$? ?((?:\.venv/bin/)?mulligan .*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
ANCHOR = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
NAMED = re.compile(r'<a id="([^"]+)"></a>')
MAKE = re.compile(r"\bmake ((?:[a-z-]+ ?)+)")


def help_of(command: str) -> str:
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "200"}
    done = run_forked([*command.split(), "--help"], ROOT, environment)
    assert done.returncode == 0, f"there is no command {command}"
    return done.stdout


def shown() -> dict[str, set[str]]:
    """Give every command that a page shows, with its flags."""
    found = dict[str, set[str]]()
    for page in PAGES:
        for span, line in CODE.findall(page.read_text()):
            for command, rest in COMMAND.findall(span or line):
                flags = {word for word in rest.split() if word.startswith("--")}
                found.setdefault(command, set()).update(flags)
    return found


def test_every_command_and_flag_that_is_shown_exists() -> None:
    commands = shown()
    assert {"once", "work", "status", "inspect", "demo", "simulate"} <= set(commands)
    for command, flags in commands.items():
        text = help_of(command)
        assert [flag for flag in flags if flag not in text] == [], command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_make_targets_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    shown = re.findall(r"`(make [^`]+)`|^\$? ?(make .*)$", text, re.MULTILINE)
    code = [span or line for span, line in shown]
    named = {word for words in MAKE.findall("\n".join(code)) for word in words.split()}
    assert named <= set(targets)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors_are_unique(page: Path) -> None:
    text = page.read_text()
    named = NAMED.findall(text)
    assert len({*named} - {slug(each) for each in HEADING.findall(text)}) == len(named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_a_page_lead_to_a_heading(page: Path) -> None:
    for file, anchor in ANCHOR.findall(page.read_text()):
        target = page.parent / file if file else page
        assert anchor in anchors(target.read_text()), anchor


def anchors(page: str) -> set[str]:
    """Give the anchors of a page; GitHub numbers equal headings."""
    slugs = [slug(each) for each in HEADING.findall(page)]
    return {*NAMED.findall(page)} | {
        name if (count := slugs[:place].count(name)) == 0 else f"{name}-{count}"
        for place, name in enumerate(slugs)
    }


def slug(heading: str) -> str:
    """Name a heading as GitHub does in its address."""
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")
