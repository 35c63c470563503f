"""What people wrote on an issue after an attempt began, so that its agent did not get it. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from mulligan.domain.events import AttemptStarted, Event, IssueSeen
from mulligan.domain.issue import Comment, Edit, Issue

TITLE, TEXT = "title", "text"

MAX_NAMED = 3
"""Limit of comments to link; the others are counted."""

RETRY, FIX = "/mulligan retry", "/mulligan fix: <what to do>"


@dataclass(frozen=True, slots=True)
class Given:
    """The text and comments that an attempt was given; `comments` are digests by id."""

    title: str
    text_sha256: str
    comments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Missed:
    """What trusted people wrote since; `changed` has title or text, each with its last editor."""

    issue: Issue
    commented: tuple[Comment, ...] = ()
    edited: tuple[Comment, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()


def digests_of(comments: Iterable[Comment]) -> dict[str, str]:
    """Return a short digest of each comment by its id, to detect edits."""
    return {
        str(each.id): sha256(each.body.encode(errors="surrogatepass")).hexdigest()[:16]
        for each in comments
    }


def given_to(events: Iterable[Event], number: int) -> Given | None:
    """Return what an attempt was given; None if an earlier version did not record it."""
    title = text = ""
    for event in events:
        match event:
            case IssueSeen():
                title, text = event.title, event.text_sha256
            case AttemptStarted(number=started, comments=comments) if started == number:
                return None if comments is None else Given(title, text, comments)
            case _:
                continue
    return None


def changed_parts(given: Given, issue: Issue) -> tuple[str, ...]:
    """Return which of title and text differ from what the attempt was given."""
    if given.text_sha256 in {"", issue.text_sha256}:
        return ()
    title = () if issue.title == given.title else (TITLE,)
    same_text = replace(issue, title=given.title).text_sha256 == given.text_sha256
    return title if same_text else (*title, TEXT)


def find_missed(
    given: Given, issue: Issue, comments: Iterable[Comment], edits: Sequence[Edit]
) -> Missed:
    """Compare an issue with what an attempt was given; `edits` are oldest first."""
    commented, edited = list[Comment](), list[Comment]()
    for comment in comments:
        digest = given.comments.get(str(comment.id))
        if digest is None:
            commented.append(comment)
        elif digests_of([comment]) != {str(comment.id): digest}:
            edited.append(comment)
    editors = {each.what: each.actor for each in edits}
    changed = [(part, editors.get(part, "")) for part in changed_parts(given, issue)]
    return Missed(issue, tuple(commented), tuple(edited), tuple(changed))


def describe_missed(missed: Missed, command: str) -> str:
    """Name who wrote what, with links, and the command that includes it; empty if nothing."""
    acts = [*_comments(missed), *_edits(missed)]
    if not acts:
        return ""
    return (
        f"After this work began, {_listed(acts)}. The work does not take that into account. "
        f"To start again with it, write `{command}`."
    )


def _comments(missed: Missed) -> Iterator[str]:
    acts = [
        *((each, "commented") for each in missed.commented),
        *((each, "edited a comment") for each in missed.edited),
    ]
    for comment, act in acts[:MAX_NAMED]:
        yield f"{comment.author} {act} ({missed.issue.url}#issuecomment-{comment.id})"
    more = len(acts) - MAX_NAMED
    if more > 0:
        yield f"{more} more {'comment' if more == 1 else 'comments'} followed"


def _edits(missed: Missed) -> Iterator[str]:
    parts = dict[str, list[str]]()
    for part, editor in missed.changed:
        parts.setdefault(editor or "somebody", []).append(f"the {part}")
    for who, changed in parts.items():
        yield f"{who} edited {' and '.join(changed)}"


def _listed(acts: Sequence[str]) -> str:
    return " and ".join(each for each in (", ".join(acts[:-1]), acts[-1]) if each)
