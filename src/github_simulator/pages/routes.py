"""The pages and forms for a browser; every form calls the API as `World.viewer`."""

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qsl

from github_simulator.bare_repository import BareRepository
from github_simulator.issues import add_comment, add_labels, open_issue, remove_label, set_state
from github_simulator.pages.diff import FileDiff, read_diff
from github_simulator.pages.render import TEMPLATES, address, page, shown
from github_simulator.pulls import (
    LEFT,
    RIGHT,
    LineComment,
    compute_mergeable,
    mark_ready,
    merge,
    reopen,
    reply,
    require_line,
    start_of,
    submit_review,
)
from github_simulator.records import Issue, Permission, Pull, Repository, ReviewComment
from github_simulator.reply import ErrorReply, Reply
from github_simulator.request import ApiCall, Handler

NOTES = {"note:": RIGHT, "note-before:": LEFT}
"""The prefix of the form fields for line comments; line and path follow."""

MOVED = (
    "New commits were pushed since you opened this page. Go back, copy your text, and reload the "
    "page."
)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form; a missing one is empty."""

    values: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, call: ApiCall) -> Self:
        """Read a form; a browser sends line breaks as CRLF."""
        text = call.body.decode(errors="replace")
        pairs = parse_qsl(text, keep_blank_values=True)
        return cls({name: value.replace("\r\n", "\n") for name, value in pairs})

    def text(self, name: str) -> str:
        """Return a field."""
        return self.values.get(name, "")

    def notes(self) -> list[LineComment]:
        """List the comments on lines that have a text."""
        found = list[LineComment]()
        for name, text in self.values.items():
            for prefix, side in NOTES.items():
                line, _, path = name.removeprefix(prefix).partition(":")
                if name.startswith(prefix) and line.isdecimal() and text.strip():
                    found.append(LineComment(path, int(line), text, side))
        return found


# Pages.


def home(call: ApiCall) -> Reply:
    """List the repositories."""
    found = [one for one in call.world.repositories.values() if one.is_visible_to(call.user)]
    return shown(200, page("home.html", viewer=call.user, repositories=found))


def repository(call: ApiCall) -> Reply:
    """List a repository's issues and pull requests, newest first."""
    found = call.repository()
    call.world.follow_branches(found)
    listed = sorted(found.visible(), key=lambda each: -each.number)
    return shown(200, page("repository.html", found, viewer=call.user, issues=listed))


def issue(call: ApiCall) -> Reply:
    """Show an issue, or the conversation of a pull request."""
    place = call.repository()
    call.world.follow_branches(place)
    found = call.issue()
    values: dict[str, object] = {"viewer": call.user, "issue": found}
    if found.pull:
        values |= {"threads": threads(found.pull), "files": files_of(place, found.pull)}
        if found.state == "open":
            # The first call only finds that nothing is known, as GitHub answers its first reader.
            compute_mergeable(place, found.pull)
            compute_mergeable(place, found.pull)
    return shown(200, page("issue.html", place, **values))


def files(call: ApiCall) -> Reply:
    """Show the changed files of a pull request, with a form to review them."""
    found, pull = call.pull()
    place, notes = call.repository(), dict[tuple[str, str, int], list[ReviewComment]]()
    for note in pull.notes:
        if note.commit_id == pull.head_sha:
            notes.setdefault((note.path, note.side, note.line), []).append(note)
    changed = files_of(place, pull)
    text = page("files.html", place, viewer=call.user, issue=found, files=changed, notes=notes)
    return shown(200, text)


def new_issue(call: ApiCall) -> Reply:
    """Show the form for a new issue."""
    return shown(200, page("new.html", call.repository(), viewer=call.user))


def style(_: ApiCall) -> Reply:
    """Return the style sheet of all pages."""
    text = (TEMPLATES / "style.css").read_text(encoding="utf-8")
    return Reply(200, headers={"content-type": "text/css; charset=utf-8"}, page=text)


def threads(pull: Pull) -> dict[int, list[list[ReviewComment]]]:
    """Group the comments on lines into threads, by the review that began each."""
    found = dict[int, list[list[ReviewComment]]]()
    by_first = dict[int, list[ReviewComment]]()
    for note in pull.notes:
        if note.in_reply_to in by_first:
            by_first[note.in_reply_to].append(note)
        else:
            by_first[note.id] = [note]
            found.setdefault(note.review, []).append(by_first[note.id])
    return found


def files_of(place: Repository, pull: Pull) -> list[FileDiff]:
    """Return the changes of a pull request since it left its base."""
    start = start_of(place, pull)
    return read_diff(*BareRepository(place.bare).patch(start, pull.head_sha))


# Forms. Each answers with a redirect, so that loading the page again sends nothing twice.


def _back(call: ApiCall, found: Issue, anchor: str = "") -> Reply:
    return Reply(303, headers={"location": address(call.repository(), found) + anchor})


def create(call: ApiCall) -> Reply:
    """Open an issue, with the ready label if its box is ticked."""
    by, form = call.actor(Permission.READ), Form.of(call)
    made = open_issue(by, form.text("title"), form.text("body"))
    if label := form.text("label"):
        add_labels(call.actor(Permission.TRIAGE), made, [label])
    return _back(call, made)


def comment(call: ApiCall) -> Reply:
    """Write a comment, close or reopen; the button says which, and a text comes first."""
    by, found, form = call.actor(Permission.READ), call.issue(), Form.of(call)
    state, text, anchor = form.text("state"), form.text("body"), ""
    if text.strip() or not state:
        anchor = f"#issuecomment-{add_comment(by, found, text).id}"
    if state == "closed":
        set_state(call.actor(Permission.TRIAGE), found, "closed")
    elif state == "open" and found.pull:
        reopen(call.actor(Permission.WRITE), found, found.pull)
    elif state == "open":
        set_state(call.actor(Permission.TRIAGE), found, "open")
    return _back(call, found, anchor)


def labels(call: ApiCall) -> Reply:
    """Add or remove a label."""
    by, found, form = call.actor(Permission.TRIAGE), call.issue(), Form.of(call)
    if name := form.text("add"):
        add_labels(by, found, [name])
    if name := form.text("remove"):
        remove_label(by, found, name)
    return _back(call, found, "#labels")


def review(call: ApiCall) -> Reply:
    """Submit a review with its comments on lines, all or nothing."""
    by, (found, pull), form = call.actor(Permission.READ), call.pull(), Form.of(call)
    if form.text("head") != pull.head_sha:
        raise ErrorReply(409, MOVED)
    notes = [require_line(by.repository, pull, note) for note in form.notes()]
    done = submit_review(by, found, pull, (form.text("event"), form.text("body")), notes)
    return _back(call, found, f"#pullrequestreview-{done.id}")


def answer(call: ApiCall) -> Reply:
    """Reply to a comment on a line."""
    by, (found, pull), form = call.actor(Permission.READ), call.pull(), Form.of(call)
    to = form.text("to")
    done = reply(by, found, pull, int(to) if to.isdecimal() else 0, form.text("body"))
    return _back(call, found, f"#discussion_r{done.id}")


def merge_it(call: ApiCall) -> Reply:
    """Merge a pull request."""
    by, (found, pull) = call.actor(Permission.WRITE), call.pull()
    merge(by, found, pull)
    return _back(call, found)


def ready(call: ApiCall) -> Reply:
    """Mark a draft as ready for review."""
    by, (found, pull) = call.actor(Permission.WRITE), call.pull()
    mark_ready(by, found, pull)
    return _back(call, found)


PLACE = "/{owner}/{repo}"

ISSUE, PULL = f"{PLACE}/issues/{{number}}", f"{PLACE}/pull/{{number}}"

ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", home),
    ("GET", "/style.css", style),
    ("GET", f"{PLACE}/issues/new", new_issue),
    ("GET", ISSUE, issue),
    ("GET", PULL, issue),
    ("GET", f"{PULL}/files", files),
    ("GET", PLACE, repository),
    ("GET", f"{PLACE}/issues", repository),
    ("GET", f"{PLACE}/pulls", repository),
    ("POST", f"{PLACE}/issues", create),
    ("POST", f"{ISSUE}/comments", comment),
    ("POST", f"{ISSUE}/labels", labels),
    ("POST", f"{PULL}/reviews", review),
    ("POST", f"{PULL}/replies", answer),
    ("POST", f"{PULL}/merge", merge_it),
    ("POST", f"{PULL}/ready", ready),
)
"""Method, path and handler; `app.py` answers them in the name of the viewer."""
