"""Give of an issue what a person sees, as the agent is told it (SPEC T4). Pure."""

from collections import Counter
from dataclasses import dataclass, replace

from mulligan.domain.issue import Issue
from mulligan.text.visible import Sight, seen_in, seen_in_title

COMMENT_BYTES = 16 * 1024
"""Of one comment: more than the whole discussion has room for."""


@dataclass(frozen=True, slots=True)
class SeenIssue:
    """An issue whose texts are what is seen of them; `counts` says what was taken out."""

    issue: Issue
    counts: dict[str, int]


def see(issue: Issue) -> SeenIssue:
    """Read the title, the body and the comments as GitHub shows them."""
    title, body = seen_in_title(issue.title), seen_in(issue.body)
    said = [seen_in(comment.body, COMMENT_BYTES) for comment in issue.comments]
    comments = (
        replace(comment, body=sight.text)
        for comment, sight in zip(issue.comments, said, strict=True)
    )
    shown = replace(issue, title=title.text, body=body.text, comments=tuple(comments))
    return SeenIssue(shown, _total(title, body, *said))


def is_blank(issue: Issue) -> bool:
    """Tell whether a person sees neither a title nor a body."""
    shown = see(replace(issue, comments=())).issue
    return not f"{shown.title}{shown.body}".strip()


def _total(*sights: Sight) -> dict[str, int]:
    total = Counter[str]()
    for sight in sights:
        total.update({kind.value: count for kind, count in sight.counts.items()})
    return dict(sorted(total.items()))
