"""Web pages of the simulated GitHub: issues and pull requests, read-only. Pure."""

import html
import re
from collections.abc import Iterable
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from github_simulator.records import Comment, Issue, Repository, Review
from github_simulator.reply import Reply
from github_simulator.request import ApiCall

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)

FOLDING = re.compile(r"&lt;(/?(?:details|summary))&gt;")

AS_HTML = {"html_block", "html_inline"}

ADDRESS = re.compile(r"https?://[^\s<>\"]*[\w/#]")

NESTING = {"link_open": 1, "link_close": -1}

REACTION_EMOJI = {"eyes": "👀", "rocket": "🚀", "confused": "😕"}

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
article { border: 1px solid #8886; border-radius: 6px; padding: 0 1rem; margin: 1rem 0 }
header { color: #777 } .label { border: 1px solid #8888; border-radius: 1em; padding: 0 .6em }
pre { overflow: auto; background: #8881; padding: .6rem } table { border-collapse: collapse }
article > header { margin-top: .6rem }
td, th { border: 1px solid #8886; padding: .2rem .6rem } :root { color-scheme: light dark }
"""

HTML = {"content-type": "text/html; charset=utf-8"}


def as_html(markdown: str) -> str:
    """Render a text as GitHub renders comments: line breaks stay, addresses become links.

    Link only to web addresses, and omit HTML comments.
    """
    reader = _reader()
    tokens = reader.parse(COMMENT.sub("", markdown))
    for token in tokens:
        _disarm(token)
        for inner in token.children or ():
            _disarm(inner)
        _link(token.children or [])
    rendered: object = reader.renderer.render(tokens, reader.options, {})
    return str(rendered)


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"breaks": True}).enable(["table", "strikethrough"])


def _disarm(token: Token) -> None:
    """Escape HTML in a comment, except folding, which is harmless."""
    if token.type in AS_HTML:
        token.content = FOLDING.sub(r"<\1>", html.escape(token.content))


def _link(tokens: list[Token]) -> None:
    """Turn addresses in text into links, in place."""
    depth = 0
    for token in tokens:
        depth += NESTING.get(token.type, 0)
        if token.type == "text" and not depth:
            escaped = html.escape(token.content, quote=False)
            token.content = ADDRESS.sub(r'<a href="\g<0>">\g<0></a>', escaped)
            token.type = "html_inline"


def issue_page(repository: Repository, issue: Issue) -> str:
    """Render an issue or a pull request with all its comments."""
    kind = "pull request" if issue.pull else "issue"
    pull = issue.pull
    heads = [f"{kind} #{issue.number}", _state(issue), f"by {issue.author.login}"]
    heads += [f"{pull.head_ref} into {pull.base_ref}"] if pull else []
    return _page(
        issue.title,
        [
            f'<p><a href="/{escape(repository.full_name)}">{escape(repository.full_name)}</a></p>',
            f"<h1>{escape(issue.title)}</h1>",
            f"<header>{escape(' · '.join(heads))}{_labels(issue)}</header>",
            f"<article>{as_html(issue.body or '')}</article>",
            *_conversation(issue),
        ],
    )


def repository_page(repository: Repository) -> str:
    """Render a repository's issues and pull requests, newest first."""
    rows = (
        f'<li><a href="/{escape(repository.full_name)}/{_kind(each)}/{each.number}">'
        f"#{each.number} {escape(each.title)}</a> · {_state_badges(each)}{_labels(each)}</li>"
        for each in sorted(repository.visible(), key=lambda each: -each.number)
    )
    name = escape(repository.full_name)
    return _page(repository.full_name, [f"<h1>{name}</h1>", "<ul>", *rows, "</ul>"])


def _kind(issue: Issue) -> str:
    return "pull" if issue.pull else "issues"


def _state_badges(issue: Issue) -> str:
    return f"pull request, {_state(issue)}" if issue.pull else _state(issue)


def _state(issue: Issue) -> str:
    pull = issue.pull
    if pull and pull.merged_at:
        return "merged"
    return "draft" if pull and pull.draft and issue.state == "open" else issue.state


def _labels(issue: Issue) -> str:
    return "".join(f' <span class="label">{escape(name)}</span>' for name in issue.label_names)


def _conversation(issue: Issue) -> list[str]:
    """Render comments and reviews in order of time."""
    reviews = issue.pull.reviews if issue.pull else []
    said = [(one.created_at, _comment(one)) for one in issue.comments]
    said += [(one.submitted_at, _review(one)) for one in reviews]
    return [shown for _, shown in sorted(said, key=lambda each: each[0])]


def _comment(one: Comment) -> str:
    who = f"{escape(one.author.login)} · {one.created_at:%Y-%m-%d %H:%M} UTC"
    faces = " ".join(
        escape(REACTION_EMOJI.get(each.content, each.content)) for each in one.reactions
    )
    below = f"<p>{faces}</p>" if faces else ""
    opening = f'<article id="issuecomment-{one.id}"><header>{who}</header>'
    return f"{opening}{as_html(one.body)}{below}</article>"


def _review(one: Review) -> str:
    verdict = one.state.lower().replace("_", " ")
    who = f"{escape(one.author.login)} · {verdict} · {one.submitted_at:%Y-%m-%d %H:%M} UTC"
    return f'<article id="review-{one.id}"><header>{who}</header>{as_html(one.body)}</article>'


def _page(title: str, parts: Iterable[str]) -> str:
    head = f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, ""])


def repository(call: ApiCall) -> Reply:
    """Show a repository's issues and pull requests."""
    call.world.follow_branches(call.repository())
    return Reply(200, headers=HTML, page=repository_page(call.repository()))


def issue(call: ApiCall) -> Reply:
    """Show an issue, or a pull request."""
    return Reply(200, headers=HTML, page=issue_page(call.repository(), call.issue()))


ROUTES = (
    ("GET", "/{owner}/{repo}/issues/{number}", issue),
    ("GET", "/{owner}/{repo}/pull/{number}", issue),
    ("GET", "/{owner}/{repo}", repository),
)
