"""What a browser is shown of the simulated GitHub: issues and pull requests, to read only. Pure."""

from collections.abc import Iterable
from html import escape

from mulligan.simulator.records import Comment, Issue, Repository
from mulligan.text.html import as_html

HTML = "text/html; charset=utf-8"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
article { border: 1px solid #8886; border-radius: 6px; padding: 0 1rem; margin: 1rem 0 }
header { color: #777 } .label { border: 1px solid #8888; border-radius: 1em; padding: 0 .6em }
pre { overflow: auto; background: #8881; padding: .6rem } table { border-collapse: collapse }
td, th { border: 1px solid #8886; padding: .2rem .6rem } :root { color-scheme: light dark }
"""


def issue_page(repository: Repository, issue: Issue) -> str:
    """Show an issue or a pull request with all its comments."""
    kind = "pull request" if issue.pull else "issue"
    pull = issue.pull
    heads = [f"{kind} #{issue.number}", issue.state, f"by {issue.author.login}"]
    heads += [f"{pull.head_ref} into {pull.base_ref}"] if pull else []
    labels = "".join(f' <span class="label">{escape(name)}</span>' for name in issue.label_names)
    return _page(
        issue.title,
        [
            f'<p><a href="/{escape(repository.full_name)}">{escape(repository.full_name)}</a></p>',
            f"<h1>{escape(issue.title)}</h1>",
            f"<header>{escape(' · '.join(heads))}{labels}</header>",
            f"<article>{as_html(issue.body or '')}</article>",
            *map(_comment, issue.comments),
        ],
    )


def repository_page(repository: Repository) -> str:
    """List the issues and pull requests of a repository, newest first."""
    rows = (
        f'<li><a href="/{escape(repository.full_name)}/{_kind(each)}/{each.number}">'
        f"#{each.number} {escape(each.title)}</a> · {escape(each.state)} "
        f"{escape(', '.join(each.label_names))}</li>"
        for each in sorted(repository.visible(), key=lambda each: -each.number)
    )
    name = escape(repository.full_name)
    return _page(repository.full_name, [f"<h1>{name}</h1>", "<ul>", *rows, "</ul>"])


def _kind(issue: Issue) -> str:
    return "pull" if issue.pull else "issues"


def _comment(one: Comment) -> str:
    who = f"{escape(one.author.login)} · {one.created_at:%Y-%m-%d %H:%M} UTC"
    opening = f'<article id="issuecomment-{one.id}"><header>{who}</header>'
    return f"{opening}{as_html(one.body)}</article>"


def _page(title: str, parts: Iterable[str]) -> str:
    head = f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>'
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, ""])
