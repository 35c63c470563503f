"""The JSON that GitHub gives for pull requests, reviews, branches, commits and files. Pure."""

import base64
from dataclasses import dataclass

from mulligan.domain.issue import Permission
from mulligan.simulator.bare import Changed, Commit, Entry, Signature
from mulligan.simulator.records import Issue, Pull, Review, ReviewComment
from mulligan.simulator.repository_shapes import repository
from mulligan.simulator.shapes import (
    Json,
    Place,
    Shape,
    association,
    common,
    user,
    when,
)


@dataclass(frozen=True, slots=True)
class News:
    """How a head and its base differ: commits that would be merged, and whether any are missing."""

    commits: int
    behind: bool = False


def pull(place: Place, one: Issue, what: Pull) -> Shape:
    """Shape a pull request as it is in lists."""
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
        "merged_at": when(what.merged_at),
        "merge_commit_sha": what.merge_sha,
        "requested_reviewers": [user(place.base, person) for person in what.reviewers],
        "requested_teams": [],
        "draft": what.draft,
        "head": _side(place, what.head_ref, what.head_sha),
        "base": _side(place, what.base_ref, what.base_sha),
        "auto_merge": None,
        "_links": _links(place, one, what),
    }


def _links(place: Place, one: Issue, what: Pull) -> Shape:
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


def whole_pull(place: Place, one: Issue, what: Pull, news: News, files: list[Changed]) -> Shape:
    """Shape a pull request as it is read by itself."""
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
        "additions": sum(each.additions for each in files),
        "deletions": sum(each.deletions for each in files),
        "changed_files": len(files),
    }


def _merge_state(what: Pull, news: News) -> str:
    if what.mergeable is None:
        return "unknown"
    if not what.mergeable:
        return "dirty"
    if what.draft:
        return "draft"
    return "behind" if news.behind else "clean"


def _side(place: Place, ref: str, sha: str) -> Shape:
    owner = place.repository.owner
    return {
        "label": f"{owner.login}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(place.base, owner),
        "repo": repository(place, Permission.READ, signed_in=False),
    }


def review(place: Place, on: Issue, one: Review) -> Shape:
    """Shape a review."""
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
        "submitted_at": when(one.submitted_at),
        "commit_id": one.commit_id,
    }


def review_comment(place: Place, on: Issue, one: ReviewComment) -> Shape:
    """Shape a comment on a line; only an answer has `in_reply_to_id`."""
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
        "created_at": when(one.created_at),
        "updated_at": when(one.created_at),
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


def ref(place: Place, name: str, sha: str, kind: str = "commit") -> Shape:
    """Shape a git reference, named in full."""
    return {
        "ref": name,
        "node_id": f"REF_{name}",
        "url": f"{place.api}/git/{name}",
        "object": {"sha": sha, "type": kind, "url": f"{place.api}/git/{kind}s/{sha}"},
    }


def branch(place: Place, name: str, sha: str, what: Commit | None = None) -> Shape:
    """Shape a branch; with its commit, as it is read by itself."""
    short: Shape = {"sha": sha, "url": f"{place.api}/commits/{sha}"}
    return {
        "name": name,
        "commit": commit(place, what) if what else short,
        "protected": False,
    }


def commit(place: Place, one: Commit) -> Shape:
    """Shape a commit as it is in lists."""
    return {
        "sha": one.sha,
        "node_id": f"C_{one.sha}",
        "url": f"{place.api}/commits/{one.sha}",
        "html_url": f"{place.html}/commit/{one.sha}",
        "comments_url": f"{place.api}/commits/{one.sha}/comments",
        "commit": {
            "url": f"{place.api}/git/commits/{one.sha}",
            "author": _signature(one.author),
            "committer": _signature(one.committer),
            "message": one.message,
            "tree": {"sha": one.tree, "url": f"{place.api}/git/trees/{one.tree}"},
            "comment_count": 0,
        },
        # Git's addresses are not matched to accounts here.
        "author": None,
        "committer": None,
        "parents": [
            {
                "sha": sha,
                "url": f"{place.api}/commits/{sha}",
                "html_url": f"{place.html}/commit/{sha}",
            }
            for sha in one.parents
        ],
    }


def _signature(one: Signature) -> Shape:
    return {"name": one.name, "email": one.email, "date": one.date}


def changed_file(place: Place, sha: str, one: Changed) -> Shape:
    """Shape a changed file; its patch is left out."""
    return {
        "sha": one.blob,
        "filename": one.path,
        "status": one.status,
        "additions": one.additions,
        "deletions": one.deletions,
        "changes": one.additions + one.deletions,
        "contents_url": f"{place.api}/contents/{one.path}?ref={sha}",
    }


def content(place: Place, one: Entry, at: str, raw: bytes | None = None) -> Shape:
    """Shape a file, with its content where given, or an entry of a directory."""
    api = f"{place.api}/contents/{one.path}?ref={at}"
    kind = "dir" if one.kind == "tree" else "file"
    html = f"{place.html}/{'tree' if kind == 'dir' else 'blob'}/{at}/{one.path}"
    git_url = f"{place.api}/git/{one.kind}s/{one.sha}"
    links: Json = {"self": api, "git": git_url, "html": html}
    body: Shape = {"encoding": "base64", "content": base64.encodebytes(raw or b"").decode()}
    return {
        "type": kind,
        "size": one.size,
        "name": one.path.rsplit("/", 1)[-1],
        "path": one.path,
        "sha": one.sha,
        "url": api,
        "git_url": git_url,
        "html_url": html,
        "download_url": None,
        "_links": links,
        **({} if raw is None else body),
    }
