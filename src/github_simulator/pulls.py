"""Pull requests and their reviews; head and base are read from the bare repository."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from github_simulator.bare_repository import BareRepository
from github_simulator.issues import new_event, open_issue, record, set_state
from github_simulator.records import Actor, Issue, Pull, Repository, Review, ReviewComment, User
from github_simulator.reply import ErrorReply, Resource, invalid, not_found, unprocessable

CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)", re.IGNORECASE)

REVIEW_STATES = {
    "APPROVE": "APPROVED",
    "REQUEST_CHANGES": "CHANGES_REQUESTED",
    "COMMENT": "COMMENTED",
}

HUNK_LINES = 4

LEFT, RIGHT = "LEFT", "RIGHT"
"""The sides of a diff: before and after."""


@dataclass(frozen=True, slots=True)
class PullRequestDraft:
    """A pull request to open; `head` may be `owner:branch`."""

    title: str
    head: str
    base: str
    body: str | None = None
    draft: bool = False
    can_modify: bool = False


def open_pull(by: Actor, asked: PullRequestDraft) -> tuple[Issue, Pull]:
    """Open a pull request; 422 with GitHub's message if there is nothing to merge."""
    bare = BareRepository(by.repository.bare)
    branches = bare.branches()
    head = head_branch(by.repository, asked.head)
    if asked.base not in branches:
        raise invalid(Resource.PULL, "base")
    if head not in branches:
        raise invalid(Resource.PULL, "head")
    base_sha, head_sha = branches[asked.base], branches[head]
    if head == asked.base or not bare.count_ahead(base_sha, head_sha):
        raise unprocessable(Resource.PULL, f"No commits between {asked.base} and {head}")
    if open_for(by.repository, head, asked.base):
        owner = by.repository.owner.login
        raise unprocessable(Resource.PULL, f"A pull request already exists for {owner}:{head}.")
    if asked.draft and not by.repository.drafts:
        raise ErrorReply(422, "Draft pull requests are not supported in this repository.")
    issue = open_issue(by, asked.title, asked.body)
    pull = Pull(by.stamps.id(), head, head_sha, asked.base, base_sha, asked.draft, asked.can_modify)
    issue.pull = pull
    return issue, pull


def head_branch(repository: Repository, head: str) -> str:
    """Parse `branch` or `owner:branch`; there are no forks, so another owner has no branch."""
    owner, colon, branch = head.rpartition(":")
    if colon and owner.lower() != repository.owner.login.lower():
        return ""
    return branch


def open_for(repository: Repository, head: str, base: str) -> Issue | None:
    """Return the open pull request of a head and a base: GitHub allows only one."""
    for issue in repository.visible():
        pull = issue.pull
        if pull and issue.state == "open" and (pull.head_ref, pull.base_ref) == (head, base):
            return issue
    return None


def apply_pushes(by: Actor) -> None:
    """Apply pushes to pull requests: a moved head updates one, a deleted head or base closes it."""
    issues = by.repository.visible()
    waiting = [(one, one.pull) for one in issues if one.pull and one.state == "open"]
    branches = BareRepository(by.repository.bare).branches() if waiting else {}
    for issue, pull in waiting:
        if not {pull.head_ref, pull.base_ref} <= branches.keys():
            set_state(by, issue, "closed")
            continue
        pull.base_sha = branches[pull.base_ref]
        if pull.head_sha != branches[pull.head_ref]:
            pull.head_sha = branches[pull.head_ref]
            issue.updated_at = by.stamps.now()


def compute_mergeable(repository: Repository, pull: Pull) -> None:
    """Compute `mergeable`: null on the first read of a new head or base."""
    pair = (pull.base_sha, pull.head_sha)
    if pull.looked_at != pair:
        pull.looked_at, pull.mergeable = pair, None
    elif pull.mergeable is None:
        bare = BareRepository(repository.bare)
        plain = bare.merge_base(*pair) == pull.base_sha
        pull.mergeable = plain or bare.merge(*pair, "Try") is not None


def is_behind(repository: Repository, pull: Pull) -> bool:
    """Return whether it lacks commits of a base that requires up-to-date branches."""
    bare = BareRepository(repository.bare)
    return repository.strict and bare.merge_base(pull.base_sha, pull.head_sha) != pull.base_sha


def mark_ready(by: Actor, issue: Issue, pull: Pull) -> None:
    """Mark a draft as ready for review."""
    if pull.draft:
        pull.draft = False
        record(by, issue, new_event(by, "ready_for_review"))


def retarget(by: Actor, issue: Issue, pull: Pull, base: str) -> None:
    """Change the base branch."""
    if base != pull.base_ref:
        pull.base_ref, pull.base_sha = base, BareRepository(by.repository.bare).branches()[base]
        record(by, issue, new_event(by, "base_ref_changed"))


def reopen(by: Actor, issue: Issue, pull: Pull) -> None:
    """Reopen a closed pull request, under GitHub's conditions."""
    if issue.state == "open":
        return
    if pull.merged_at:
        raise unprocessable(Resource.PULL, "state cannot be changed. The pull request is merged.")
    if open_for(by.repository, pull.head_ref, pull.base_ref):
        head = f"{by.repository.owner.login}:{pull.head_ref}"
        raise unprocessable(
            Resource.PULL,
            f"state cannot be changed. There is already an open pull request from {head}.",
        )
    if pull.head_ref not in BareRepository(by.repository.bare).branches():
        raise unprocessable(
            Resource.PULL, f"state cannot be changed. The {pull.head_ref} branch has been deleted."
        )
    set_state(by, issue, "open")


def request_reviews(by: Actor, issue: Issue, pull: Pull, users: Sequence[User | None]) -> None:
    """Request reviews: from all people or, with a 422, from none."""
    if issue.author in users:
        raise ErrorReply(422, "Review cannot be requested from pull request author.")
    wanted = [user for user in users if user and by.repository.is_collaborator(user)]
    if len(wanted) < len(users):
        raise ErrorReply(
            422,
            "Reviews may only be requested from collaborators. One or more of the users or teams "
            f"you specified is not a collaborator of the {by.repository.full_name} repository.",
        )
    for user in wanted:
        if user not in pull.reviewers:
            pull.reviewers.append(user)
            record(by, issue, replace(new_event(by, "review_requested"), reviewer=user))


def withdraw_requests(by: Actor, issue: Issue, pull: Pull, users: Sequence[User | None]) -> None:
    """Remove requested reviewers; skip people of whom no review is requested."""
    for user in users:
        if user and user in pull.reviewers:
            pull.reviewers.remove(user)
            record(by, issue, replace(new_event(by, "review_request_removed"), reviewer=user))


def merge(by: Actor, issue: Issue, pull: Pull, message: str = "", *, squash: bool = False) -> str:
    """Merge into the base branch in git; close the issues that the body closes."""
    if issue.state != "open" or pull.draft:
        raise ErrorReply(405, "Pull Request is not mergeable")
    text = message or _merge_message(by.repository, issue, pull, squash=squash)
    bare = BareRepository(by.repository.bare)
    sha = bare.merge(pull.base_sha, pull.head_sha, text, squash=squash, into=pull.base_ref)
    if sha is None:
        raise ErrorReply(405, "Pull Request is not mergeable")
    pull.merged_at, pull.merged_by, pull.merge_sha = by.stamps.now(), by.user, sha
    record(by, issue, replace(new_event(by, "merged"), commit_id=sha))
    set_state(by, issue, "closed")
    if pull.base_ref == by.repository.default_branch:
        for number in CLOSING.findall(issue.body or ""):
            other = by.repository.issues.get(int(number))
            if other and other.pull is None:
                set_state(by, other, "closed", "completed", sha)
    return sha


def closers_of(repository: Repository, number: int) -> Iterator[tuple[Issue, Pull]]:
    """Yield the open and merged pull requests into the default branch that close an issue."""
    for issue in repository.visible():
        pull = issue.pull
        if pull is None or pull.base_ref != repository.default_branch:
            continue
        closes = str(number) in CLOSING.findall(issue.body or "")
        if closes and (issue.state == "open" or pull.merged_at):
            yield issue, pull


def _merge_message(repository: Repository, issue: Issue, pull: Pull, *, squash: bool) -> str:
    if squash:
        return f"{issue.title} (#{issue.number})\n\n{issue.body or ''}"
    head = f"{repository.owner.login}/{pull.head_ref}"
    return f"Merge pull request #{issue.number} from {head}\n\n{issue.title}"


# Reviews.


@dataclass(frozen=True, slots=True)
class LineComment:
    """A comment on a line of a file: of the head, or, on the LEFT side, of the merge base."""

    path: str
    line: int
    body: str
    side: str = RIGHT


def submit_review(
    by: Actor, issue: Issue, pull: Pull, answer: tuple[str, str], notes: Sequence[LineComment] = ()
) -> Review:
    """Submit a review; `said` is its event and body. Authors cannot approve their own work."""
    event, body = answer
    if event not in REVIEW_STATES:
        raise invalid(Resource.REVIEW, "event")
    if by.user == issue.author and event != "COMMENT":
        words = {"APPROVE": "approve", "REQUEST_CHANGES": "request changes on"}
        raise ErrorReply(
            422,
            "Unprocessable Entity",
            [f"Can not {words[event]} your own pull request"],
        )
    if event != "APPROVE" and not body.strip() and not notes:
        raise ErrorReply(422, "Unprocessable Entity", ["body can't be blank"])
    now = by.stamps.now()
    review = Review(by.stamps.id(), by.user, REVIEW_STATES[event], body, pull.head_sha, now)
    pull.reviews.append(review)
    pull.notes += [_comment(by, pull, review, note) for note in notes]
    pull.reviewers = [user for user in pull.reviewers if user != by.user]
    issue.updated_at = now
    return review


def dismiss(by: Actor, issue: Issue, pull: Pull, number: int) -> Review:
    """Dismiss an approval or a request for changes: its state changes, and it keeps its time."""
    found = next((each for each in pull.reviews if each.id == number), None)
    if found is None:
        raise not_found()
    if found.state not in {"APPROVED", "CHANGES_REQUESTED"}:
        raise ErrorReply(
            422, "Unprocessable Entity", ["Can not dismiss a commented pull request review"]
        )
    dismissed = replace(found, state="DISMISSED")
    pull.reviews[pull.reviews.index(found)] = dismissed
    record(by, issue, new_event(by, "review_dismissed"))
    return dismissed


def start_of(repository: Repository, pull: Pull) -> str:
    """Return the commit at which a pull request left its base: the LEFT side of its diff."""
    found = BareRepository(repository.bare).merge_base(pull.base_sha, pull.head_sha)
    return found or pull.base_sha


def lines_of(repository: Repository, pull: Pull, path: str, side: str) -> list[str] | None:
    """Return the lines of a file on a side of the diff; None if it does not exist there."""
    sha = start_of(repository, pull) if side == LEFT else pull.head_sha
    content = BareRepository(repository.bare).file(sha, path)
    return None if content is None else content.decode(errors="replace").splitlines()


def require_line(repository: Repository, pull: Pull, note: LineComment) -> LineComment:
    """Return a comment on a line of the diff; 422 if there is no such line."""
    lines = lines_of(repository, pull, note.path, note.side)
    if lines is None:
        raise ErrorReply(422, "Unprocessable Entity", ["Path could not be resolved"])
    if not 1 <= note.line <= len(lines):
        raise ErrorReply(422, "Unprocessable Entity", ["Line could not be resolved"])
    return note


def _comment(by: Actor, pull: Pull, review: Review, note: LineComment) -> ReviewComment:
    lines = lines_of(by.repository, pull, note.path, note.side) or []
    first = max(1, note.line - HUNK_LINES + 1)
    *before, last = [f" {line}" for line in lines[first - 1 : note.line]]
    shown = [*before, f"-{last[1:]}" if note.side == LEFT else last]
    span = f"@@ -{first},{len(shown)} +{first},{len(shown)} @@"
    return ReviewComment(
        id=by.stamps.id(),
        review=review.id,
        author=by.user,
        body=note.body,
        path=note.path,
        line=note.line,
        side=note.side,
        hunk="\n".join([span, *shown]),
        commit_id=pull.head_sha,
        created_at=review.submitted_at,
    )


def reply(by: Actor, issue: Issue, pull: Pull, to: int, body: str) -> ReviewComment:
    """Reply to the first comment of a thread; GitHub creates a review for the reply."""
    first = next((one for one in pull.notes if one.id == to and not one.in_reply_to), None)
    if first is None:
        raise not_found()
    if not body.strip():
        raise ErrorReply(422, "Unprocessable Entity", ["body can't be blank"])
    now = by.stamps.now()
    review = Review(by.stamps.id(), by.user, REVIEW_STATES["COMMENT"], "", pull.head_sha, now)
    pull.reviews.append(review)
    issue.updated_at = now
    answer = ReviewComment(
        id=by.stamps.id(),
        review=review.id,
        author=by.user,
        body=body,
        path=first.path,
        line=first.line,
        side=first.side,
        hunk=first.hunk,
        commit_id=first.commit_id,
        created_at=review.submitted_at,
        in_reply_to=first.id,
    )
    pull.notes.append(answer)
    return answer
