"""In the practice, a person labels, comments, reviews and merges in a browser; Mulligan obeys."""

import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page

from world.browser import chromium
from world.fork_server import run_forked
from world.place import BIN

PLACE = "/acme/calculator"


@dataclass
class Practice:
    """`mulligan simulate`, and a browser that shows its pages."""

    home: Path
    url: str
    page: Page

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.url}{PLACE}{path}")
        return self.page

    def press(self, name: str) -> None:
        """Press a button; the page that follows is loaded."""
        self.page.get_by_role("button", name=name, exact=True).click()

    def make_pass(self, code: int) -> None:
        """Run the command that `simulate` shows."""
        command = ("once", "--config", "practice/mulligan.yml")
        done = run_forked(command, self.home, environment(self.home), str(BIN / "mulligan"))
        assert done.returncode == code, done.stdout + done.stderr

    def text(self, path: str) -> str:
        return " ".join(self.open(path).locator("main").inner_text().split())


def environment(home: Path) -> dict[str, str]:
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}


@contextmanager
def practice(home: Path) -> Generator[Practice]:
    """Start both, and stop them however the test ends."""
    command = [BIN / "mulligan", "simulate", "--port", "0", "--directory", "practice"]
    with (
        chromium() as browser,
        subprocess.Popen(
            command, cwd=home, env=environment(home), stdout=subprocess.PIPE, text=True
        ) as simulator,
    ):
        try:
            assert simulator.stdout
            address = re.compile(rf"  (http://\S+){PLACE}$")
            found = next(filter(None, map(address.match, simulator.stdout)))
            yield Practice(home, found[1], browser.new_page())
        finally:
            simulator.terminate()


@pytest.mark.deep
def test_labels_comments_reviews_and_merges_are_obeyed(tmp_path: Path) -> None:
    with practice(tmp_path) as here:
        leave_labelled(here, 1, 3)
        here.make_pass(3)
        assert "mulligan:review" in here.text("/issues/1")
        assert "mulligan:hitl" in here.text("/issues/3")
        assert "mulligan-bot" not in here.text("/issues/2")

        add_label(here, 6)
        comment(here, 3, "/mulligan fix: Round to ten digits.")
        request_changes(here, 7, "Comment on line 10 of tests/test_power.py", "Say why 1024.")
        here.make_pass(0)
        assert "mulligan:review" in here.text("/issues/6")
        assert "exact_sum" in here.text("/pull/8/files") + here.text("/pull/9/files")
        assert "From the review: Say why 1024." in here.text("/pull/7/files")

        here.open("/pull/7")
        here.press("Merge pull request")
        here.make_pass(0)
        assert "merged commit" in here.text("/pull/7")
        assert "mulligan-bot removed the label mulligan:review" in here.text("/issues/1")


def leave_labelled(here: Practice, *numbers: int) -> None:
    for number in {*range(1, 7)} - {*numbers}:
        here.open(f"/issues/{number}")
        here.press("Remove the label mulligan")


def add_label(here: Practice, number: int) -> None:
    here.open(f"/issues/{number}").get_by_label("Label to add").select_option("mulligan")
    here.press("Add label")


def comment(here: Practice, number: int, text: str) -> None:
    here.open(f"/issues/{number}").get_by_label("Add a comment").fill(text)
    here.press("Comment")


def request_changes(here: Practice, number: int, line: str, text: str) -> None:
    """Comment on a line, which is opened by keyboard, and submit."""
    page = here.open(f"/pull/{number}/files")
    page.locator(f"summary[aria-label='{line}']").press("Enter")
    page.get_by_role("textbox", name=line).fill(text)
    page.get_by_label("Request changes").check()
    here.press("Submit review")
    assert text in page.locator("main").inner_text()
