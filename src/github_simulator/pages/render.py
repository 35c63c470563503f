"""Fill in the templates of the pages. Pure, apart from reading the templates."""

from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from github_simulator.pages.markdown import as_html
from github_simulator.records import Comment, Event, Issue, Repository, Review, User
from github_simulator.reply import ErrorReply, Reply

TEMPLATES = Path(__file__).with_name("templates")

HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "same-origin",
}

REACTION_EMOJI = {"eyes": "👀", "rocket": "🚀", "confused": "😕"}

VERDICTS = {
    "APPROVED": "approved these changes",
    "CHANGES_REQUESTED": "requested changes",
    "COMMENTED": "reviewed",
}

SENTENCES = {
    "assigned": "assigned {event.assignee.login}",
    "closed": "closed this",
    "converted_to_discussion": "converted this to a discussion",
    "labeled": "added the label",
    "locked": "locked the conversation",
    "merged": "merged commit {event.commit_id:.10}",
    "ready_for_review": "marked this pull request as ready for review",
    "renamed": "changed the title from “{event.rename[0]}” to “{event.rename[1]}”",
    "reopened": "reopened this",
    "review_requested": "requested a review from {event.reviewer.login}",
    "transferred": "transferred this issue",
    "unlabeled": "removed the label",
    "unlocked": "unlocked the conversation",
}


def page(name: str, repository: Repository | None = None, **values: object) -> str:
    """Render a template; texts in it are escaped, and Markdown is made safe."""
    known = {
        "address": address,
        "clock": "{:%Y-%m-%d %H:%M} UTC".format,
        "faces": REACTION_EMOJI,
        "markdown": partial(_markdown, repository),
        "repository": repository,
        "sentence": _sentence,
        "state_of": state_of,
        "timeline": timeline,
        "verdicts": VERDICTS,
    }
    return _templates().get_template(name).render({**known, **values})


def shown(status: int, text: str) -> Reply:
    """Return a page as an answer."""
    return Reply(status, headers=HEADERS, page=text)


def error_page(refused: ErrorReply, viewer: User | None) -> Reply:
    """Return a page with an error's message and its details."""
    details = [
        each if isinstance(each, str) else each.get("message") or " ".join(each.values())
        for each in refused.errors
    ]
    text = page("error.html", viewer=viewer, message=refused.message, details=details)
    return shown(refused.status, text)


def timeline(issue: Issue) -> list[tuple[str, Comment | Review | Event]]:
    """List comments, reviews and events in the order in which they happened, with their kinds.

    A review that GitHub made for a reply is omitted: the reply stands in its thread.
    """
    pull = issue.pull
    replies = {note.review for note in pull.notes if note.in_reply_to} if pull else set[int]()
    reviews = [one for one in pull.reviews if one.id not in replies] if pull else []
    found: list[tuple[str, Comment | Review | Event]] = [
        *(("comment", one) for one in issue.comments),
        *(("review", one) for one in reviews),
        *(("event", one) for one in issue.events if one.kind in SENTENCES),
    ]
    return sorted(found, key=lambda pair: pair[1].id)  # ids only grow


def state_of(issue: Issue) -> str:
    """Return open, draft, merged or closed."""
    pull = issue.pull
    if pull and pull.merged_at:
        return "merged"
    return "draft" if pull and pull.draft and issue.state == "open" else issue.state


def address(repository: Repository, issue: Issue) -> str:
    """Return the path of an issue or a pull request."""
    return f"/{repository.full_name}/{'pull' if issue.pull else 'issues'}/{issue.number}"


def _sentence(event: Event) -> str:
    return SENTENCES[event.kind].format(event=event)


def _markdown(repository: Repository | None, text: str | None) -> Markup:
    safe = as_html(text or "", repository.full_name if repository else "")
    return Markup(safe)  # noqa: S704 - as_html escapes all HTML of the text


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
