"""The JSON of each resource, as GitHub returns it. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from github_simulator.records import (
    REACTIONS,
    Annotation,
    CheckRun,
    Comment,
    Event,
    Issue,
    Label,
    Permission,
    Pull,
    Reaction,
    Repository,
    Review,
    ReviewComment,
    Status,
    User,
)
from github_simulator.reply import Json, Shape

DELETED_USER = User(10137, "ghost")
"""Replaces every deleted account."""

USER_URLS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}

REPOSITORY_URLS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}

LEGACY = {Permission.MAINTAIN: Permission.WRITE, Permission.TRIAGE: Permission.READ}
"""GitHub's older names in `permission` for the newer roles."""

NEEDED_FOR = {
    "admin": Permission.ADMIN,
    "maintain": Permission.MAINTAIN,
    "push": Permission.WRITE,
    "triage": Permission.TRIAGE,
}
"""The role that each field of `permissions` needs."""


@dataclass(frozen=True, slots=True)
class RepositoryUrls:
    """A repository and the server's address, `base`, without a trailing slash."""

    base: str
    repository: Repository

    @property
    def api(self) -> str:
        """Return the repository's address in the API."""
        return f"{self.base}/repos/{self.repository.full_name}"

    @property
    def html(self) -> str:
        """Return the address of the repository's page."""
        return f"{self.base}/{self.repository.full_name}"


def timestamp(moment: datetime | None) -> str | None:
    """Format a time as GitHub does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


# Accounts and repositories.


def user(base: str, one: User) -> Shape:
    """Return a user as embedded in other objects; deleted accounts become `ghost`."""
    one = DELETED_USER if one.is_gone else one
    api = f"{base}/users/{one.login}"
    return {
        "login": one.login,
        "id": one.id,
        "node_id": f"U_{one.id}",
        "avatar_url": f"{base}/avatars/u/{one.id}?v=4",
        "gravatar_id": "",
        "url": api,
        "html_url": f"{base}/{one.login}",
        **{name: api + rest for name, rest in USER_URLS.items()},
        "type": one.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def association(place: RepositoryUrls, author: User) -> str:
    """Return the author's association with the repository."""
    if author.login == place.repository.owner.login:
        return "OWNER"
    return "COLLABORATOR" if place.repository.is_collaborator(author) else "NONE"


def permission(base: str, one: User, role: Permission, name: str | None = None) -> Shape:
    """Return a permission: the legacy name, and the name of the role."""
    return {
        "permission": LEGACY.get(role, role),
        "role_name": name or role,
        "user": {**user(base, one), "role_name": name or role},
    }


def repository(place: RepositoryUrls, role: Permission, *, signed_in: bool) -> Shape:
    """Return a repository; `permissions` are the requesting user's."""
    one = place.repository
    rights = {name: role.reaches(needed) for name, needed in NEEDED_FOR.items()}
    return {
        "id": one.id,
        "node_id": f"R_{one.id}",
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
        "owner": user(place.base, one.owner),
        "html_url": place.html,
        "url": place.api,
        **{name: place.api + rest for name, rest in REPOSITORY_URLS.items()},
        # The clone URL is the bare repository itself.
        **dict.fromkeys(
            ("clone_url", "git_url", "ssh_url", "svn_url"), one.bare.absolute().as_uri()
        ),
        "created_at": timestamp(one.created_at),
        "updated_at": timestamp(one.created_at),
        "pushed_at": timestamp(one.created_at),
        "default_branch": one.default_branch,
        "archived": one.archived,
        "visibility": "private" if one.private else "public",
        **_counts(one),
        **_never(),
        **({"permissions": {**rights, "pull": True}} if signed_in else {}),
    }


def _counts(one: Repository) -> Shape:
    open_count = sum(issue.state == "open" for issue in one.visible())
    watched = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")
    nobody: Shape = dict.fromkeys((*watched, "network_count", "subscribers_count"), 0)
    return {**nobody, "open_issues": open_count, "open_issues_count": open_count}


def _never() -> Shape:
    """Return the fields that are the same for every simulated repository."""
    missing = ("description", "homepage", "language", "license", "mirror_url")
    off = ("fork", "disabled", "has_discussions", "has_downloads", "has_pages", "has_projects")
    return {
        **dict.fromkeys(missing),
        **dict.fromkeys((*off, "has_wiki"), False),
        "has_issues": True,
        "topics": [],
    }


# Issues, their labels, comments, reactions and events.


def issue(place: RepositoryUrls, one: Issue, *, whole: bool = False) -> Shape:
    """Return an issue; a pull request among issues has `pull_request`."""
    api = f"{place.api}/issues/{one.number}"
    pull = {"pull_request": _pull_links(place, one), "draft": one.pull.draft} if one.pull else {}
    kind = "pull" if one.pull else "issues"
    closed_by = user(place.base, one.closed_by) if one.closed_by else None
    return {
        "url": api,
        "repository_url": place.api,
        "labels_url": f"{api}/labels{{/name}}",
        "comments_url": f"{api}/comments",
        "events_url": f"{api}/events",
        "timeline_url": f"{api}/timeline",
        "html_url": f"{place.html}/{kind}/{one.number}",
        "id": one.id,
        "node_id": f"I_{one.id}",
        "number": one.number,
        "title": one.title,
        "user": user(place.base, one.author),
        **common(place, one),
        "body": one.body,
        "state_reason": one.state_reason,
        "comments": len(one.comments),
        "issue_dependencies_summary": {
            "blocked_by": sum(other.state == "open" for other in one.blocked_by),
            "total_blocked_by": len(one.blocked_by),
            "blocking": 0,
            "total_blocking": 0,
        },
        "reactions": reaction_counts(api, ()),
        "performed_via_github_app": None,
        **pull,
        **({"closed_by": closed_by} if whole else {}),
    }


def common(place: RepositoryUrls, one: Issue) -> Shape:
    """Return the fields that an issue and a pull request share."""
    people: list[Json] = [user(place.base, person) for person in one.assignees]
    return {
        "labels": [label(place, each) for each in one.labels],
        "state": one.state,
        "locked": one.locked,
        "active_lock_reason": None,
        "assignee": people[0] if people else None,
        "assignees": people,
        "milestone": None,
        "created_at": timestamp(one.created_at),
        "updated_at": timestamp(one.updated_at),
        "closed_at": timestamp(one.closed_at),
        "author_association": association(place, one.author),
    }


def _pull_links(place: RepositoryUrls, one: Issue) -> Shape:
    html = f"{place.html}/pull/{one.number}"
    return {
        "url": f"{place.api}/pulls/{one.number}",
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "merged_at": timestamp(one.pull.merged_at if one.pull else None),
    }


def label(place: RepositoryUrls, one: Label) -> Shape:
    """Return a label."""
    return {
        "id": one.id,
        "node_id": f"LA_{one.id}",
        "url": f"{place.api}/labels/{quote(one.name, safe='')}",
        "name": one.name,
        "color": one.color,
        "default": False,
        "description": one.description,
    }


def comment(place: RepositoryUrls, on: Issue, one: Comment) -> Shape:
    """Return a comment."""
    api = f"{place.api}/issues/comments/{one.id}"
    kind = "pull" if on.pull else "issues"
    return {
        "url": api,
        "html_url": f"{place.html}/{kind}/{on.number}#issuecomment-{one.id}",
        "issue_url": f"{place.api}/issues/{on.number}",
        "id": one.id,
        "node_id": f"IC_{one.id}",
        "user": user(place.base, one.author),
        "created_at": timestamp(one.created_at),
        "updated_at": timestamp(one.updated_at),
        "author_association": association(place, one.author),
        "body": one.body,
        "reactions": reaction_counts(api, one.reactions),
        "performed_via_github_app": None,
    }


def reaction_counts(url: str, reactions: Sequence[Reaction]) -> Shape:
    """Count the reactions by kind."""
    counts = Counter(reaction.content for reaction in reactions)
    kinds: Shape = {kind: counts[kind] for kind in REACTIONS}
    return {"url": f"{url}/reactions", "total_count": len(reactions), **kinds}


def reaction(base: str, one: Reaction) -> Shape:
    """Return a reaction."""
    return {
        "id": one.id,
        "node_id": f"REA_{one.id}",
        "user": user(base, one.user),
        "content": one.content,
        "created_at": timestamp(one.created_at),
    }


def event(place: RepositoryUrls, one: Event) -> Shape:
    """Return an event: the common fields, and the fields of its kind."""
    shape: Shape = {
        "id": one.id,
        "node_id": f"EV_{one.id}",
        "url": f"{place.api}/issues/events/{one.id}",
        "actor": None if one.actor.is_gone else user(place.base, one.actor),
        "event": one.kind,
        "commit_id": one.commit_id,
        "commit_url": f"{place.api}/commits/{one.commit_id}" if one.commit_id else None,
        "created_at": timestamp(one.created_at),
        "performed_via_github_app": None,
    }
    if one.label:
        shape["label"] = {"name": one.label[0], "color": one.label[1]}
    if one.rename:
        shape["rename"] = {"from": one.rename[0], "to": one.rename[1]}
    if one.assignee:
        shape["assignee"] = user(place.base, one.assignee)
        shape["assigner"] = user(place.base, one.actor)
    if one.reviewer:
        shape["review_requester"] = user(place.base, one.actor)
        shape["requested_reviewer"] = user(place.base, one.reviewer)
    return shape


# Pull requests and reviews.


@dataclass(frozen=True, slots=True)
class Mergeability:
    """The difference between head and base: commits to merge, and whether any are missing."""

    commits: int
    behind: bool = False


def pull(place: RepositoryUrls, one: Issue, what: Pull) -> Shape:
    """Return a pull request as in lists."""
    api, html = f"{place.api}/pulls/{one.number}", f"{place.html}/pull/{one.number}"
    issue_api = f"{place.api}/issues/{one.number}"
    return {
        "url": api,
        "id": what.id,
        "node_id": f"PR_{what.id}",
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_api,
        "commits_url": f"{api}/commits",
        "review_comments_url": f"{api}/comments",
        "review_comment_url": f"{place.api}/pulls/comments{{/number}}",
        "comments_url": f"{issue_api}/comments",
        "statuses_url": f"{place.api}/statuses/{what.head_sha}",
        "number": one.number,
        "title": one.title,
        "user": user(place.base, one.author),
        "body": one.body,
        **common(place, one),
        "merged_at": timestamp(what.merged_at),
        "merge_commit_sha": what.merge_sha,
        "requested_reviewers": [user(place.base, person) for person in what.reviewers],
        "requested_teams": [],
        "draft": what.draft,
        "head": _side(place, what.head_ref, what.head_sha),
        "base": _side(place, what.base_ref, what.base_sha),
        "auto_merge": None,
        "_links": _links(place, one, what),
    }


def _links(place: RepositoryUrls, one: Issue, what: Pull) -> Shape:
    api, issue_api = f"{place.api}/pulls/{one.number}", f"{place.api}/issues/{one.number}"
    addresses = {
        "self": api,
        "html": f"{place.html}/pull/{one.number}",
        "issue": issue_api,
        "comments": f"{issue_api}/comments",
        "review_comments": f"{api}/comments",
        "review_comment": f"{place.api}/pulls/comments{{/number}}",
        "commits": f"{api}/commits",
        "statuses": f"{place.api}/statuses/{what.head_sha}",
    }
    return {name: {"href": address} for name, address in addresses.items()}


def _side(place: RepositoryUrls, ref: str, sha: str) -> Shape:
    owner = place.repository.owner
    return {
        "label": f"{owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(place.base, owner),
        "repo": repository(place, Permission.READ, signed_in=False),
    }


def pull_details(
    place: RepositoryUrls, one: Issue, what: Pull, news: Mergeability, files: list[tuple[int, int]]
) -> Shape:
    """Return a pull request as read by itself."""
    return {
        **pull(place, one, what),
        "merged": what.merged_at is not None,
        "mergeable": what.mergeable,
        "rebaseable": what.mergeable,
        "mergeable_state": _merge_state(what, news),
        "merged_by": user(place.base, what.merged_by) if what.merged_by else None,
        "comments": len(one.comments),
        "review_comments": len(what.notes),
        "maintainer_can_modify": what.can_modify,
        "commits": news.commits,
        "additions": sum(added for added, _ in files),
        "deletions": sum(deleted for _, deleted in files),
        "changed_files": len(files),
    }


def _merge_state(what: Pull, news: Mergeability) -> str:
    if what.mergeable is None:
        return "unknown"
    if not what.mergeable:
        return "dirty"
    if what.draft:
        return "draft"
    return "behind" if news.behind else "clean"


def review(place: RepositoryUrls, on: Issue, one: Review) -> Shape:
    """Return a review."""
    html = f"{place.html}/pull/{on.number}#pullrequestreview-{one.id}"
    pull_api = f"{place.api}/pulls/{on.number}"
    return {
        "id": one.id,
        "node_id": f"PRR_{one.id}",
        "user": user(place.base, one.author),
        "body": one.body,
        "state": one.state,
        "html_url": html,
        "pull_request_url": pull_api,
        "author_association": association(place, one.author),
        "_links": {"html": {"href": html}, "pull_request": {"href": pull_api}},
        "submitted_at": timestamp(one.submitted_at),
        "commit_id": one.commit_id,
    }


def review_comment(place: RepositoryUrls, on: Issue, one: ReviewComment) -> Shape:
    """Return a comment on a line; only a reply has `in_reply_to_id`."""
    html = f"{place.html}/pull/{on.number}#discussion_r{one.id}"
    api = f"{place.api}/pulls/comments/{one.id}"
    pull_api = f"{place.api}/pulls/{on.number}"
    return {
        "url": api,
        "pull_request_review_id": one.review,
        "id": one.id,
        "node_id": f"PRRC_{one.id}",
        "diff_hunk": one.hunk,
        "path": one.path,
        "commit_id": one.commit_id,
        "original_commit_id": one.commit_id,
        "user": user(place.base, one.author),
        "body": one.body,
        "created_at": timestamp(one.created_at),
        "updated_at": timestamp(one.created_at),
        "html_url": html,
        "pull_request_url": pull_api,
        "author_association": association(place, one.author),
        "_links": {"self": {"href": api}, "html": {"href": html}},
        "line": one.line,
        "original_line": one.line,
        "side": one.side,
        "subject_type": "line",
        **({"in_reply_to_id": one.in_reply_to} if one.in_reply_to else {}),
    }


# Check runs and statuses of commits.


def check_run(place: RepositoryUrls, one: CheckRun) -> Shape:
    """Return a check run."""
    done, api = one.conclusion is not None, f"{place.api}/check-runs/{one.id}"
    return {
        "id": one.id,
        "node_id": f"CR_{one.id}",
        "name": one.name,
        "head_sha": one.commit[1],
        "url": api,
        "html_url": f"{place.html}/runs/{one.id}",
        "details_url": f"{place.html}/runs/{one.id}",
        "external_id": one.external_id,
        "check_suite": {"id": one.suite},
        "status": "completed" if done else "in_progress",
        "conclusion": one.conclusion,
        "started_at": timestamp(one.at),
        "completed_at": timestamp(one.at) if done else None,
        "output": {
            "title": one.output.title,
            "summary": one.output.summary,
            "text": None,
            "annotations_count": len(one.output.annotations),
            "annotations_url": f"{api}/annotations",
        },
        "app": _app(place, one),
        "pull_requests": [],
    }


def _app(place: RepositoryUrls, one: CheckRun) -> Shape:
    page = f"{place.base}/apps/{one.app}"
    return {
        "id": 1,
        "slug": one.app,
        "node_id": f"A_{one.app}",
        "owner": user(place.base, place.repository.owner),
        "name": one.app,
        "description": None,
        "external_url": page,
        "html_url": page,
        "created_at": timestamp(place.repository.created_at),
        "updated_at": timestamp(place.repository.created_at),
        "permissions": {"checks": "write"},
        "events": [],
    }


def annotation(one: Annotation) -> Shape:
    """Return an annotation of a check run."""
    return {
        "path": one.path,
        "start_line": one.line,
        "end_line": one.line,
        "start_column": None,
        "end_column": None,
        "blob_href": "",
        "annotation_level": one.level,
        "message": one.message,
        "title": one.title,
        "raw_details": None,
    }


def status(place: RepositoryUrls, sha: str, one: Status) -> Shape:
    """Return a commit status."""
    return {
        "url": f"{place.api}/statuses/{sha}",
        "id": one.id,
        "node_id": f"SC_{one.id}",
        "state": one.state,
        "description": one.description,
        "target_url": None,
        "avatar_url": None,
        "context": one.context,
        "created_at": timestamp(one.at),
        "updated_at": timestamp(one.at),
    }


def combined_status(place: RepositoryUrls, sha: str, found: Sequence[Status], page: Json) -> Shape:
    """Return the combined status of a commit; `page` is the requested part."""
    states = {one.state for one in found}
    whole = "success" if states == {"success"} else "pending"
    return {
        "state": "failure" if states & {"failure", "error"} else whole,
        "statuses": page,
        "sha": sha,
        "total_count": len(found),
        "repository": repository(place, Permission.READ, signed_in=False),
        "commit_url": f"{place.api}/commits/{sha}",
        "url": f"{place.api}/commits/{sha}/status",
    }
