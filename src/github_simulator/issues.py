"""People's actions on issues, with the events that GitHub records. Pure except for the clock."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from github_simulator.records import (
    REACTIONS,
    Actor,
    Comment,
    Event,
    Issue,
    Label,
    Reaction,
    TextEdit,
    User,
)
from github_simulator.reply import ErrorReply, Resource, invalid, unprocessable

MAX_BODY_CHARS = 65536

NEW_LABEL_COLOR = "ededed"

State = Literal["open", "closed"]


def open_issue(by: Actor, title: str, body: str | None) -> Issue:
    """Open an issue with the repository's next number."""
    if not title.strip():
        raise invalid(Resource.ISSUE, "title", "missing_field")
    check_length(Resource.ISSUE, body)
    now = by.stamps.now()
    number = max(by.repository.issues, default=0) + 1
    issue = Issue(by.stamps.id(), number, title, body, by.user, now, now)
    by.repository.issues[number] = issue
    return issue


def check_length(resource: Resource, body: str | None) -> None:
    """Refuse a text that is longer than GitHub stores."""
    if body and len(body) > MAX_BODY_CHARS:
        raise unprocessable(resource, f"body is too long (maximum is {MAX_BODY_CHARS} characters)")


def record(by: Actor, issue: Issue, event: Event) -> None:
    """Record an event, which also updates the issue's time."""
    issue.events.append(event)
    issue.updated_at = by.stamps.now()


def new_event(by: Actor, kind: str) -> Event:
    """Return a new event by this user, at the current time."""
    return Event(by.stamps.id(), kind, by.user, by.stamps.now())


def create_label(by: Actor, name: str, color: str, description: str | None) -> Label:
    """Create a label of the repository; 422 if its name exists."""
    if not name.strip():
        raise invalid(Resource.LABEL, "name", "missing_field")
    if by.repository.label(name):
        raise invalid(Resource.LABEL, "name", "already_exists")
    label = Label(by.stamps.id(), name, color, description)
    by.repository.labels.append(label)
    return label


def delete_label(by: Actor, label: Label) -> None:
    """Delete a label from the repository and from all issues; GitHub records no event for it."""
    by.repository.labels.remove(label)
    for issue in by.repository.issues.values():
        if label in issue.labels:
            issue.labels.remove(label)


def add_labels(by: Actor, issue: Issue, names: Sequence[str]) -> None:
    """Add labels; create those that the repository lacks, as GitHub does."""
    for name in names:
        label = by.repository.label(name) or create_label(by, name, NEW_LABEL_COLOR, None)
        if label in issue.labels:
            continue
        issue.labels.append(label)
        _label_event(by, issue, "labeled", label)


def remove_label(by: Actor, issue: Issue, name: str) -> None:
    """Remove a label; 404 if the issue does not have it."""
    label = by.repository.label(name)
    if label is None or label not in issue.labels:
        raise ErrorReply(404, "Label does not exist")
    issue.labels.remove(label)
    _label_event(by, issue, "unlabeled", label)


def _label_event(by: Actor, issue: Issue, kind: str, label: Label) -> None:
    record(by, issue, replace(new_event(by, kind), label=(label.name, label.color)))


def edit(by: Actor, issue: Issue, title: str | None = None, body: str | None = None) -> None:
    """Change title or body; a new title creates an event, a new body an edit."""
    check_length(Resource.ISSUE, body)
    if title is not None and not title.strip():
        raise invalid(Resource.ISSUE, "title", "missing_field")
    if title is not None and title != issue.title:
        record(by, issue, replace(new_event(by, "renamed"), rename=(issue.title, title)))
        issue.title = title
    if body is not None and body != issue.body:
        issue.body = body
        issue.updated_at = by.stamps.now()
        issue.edits.append(TextEdit(by.user, issue.updated_at))


def set_state(
    by: Actor,
    issue: Issue,
    state: State,
    reason: str | None = None,
    commit_id: str | None = None,
) -> None:
    """Close or reopen; do nothing if the state is the same."""
    if state == issue.state:
        return
    closing = state == "closed"
    issue.state = state
    issue.closed_at = by.stamps.now() if closing else None
    issue.closed_by = by.user if closing else None
    if issue.pull is None:
        issue.state_reason = (reason or "completed") if closing else "reopened"
    event = new_event(by, "closed" if closing else "reopened")
    record(by, issue, replace(event, commit_id=commit_id))


def assign(by: Actor, issue: Issue, users: Sequence[User]) -> None:
    """Assign people; silently skip those who cannot be assigned, as GitHub does."""
    for user in users:
        if by.repository.is_collaborator(user) and user not in issue.assignees:
            issue.assignees.append(user)
            record(by, issue, replace(new_event(by, "assigned"), assignee=user))


def unassign(by: Actor, issue: Issue, users: Sequence[User]) -> None:
    """Remove assignees; skip people who are not assigned, as GitHub does."""
    for user in users:
        if user in issue.assignees:
            issue.assignees.remove(user)
            record(by, issue, replace(new_event(by, "unassigned"), assignee=user))


def add_comment(by: Actor, issue: Issue, body: str) -> Comment:
    check_comment(body)
    now = by.stamps.now()
    comment = Comment(by.stamps.id(), issue.number, by.user, body, now, now)
    issue.comments.append(comment)
    issue.updated_at = now
    return comment


def edit_comment(by: Actor, comment: Comment, body: str) -> None:
    """Change the text of a comment."""
    check_comment(body)
    comment.body = body
    comment.updated_at = by.stamps.now()
    comment.edits.append(TextEdit(by.user, comment.updated_at))


def check_comment(body: str) -> None:
    """Refuse an empty comment, or one that is too long."""
    if not body.strip():
        raise invalid(Resource.COMMENT, "body", "missing_field")
    check_length(Resource.COMMENT, body)


def react(by: Actor, reactions: list[Reaction], content: str) -> tuple[Reaction, bool]:
    """Add a reaction, and return whether it is new: each user has one of a kind."""
    if content not in REACTIONS:
        raise invalid(Resource.REACTION, "content")
    for reaction in reactions:
        if (reaction.user, reaction.content) == (by.user, content):
            return reaction, False
    reaction = Reaction(by.stamps.id(), by.user, content, by.stamps.now())
    reactions.append(reaction)
    return reaction, True
