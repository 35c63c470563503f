"""Chromium without a window, driven by Playwright, and axe-core to judge a page."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page, sync_playwright
from pydantic import BaseModel, TypeAdapter

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# The browser asks nobody but the pages under test. As root it has no sandbox of its own.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SERIOUS = {"serious", "critical"}


@contextmanager
def chromium() -> Generator[Browser]:
    """Start a browser; skip the test where none is installed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


class Finding(BaseModel):
    """A fault of a page, its severity, and its place."""

    class Node(BaseModel):
        """An element."""

        target: list[str]

    id: str
    impact: str
    nodes: list[Node]


FINDINGS = TypeAdapter(list[Finding])


SIDEWAYS = """
() => [...document.querySelectorAll("main *")]
  .filter(each => each.checkVisibility() && getComputedStyle(each).overflowX !== "visible"
    && each.tagName !== "METER" && each.scrollWidth > each.clientWidth + 1)
  .map(each => each.outerHTML.slice(0, 200))
"""


def cut_off(page: Page) -> list[str]:
    """List the elements whose content is wider than they are."""
    return TypeAdapter(list[str]).validate_python(page.evaluate(SIDEWAYS))


def serious_findings(page: Page) -> list[str]:
    """List serious and critical findings of axe-core, and a page wider than the view."""
    page.evaluate(AXE_SCRIPT)
    found = FINDINGS.validate_python(page.evaluate("axe.run().then(done => done.violations)"))
    listed = [f"{each.id}: {each.nodes[0].target}" for each in found if each.impact in SERIOUS]
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [*listed, "wider than the view"] if wide else listed
