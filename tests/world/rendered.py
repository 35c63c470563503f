"""Mulligan's texts as GitHub shows them, for tests and for people to look at.

`python tests/world/rendered.py DIRECTORY` writes the pictures of docs/images.
"""

import sys
from dataclasses import replace
from pathlib import Path

from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parents[1]))

from mulligan.config.policy import Escalation
from mulligan.domain.issue import Stage
from mulligan.domain.issue_context import IssueContext, Pattern, PatternKind
from mulligan.domain.result import FileChange
from mulligan.domain.status import PullStatus, SeenText
from mulligan.github.escalation import escalation_comment
from mulligan.github.messages import draft_body, pull_request_body, status_comment
from mulligan.github.pull_text import OwnText, new_text
from world.browser import chromium
from world.escalations import work_pushed
from world.stories import REF, attempt, case, published

HOSTILE = (
    "</details></td></table>\n```\n| a | b |\n# Big ~~gone~~ <img src=x onerror=alert(1)>\n"
    "> fixes #7 @octocat ![x](http://evil.example/x.png) [y](javascript:alert(1)) <!-- "
)
STYLE = """\
body { font: 14px/1.5 Liberation Sans, sans-serif; max-width: 760px;
       margin: 24px auto; color: #1f2328 }
table { border-collapse: collapse } th, td { border: 1px solid #d1d9e0; padding: 6px 13px }
pre { background: #f6f8fa; padding: 16px; overflow: auto; border-radius: 6px }
code { background: #eff1f3; padding: 2px 5px; border-radius: 6px; font-size: 12px }
pre code { padding: 0; background: none } h3 { font-size: 17px; margin: 24px 0 8px }
blockquote { border-left: 4px solid #d1d9e0; margin: 0; padding: 0 1em; color: #59636e }
"""


def to_html(text: str) -> str:
    """Render as GitHub does: CommonMark with tables and strikethrough, HTML let through."""
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)


def with_hostile_texts(found: IssueContext) -> IssueContext:
    """Replace all texts by other people with attacks."""
    history = tuple(
        meta.model_copy(
            update={
                "error": HOSTILE,
                "failure_reason": HOSTILE,
                "agent_summary": HOSTILE,
                "files_modified": (FileChange(path=f"a`|{HOSTILE}", status="M"),),
                "checks": tuple(
                    check.model_copy(update={"name": HOSTILE, "digest": HOSTILE * 2})
                    for check in meta.checks
                ),
            }
        )
        for meta in found.history
    )
    status = replace(found.status, reason=HOSTILE, text=SeenText(HOSTILE))
    issue = replace(found.issue, title=HOSTILE, body=HOSTILE)
    return replace(
        found,
        issue=issue,
        history=history,
        status=status,
        observed=(Pattern(PatternKind.NAMES, HOSTILE),),
    )


def marked(text: str) -> str:
    """Return the text of a new pull request with its marks."""
    return new_text(OwnText("Fix it", text), REF, "abc123").body


def pages() -> dict[str, str]:
    """Give the texts at telling moments, as they are and under attack."""
    red = work_pushed()
    running = case(attempt(1), stage=Stage.RUNNING)
    done = published(attempt(1), attempt(2, red.history[0].outcome.SUCCEEDED))
    draft = replace(red.status, pull=PullStatus("#13", draft_of=3))
    told = Escalation(mention=("ann",))
    return {
        "escalation": escalation_comment(red, told),
        "escalation-hostile": escalation_comment(with_hostile_texts(red), told),
        "status": status_comment(running),
        "status-hostile": status_comment(with_hostile_texts(case(attempt(1), stage=Stage.HITL))),
        "draft": marked(draft_body(replace(red, status=draft))),
        "draft-hostile": marked(draft_body(with_hostile_texts(replace(red, status=draft)))),
        "pull-request": marked(pull_request_body(done)),
        "pull-request-hostile": marked(pull_request_body(with_hostile_texts(done))),
    }


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 808, "height": 100})
        for name, text in pages().items():
            page.set_content(f"<!doctype html><style>{STYLE}</style>{to_html(text)}")
            if "hostile" in name:
                page.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
            page.screenshot(path=directory / f"{name}.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
