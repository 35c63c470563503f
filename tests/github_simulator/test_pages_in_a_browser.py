"""The pages are usable by everyone: axe-core has nothing serious to say, and nothing is cut off."""

from collections.abc import Sequence
from typing import Literal

import pytest

from github_simulator.app import running
from github_simulator.pulls import LineComment
from github_simulator.records import IssueName
from world.browser import chromium, serious_findings
from world.simulated import NAME, SimulatedGitHub, push

over_http = pytest.mark.parametrize("reach", [running], indirect=True)
Look = tuple[Literal["light", "dark"], int, int]
LOOKS: tuple[Look, ...] = (
    ("light", 1280, 900),
    ("dark", 390, 844),
)
"""Each scheme at one size: colours do not depend on the size."""
PATHS = ("", "/issues/new", "/issues/1", "/pull/2", "/pull/2/files", "/pull/99")
WIDE = "word" * 40
TEXT = f"""\
# Title

> Quoted [link](https://example.com) and `{WIDE}`

| a | {WIDE} |
|---|---|
| 1 | 2 |

    {WIDE}

<details><summary>More</summary>

- one

</details>
"""


def filled(github: SimulatedGitHub) -> None:
    """Give every page something of each kind to show."""
    world = github.world
    world.viewer = world.users["ada"]
    ref = world.open_issue(NAME, f"Mend {WIDE}", TEXT, "zoe")
    world.label(ref, "mulligan", "ada")
    said = github.post("issues/1/comments", {"body": TEXT}).json()
    github.post(f"issues/comments/{said['id']}/reactions", {"content": "eyes"})
    push(github.bare, "work", {"src/tool.py": f"Y = 2\n{WIDE}\n", "new.bin": "\0"})
    github.post("pulls", {"title": "Work", "head": "work", "base": "main", "body": TEXT})
    pull = IssueName(NAME, 2)
    github.post("pulls/2/requested_reviewers", {"reviewers": ["ada"]})
    notes = [LineComment("src/tool.py", 1, TEXT, side) for side in ("LEFT", "RIGHT")]
    world.review(pull, "mia", "REQUEST_CHANGES", TEXT, notes)
    world.review(pull, "tri", "APPROVE")


@over_http
@pytest.mark.parametrize(
    ("looks", "paths"),
    [(LOOKS[1:], PATHS[2:5:2]), pytest.param(LOOKS, PATHS, marks=pytest.mark.deep)],
    ids=["two pages", "all pages"],
)
def test_axe_finds_nothing_serious_at_any_size_in_light_and_dark(
    github: SimulatedGitHub, looks: Sequence[Look], paths: Sequence[str]
) -> None:
    filled(github)
    with chromium() as browser:
        page = browser.new_page()
        for scheme, width, height in looks:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            for path in paths:
                page.goto(f"{github.url}/{NAME}{path}")
                assert serious_findings(page) == [], (path, scheme, width)
