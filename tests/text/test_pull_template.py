"""A repository's pull-request template is filled in, and nothing in it is claimed (PR-10)."""

import pytest

from mulligan.text.pull_template import (
    MAX_TEMPLATE_CHARS,
    fill,
    find_template,
    is_usable,
    only_template,
)

pytestmark = pytest.mark.pure

HERE = "THE DESCRIPTION"


def filled(template: str) -> str:
    found = fill(template, 12, HERE)
    assert found is not None
    return found.text


# The shapes of templates of ten public repositories, in words of our own.
SHAPES = {
    "headings with comments": (
        (
            "<!-- Thank you!\nRead the guide. -->\n## Summary\n<!-- One sentence. -->\n\n"
            "## Related issue number\n<!-- fix #1 -->\n\n## Checklist\n\n* [ ] Tests\n* [x] Docs\n"
        ),
        (
            f"## Summary\n\n{HERE}\n\n## Related issue number\n\nCloses #12\n\n## Checklist\n\n"
            "* [ ] Tests\n* [ ] Docs"
        ),
    ),
    "bold lines in place of headings": (
        (
            "**What this PR does / why**:\n\n**Which issue this PR fixes** *(as `fixes #<n>`)*: "
            "fixes #\n\n**Release note**:\n<!-- NONE -->\n```note\n\n```\n"
        ),
        (
            f"**What this PR does / why**:\n\n{HERE}\n\n**Which issue this PR fixes** *(as `fixes "
            "#<n>`)*: fixes #12\n\n**Release note**:\n\n```note\n\n```"
        ),
    ),
    "the issue in a list": (
        (
            "## Breaking change\n\n## Proposed change\n<!-- x -->\n\n## More\n"
            "- This PR fixes issue: fixes #\n- Related to: \n"
        ),
        (
            f"## Breaking change\n\n## Proposed change\n\n{HERE}\n\n## More\n"
            "- This PR fixes issue: fixes #12\n- Related to: "
        ),
    ),
    "capital letters": (
        "##### SUMMARY\n<!--- why --->\n\n##### ISSUE TYPE\n- Bugfix\n- Feature\n",
        f"##### SUMMARY\n\n{HERE}\n\n##### ISSUE TYPE\n- Bugfix\n- Feature",
    ),
    "a checklist without headings": (
        "Checklist:\n\n- [ ] closes #xxxx\n- [ ] tests `pass #7`\n",
        "Checklist:\n\n- [ ] closes #12\n- [ ] tests `pass #7`",
    ),
    "questions as headings": (
        "### What changes were proposed?\n<!-- a -->\n\n### Why are they needed?\n<!-- b -->\n",
        f"### What changes were proposed?\n\n{HERE}\n\n### Why are they needed?",
    ),
    "an instruction in prose": (
        (
            "# Description\n\nPlease write what changed,\nand why.\n\nFixes # (issue)\n\n"
            "- [ ] Bug\n\n# Tests\n\nPlease say how.\n"
        ),
        f"# Description\n\n{HERE}\n\nFixes #12\n\n- [ ] Bug\n\n# Tests\n\nPlease say how.",
    ),
    "an alert and a place for notes": (
        (
            "> [!NOTE]\n> Reviews wait, see [the page](https://example.org/a#1).\n\n"
            "#### Description of Change\n<!-- x -->\n\n#### Release Notes\n\nNotes: <!-- y -->\n"
        ),
        (
            "> [!NOTE]\n> Reviews wait, see [the page](https://example.org/a#1).\n\n"
            f"#### Description of Change\n\n{HERE}\n\n#### Release Notes\n\nNotes: "
        ),
    ),
    "underlined headings": (
        "Description\n===========\n\nTell us.\n\nIssue\n-----\n\nOther\n-----\n",
        f"Description\n===========\n\n{HERE}\n\nIssue\n-----\n\nCloses #12\n\nOther\n-----",
    ),
    "rules and problem, solution": (
        "Resolves #ISSUE_NUMBER\n\n----\n\n## Problem\n\n## Solution\n\n* \n",
        f"Resolves #12\n\n----\n\n## Problem\n\n## Solution\n\n{HERE}\n\n* ",
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_the_shapes_of_public_templates_are_filled_in(shape: str, ends: str) -> None:
    template, wanted = SHAPES[shape]
    assert filled(template.replace("\n", ends)) == wanted


def test_without_a_heading_for_it_the_description_stays_out() -> None:
    found = fill("## Before\n\n## After\n", 12, HERE)
    assert found is not None
    assert (found.text, found.described) == ("## Before\n\n## After", False)


@pytest.mark.parametrize(
    "template",
    ["", " \n", "<!-- only\ninstructions -->\n", "<!-- not closed\n## Summary", "x" * 20_000],
)
def test_a_template_that_shows_nothing_or_too_much_is_not_used(template: str) -> None:
    assert fill(template, 12, HERE) is None
    assert not is_usable(template)
    assert is_usable("y" * MAX_TEMPLATE_CHARS)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("cc @acme/owners, @ann!", "cc `@acme/owners`, `@ann`!"),
        ("See #3, GH-4 and acme/tools#5.", "See `#3`, `GH-4` and `acme/tools#5`."),
        ("**@ann** [docs](https://x.org/@ann)", "**`@ann`** [docs](https://x.org/@ann)"),
        ("Closes https://x.org/a/b/issues/3", "Closes `https://x.org/a/b/issues/3`"),
        ("/kind bug", "`/kind` bug"),
        ("/approve", "`/approve`"),
        ("`@scope/name` and \u200b@bea", "`@scope/name` and `@bea`"),
        ("- [X] I read it", "- [ ] I read it"),
        ("> 1. [x] yes", "> 1. [ ] yes"),
        ("[x]: https://x.org", "[x]: https://x.org"),
    ],
)
def test_a_line_notifies_closes_and_commands_nothing(line: str, shown: str) -> None:
    assert filled(f"Text\n\n{line}\n") == f"Text\n\n{shown}"


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("```\n<!-- @ann\n- [x]\n```\nEnd", "```\n<! -- @ann\n- [x]\n```\nEnd"),
        ("A\n```sh\nrun", "A\n```sh\nrun\n```"),
        ("~~~\n```\n# Summary\n", "~~~\n```\n# Summary\n~~~"),
        ("<details><summary>a</summary>\nb", "<details><summary>a</summary>\nb\n</details>"),
        ("<div><b>a</div>", "<div><b>a</div>\n</b>"),
        ("a </div> <br> <img src=x/> `<b>` <your-name>", None),
        ("---\nname: bug\n---\nText", "Text"),
        ("<!-- <!-- mulligan:text octo/calc#12 --> -->\nText", " -->\nText"),
    ],
)
def test_code_is_kept_and_nothing_stays_open(template: str, shown: str | None) -> None:
    assert filled(template) == (template if shown is None else shown)


def test_the_first_heading_that_fits_takes_the_description() -> None:
    text = filled("## Type of change\n\n## Description\n\n## Summary\n")
    assert text == f"## Type of change\n\n## Description\n\n{HERE}\n\n## Summary"


def test_only_one_place_gets_the_issue() -> None:
    assert filled("Fixes #\n\nCloses #9\n\n## Issue\n") == "Fixes #12\n\nCloses `#9`\n\n## Issue"


@pytest.mark.parametrize(
    ("root", "docs", "hidden", "found"),
    [
        (["README.md"], [], [], ""),
        (["PULL_REQUEST_TEMPLATE"], [], [], "PULL_REQUEST_TEMPLATE"),
        (["pull_request_template.txt"], ["docs/Pull_Request_Template.md"], [], "p.txt"),
        ([], ["docs/Pull_Request_Template.md"], [], "docs/Pull_Request_Template.md"),
        (["pull_request_template.md"], [], [".github/PULL_REQUEST_TEMPLATE"], ".github/P"),
        ([], [], [".github/PULL_REQUEST_TEMPLATE", ".github/pull_request_template.md"], ".md"),
        ([".pull_request_template.md", "pull_request_template.rst"], [], [], ""),
    ],
)
def test_a_template_is_found_where_github_looks(
    root: list[str], docs: list[str], hidden: list[str], found: str
) -> None:
    path = find_template([*root, *docs, *hidden])
    if not found:
        assert path == ""
    assert path.startswith(found[:1])
    assert path.endswith(found[-1:]) or found == ".github/P"


def test_of_several_templates_none_is_chosen() -> None:
    assert only_template(["d/a.md"]) == "d/a.md"
    assert only_template(["d/a.md", "d/B.TXT"]) == ""
    assert only_template(["d/picture.png"]) == ""
