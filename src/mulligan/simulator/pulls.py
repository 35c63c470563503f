"""What people do to pull requests; head and base are looked up in the bare repository."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mulligan.simulator.bare import Bare
from mulligan.simulator.issues import new_event, open_issue, record, set_state
from mulligan.simulator.records import Doer, Issue, Pull, Repository, User
from mulligan.simulator.refused import Refused, Resource, invalid, unprocessable

CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is asked for when a pull request is opened; `head` may be `owner:branch`."""

    title: str
    head: str
    base: str
    body: str | None = None
    draft: bool = False
    can_modify: bool = False


def open_pull(by: Doer, asked: Proposal) -> tuple[Issue, Pull]:
    """Open a pull request; 422 in GitHub's words where there is nothing to propose."""
    bare = Bare(by.repository.bare)
    branches = bare.branches()
    head = head_branch(by.repository, asked.head)
    if asked.base not in branches:
        raise invalid(Resource.PULL, "base")
    if head not in branches:
        raise invalid(Resource.PULL, "head")
    base_sha, head_sha = branches[asked.base], branches[head]
    if head == asked.base or not bare.ahead(base_sha, head_sha):
        raise unprocessable(Resource.PULL, f"No commits between {asked.base} and {head}")
    if open_for(by.repository, head, asked.base):
        owner = by.repository.owner.login
        raise unprocessable(Resource.PULL, f"A pull request already exists for {owner}:{head}.")
    if asked.draft and not by.repository.drafts:
        raise Refused(422, "Draft pull requests are not supported in this repository.")
    issue = open_issue(by, asked.title, asked.body)
    pull = Pull(by.stamps.id(), head, head_sha, asked.base, base_sha, asked.draft, asked.can_modify)
    issue.pull = pull
    return issue, pull


def head_branch(repository: Repository, head: str) -> str:
    """Read `branch` or `owner:branch`; there are no forks, so another owner means no branch."""
    owner, colon, branch = head.rpartition(":")
    if colon and owner.lower() != repository.owner.login.lower():
        return ""
    return branch


def open_for(repository: Repository, head: str, base: str) -> Issue | None:
    """Find the open pull request of a head and a base: GitHub allows one."""
    for issue in repository.visible():
        pull = issue.pull
        if pull and issue.state == "open" and (pull.head_ref, pull.base_ref) == (head, base):
            return issue
    return None


def follow_branches(by: Doer) -> None:
    """Take over what was pushed: heads that moved; a deleted head closes its pull request."""
    issues = by.repository.visible()
    waiting = [(one, one.pull) for one in issues if one.pull and one.state == "open"]
    branches = Bare(by.repository.bare).branches() if waiting else {}
    for issue, pull in waiting:
        if pull.head_ref not in branches:
            set_state(by, issue, "closed")
            continue
        pull.base_sha = branches.get(pull.base_ref, pull.base_sha)
        if pull.head_sha != branches[pull.head_ref]:
            pull.head_sha = branches[pull.head_ref]
            issue.updated_at = by.stamps.now()


def look_whether_mergeable(repository: Repository, pull: Pull) -> None:
    """Compute `mergeable`: unknown the first time that a head and a base are seen together."""
    pair = (pull.base_sha, pull.head_sha)
    if pull.looked_at != pair:
        pull.looked_at, pull.mergeable = pair, None
    elif pull.mergeable is None:
        bare = Bare(repository.bare)
        plain = bare.common(*pair) == pull.base_sha
        pull.mergeable = plain or bare.merge(*pair, "Try") is not None


def is_behind(repository: Repository, pull: Pull) -> bool:
    """Tell whether it lacks commits of a base that takes only what is up to date with it."""
    bare = Bare(repository.bare)
    return repository.strict and bare.common(pull.base_sha, pull.head_sha) != pull.base_sha


def mark_ready(by: Doer, issue: Issue, pull: Pull) -> None:
    """End a draft."""
    if pull.draft:
        pull.draft = False
        record(by, issue, new_event(by, "ready_for_review"))


def reopen(by: Doer, issue: Issue, pull: Pull) -> None:
    """Open a closed pull request again, as far as GitHub lets one."""
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
    if pull.head_ref not in Bare(by.repository.bare).branches():
        raise unprocessable(
            Resource.PULL, f"state cannot be changed. The {pull.head_ref} branch has been deleted."
        )
    set_state(by, issue, "open")


def request_reviews(by: Doer, issue: Issue, pull: Pull, users: Sequence[User | None]) -> None:
    """Ask people for a review; all of them or, with a 422, none."""
    if issue.author in users:
        raise Refused(422, "Review cannot be requested from pull request author.")
    wanted = [user for user in users if user and by.repository.is_collaborator(user)]
    if len(wanted) < len(users):
        raise Refused(
            422,
            "Reviews may only be requested from collaborators. One or more of the users or teams "
            f"you specified is not a collaborator of the {by.repository.full_name} repository.",
        )
    for user in wanted:
        if user not in pull.reviewers:
            pull.reviewers.append(user)
            record(by, issue, replace(new_event(by, "review_requested"), reviewer=user))


def merge(by: Doer, issue: Issue, pull: Pull, message: str = "", *, squash: bool = False) -> str:
    """Merge into the base branch, for real; close what the body says it closes."""
    if issue.state != "open" or pull.draft:
        raise Refused(405, "Pull Request is not mergeable")
    said = message or _merge_message(by.repository, issue, pull, squash=squash)
    bare = Bare(by.repository.bare)
    sha = bare.merge(pull.base_sha, pull.head_sha, said, squash=squash, into=pull.base_ref)
    if sha is None:
        raise Refused(405, "Pull Request is not mergeable")
    pull.merged_at, pull.merged_by, pull.merge_sha = by.stamps.now(), by.user, sha
    record(by, issue, replace(new_event(by, "merged"), commit_id=sha))
    set_state(by, issue, "closed")
    if pull.base_ref == by.repository.default_branch:
        for number in CLOSING.findall(issue.body or ""):
            other = by.repository.issues.get(int(number))
            if other and other.pull is None:
                set_state(by, other, "closed", "completed", sha)
    return sha


def _merge_message(repository: Repository, issue: Issue, pull: Pull, *, squash: bool) -> str:
    if squash:
        return f"{issue.title} (#{issue.number})\n\n{issue.body or ''}"
    head = f"{repository.owner.login}/{pull.head_ref}"
    return f"Merge pull request #{issue.number} from {head}\n\n{issue.title}"
