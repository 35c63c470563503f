"""The JSON that GitHub gives for accounts, repositories, issues, comments and events. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from mulligan.domain.issue import Permission
from mulligan.simulator.issues import REACTIONS
from mulligan.simulator.records import (
    Comment,
    Event,
    Issue,
    Label,
    Reaction,
    Repository,
    User,
)

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Shape = dict[str, Json]

LEGACY = {Permission.MAINTAIN: Permission.WRITE, Permission.TRIAGE: Permission.READ}
GHOST = User(10137, "ghost")
LINKED = {
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


@dataclass(frozen=True, slots=True)
class Place:
    """A repository as it is reached: `base` is where the server answers, without a slash."""

    base: str
    repository: Repository

    @property
    def api(self) -> str:
        """Give the repository's address in the API."""
        return f"{self.base}/repos/{self.repository.full_name}"

    @property
    def html(self) -> str:
        """Give the repository's address for people."""
        return f"{self.base}/{self.repository.full_name}"


def when(moment: datetime | None) -> str | None:
    """Write a time as GitHub does: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def user(base: str, one: User) -> Shape:
    """Shape a user as it is embedded everywhere; all that are gone are one ghost."""
    one = GHOST if one.is_gone else one
    api = f"{base}/users/{one.login}"
    return {
        "login": one.login,
        "id": one.id,
        "node_id": f"U_{one.id}",
        "avatar_url": f"{base}/avatars/u/{one.id}?v=4",
        "gravatar_id": "",
        "url": api,
        "html_url": f"{base}/{one.login}",
        **{name: api + rest for name, rest in LINKED.items()},
        "type": one.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def label(place: Place, one: Label) -> Shape:
    """Shape a label."""
    return {
        "id": one.id,
        "node_id": f"LA_{one.id}",
        "url": f"{place.api}/labels/{quote(one.name, safe='')}",
        "name": one.name,
        "color": one.color,
        "default": False,
        "description": one.description,
    }


def association(place: Place, author: User) -> str:
    """Tell what the author is to the repository."""
    if author.login == place.repository.owner.login:
        return "OWNER"
    return "COLLABORATOR" if place.repository.is_collaborator(author) else "NONE"


def rollup(url: str, reactions: Sequence[Reaction]) -> Shape:
    """Count the reactions by kind."""
    counts = Counter(reaction.content for reaction in reactions)
    kinds: Shape = {kind: counts[kind] for kind in REACTIONS}
    return {"url": f"{url}/reactions", "total_count": len(reactions), **kinds}


def reaction(base: str, one: Reaction) -> Shape:
    """Shape a reaction."""
    return {
        "id": one.id,
        "node_id": f"REA_{one.id}",
        "user": user(base, one.user),
        "content": one.content,
        "created_at": when(one.created_at),
    }


def issue(place: Place, one: Issue, *, whole: bool = False) -> Shape:
    """Shape an issue; a pull request among issues has `pull_request`."""
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
        "reactions": rollup(api, one.reactions),
        "performed_via_github_app": None,
        **pull,
        **({"closed_by": closed_by} if whole else {}),
    }


def common(place: Place, one: Issue) -> Shape:
    """Shape what an issue and a pull request have in common."""
    people: list[Json] = [user(place.base, person) for person in one.assignees]
    return {
        "labels": [label(place, each) for each in one.labels],
        "state": one.state,
        "locked": one.locked,
        "active_lock_reason": None,
        "assignee": people[0] if people else None,
        "assignees": people,
        "milestone": None,
        "created_at": when(one.created_at),
        "updated_at": when(one.updated_at),
        "closed_at": when(one.closed_at),
        "author_association": association(place, one.author),
    }


def _pull_links(place: Place, one: Issue) -> Shape:
    html = f"{place.html}/pull/{one.number}"
    return {
        "url": f"{place.api}/pulls/{one.number}",
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "merged_at": when(one.pull.merged_at if one.pull else None),
    }


def comment(place: Place, on: Issue, one: Comment) -> Shape:
    """Shape a comment."""
    api = f"{place.api}/issues/comments/{one.id}"
    kind = "pull" if on.pull else "issues"
    return {
        "url": api,
        "html_url": f"{place.html}/{kind}/{on.number}#issuecomment-{one.id}",
        "issue_url": f"{place.api}/issues/{on.number}",
        "id": one.id,
        "node_id": f"IC_{one.id}",
        "user": user(place.base, one.author),
        "created_at": when(one.created_at),
        "updated_at": when(one.updated_at),
        "author_association": association(place, one.author),
        "body": one.body,
        "reactions": rollup(api, one.reactions),
        "performed_via_github_app": None,
    }


def event(place: Place, one: Event) -> Shape:
    """Shape an event; only what its kind needs is there besides the common part."""
    shape: Shape = {
        "id": one.id,
        "node_id": f"EV_{one.id}",
        "url": f"{place.api}/issues/events/{one.id}",
        "actor": None if one.actor.is_gone else user(place.base, one.actor),
        "event": one.kind,
        "commit_id": one.commit_id,
        "commit_url": f"{place.api}/commits/{one.commit_id}" if one.commit_id else None,
        "created_at": when(one.created_at),
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


def commented(place: Place, on: Issue, one: Comment) -> Shape:
    """Shape a comment as an entry of the timeline."""
    return {
        **comment(place, on, one),
        "event": "commented",
        "actor": user(place.base, one.author),
    }


def permission(base: str, one: User, role: Permission, name: str | None = None) -> Shape:
    """Shape a permission: the legacy word of four, and the role's own name."""
    return {
        "permission": LEGACY.get(role, role),
        "role_name": name or role,
        "user": {**user(base, one), "role_name": name or role},
    }
