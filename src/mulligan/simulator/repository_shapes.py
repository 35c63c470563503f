"""The JSON that GitHub gives for a repository. Pure."""

from mulligan.domain.issue import Permission
from mulligan.simulator.records import Repository
from mulligan.simulator.shapes import Place, Shape, user, when

LINKED = {
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
LADDER = {"admin": "admin", "maintain": "maintain", "push": "write", "triage": "triage"}


def repository(place: Place, role: Permission, *, signed_in: bool) -> Shape:
    """Shape a repository; `permissions` are the asking user's."""
    one = place.repository
    rights = {name: role.reaches(Permission(needed)) for name, needed in LADDER.items()}
    return {
        "id": one.id,
        "node_id": f"R_{one.id}",
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
        "owner": user(place.base, one.owner),
        "html_url": place.html,
        "url": place.api,
        **{name: place.api + rest for name, rest in LINKED.items()},
        # What can be cloned here is the bare repository itself.
        **dict.fromkeys(
            ("clone_url", "git_url", "ssh_url", "svn_url"), one.bare.absolute().as_uri()
        ),
        "created_at": when(one.created_at),
        "updated_at": when(one.created_at),
        "pushed_at": when(one.created_at),
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
    """What is the same for every repository here."""
    missing = ("description", "homepage", "language", "license", "mirror_url")
    off = ("fork", "disabled", "has_discussions", "has_downloads", "has_pages", "has_projects")
    return {
        **dict.fromkeys(missing),
        **dict.fromkeys((*off, "has_wiki"), False),
        "has_issues": True,
        "topics": [],
    }
