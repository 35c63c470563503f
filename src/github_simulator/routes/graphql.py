"""The GraphQL that Mulligan uses: edits of texts, the viewer, the end of a draft, labels."""

import re
from collections.abc import Iterator
from datetime import datetime

from pydantic import JsonValue

from github_simulator.issues import add_labels, edit_comment, remove_label
from github_simulator.json_shapes import RepositoryUrls, timestamp
from github_simulator.pulls import closers_of, mark_ready
from github_simulator.records import Actor, Comment, Issue, Permission, Pull, Repository, User
from github_simulator.reply import ErrorReply, Json, Reply, Shape, not_found
from github_simulator.request import ApiCall

EDITS = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name, followRenames: false) {
    nameWithOwner
    issue(number: $number) {
      number
      author { __typename login ... on User { databaseId } }
      lastEditedAt
      includesCreatedEdit
      editor { __typename login ... on User { databaseId } }
      userContentEdits(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { editedAt editor { __typename login ... on User { databaseId } } }
      }
    }
  }
}
"""
COMMENT_EDITS = """
query($id: ID!) {
  node(id: $id) {
    ... on IssueComment {
      databaseId
      body
      author { __typename login ... on User { databaseId } }
      lastEditedAt
      editor { __typename login ... on User { databaseId } }
      userContentEdits(first: 100) {
        pageInfo { hasNextPage endCursor }
        nodes { editedAt editor { __typename login ... on User { databaseId } } }
      }
    }
  }
}
"""
READY = """
mutation($pull: ID!) {
  markPullRequestReadyForReview(input: {pullRequestId: $pull}) {
    pullRequest { number isDraft }
  }
}
"""
SHOW_STAGE = """
mutation(
  $issue: ID!, $comment: ID!, $body: String!
  $add: [ID!]!, $adds: Boolean!, $remove: [ID!]!, $removes: Boolean!
) {
  added: addLabelsToLabelable(input: {labelableId: $issue, labelIds: $add}) @include(if: $adds) {
    labelable { labels(first: 100) { nodes { name } } }
  }
  removed: removeLabelsFromLabelable(
    input: {labelableId: $issue, labelIds: $remove}
  ) @include(if: $removes) {
    labelable { labels(first: 100) { nodes { name } } }
  }
  edited: updateIssueComment(input: {id: $comment, body: $body}) {
    issueComment { databaseId body }
  }
}
"""
CLOSERS = """
fragment Closers on Issue {
  number
  updatedAt
  closedByPullRequestsReferences(first: 20) {
    nodes {
      number
      url
      state
      isDraft
      headRefName
      headRepository { nameWithOwner }
      author { __typename login ... on User { databaseId } }
    }
  }
}
"""
CLOSED_ISSUE = re.compile(r"i[0-9]+: issue\(number: ([0-9]+)\)")
VIEWER = "query { viewer { __typename login } }"
PAGE = 100


def ask(call: ApiCall) -> Reply:
    """Answer a known query; like GitHub, report errors with status 200."""
    if not call.world.graphql:
        raise not_found()
    if call.user is None:
        raise ErrorReply(401, "This endpoint requires you to be authenticated.")
    query = " ".join((call.fields.text("query") or "").split())
    if query == " ".join(VIEWER.split()):
        return Reply(200, {"data": {"viewer": _actor(call.user)}})
    if query == " ".join(EDITS.split()):
        return _edits(call)
    if query == " ".join(COMMENT_EDITS.split()):
        return _comment_edits(call)
    if query == " ".join(READY.split()):
        return _ready(call)
    if query == " ".join(SHOW_STAGE.split()):
        return _show_stage(call)
    if query.endswith(" ".join(CLOSERS.split())):
        return _closers(call, [int(number) for number in CLOSED_ISSUE.findall(query)])
    return _problem("The simulator does not know this query.")


def _given(call: ApiCall) -> dict[str, JsonValue]:
    variables = call.fields.values.get("variables")
    return variables if isinstance(variables, dict) else {}


def _ready(call: ApiCall) -> Reply:
    """Mark a draft as ready; its author may, and anybody with write permission."""
    name = _given(call).get("pull")
    found = next((one for one in _pulls(call) if name == f"PR_{one[2].id}"), None)
    if found is None:
        return _problem(f"Could not resolve to a node with the global id of '{name}'.", "NOT_FOUND")
    repository, issue, pull = found
    by = Actor(call.signed_in_user(), repository, call.world.stamps)
    if by.user != issue.author and not by.may(Permission.WRITE):
        return _problem("Resource not accessible by personal access token", "FORBIDDEN")
    mark_ready(by, issue, pull)
    shown: Shape = {"pullRequest": {"number": issue.number, "isDraft": pull.draft}}
    return Reply(200, {"data": {"markPullRequestReadyForReview": shown}})


def _show_stage(call: ApiCall) -> Reply:
    """Change the labels of an issue and a comment, one after another."""
    given = _given(call)
    found = next((one for one in _issues(call) if given.get("issue") == f"I_{one[1].id}"), None)
    comment = next((one for one in _comments(call) if given.get("comment") == f"IC_{one.id}"), None)
    if found is None or comment is None:
        return _problem("Could not resolve to a node with the global id.", "NOT_FOUND")
    repository, issue = found
    by = Actor(call.signed_in_user(), repository, call.world.stamps)
    if not by.may(Permission.WRITE):
        return _problem("Resource not accessible by personal access token", "FORBIDDEN")
    names = {f"LA_{label.id}": label.name for label in repository.labels}
    shown: Shape = {}
    for given_ids, change, change_label in (
        ("add", "added", _add_label),
        ("remove", "removed", _remove_label),
    ):
        wanted = given.get(given_ids)
        if not given.get(f"{given_ids}s") or not isinstance(wanted, list):
            continue
        for node in wanted:
            change_label(by, issue, names[str(node)])
        nodes: list[Json] = [{"name": name} for name in issue.label_names]
        shown[change] = {"labelable": {"labels": {"nodes": nodes}}}
    edit_comment(by, comment, str(given.get("body")))
    shown["edited"] = {"issueComment": {"databaseId": comment.id, "body": comment.body}}
    return Reply(200, {"data": shown})


def _add_label(by: Actor, issue: Issue, name: str) -> None:
    add_labels(by, issue, [name])


def _remove_label(by: Actor, issue: Issue, name: str) -> None:
    if name in issue.label_names:
        remove_label(by, issue, name)


def _issues(call: ApiCall) -> Iterator[tuple[Repository, Issue]]:
    for repository in call.world.repositories.values():
        if repository.is_visible_to(call.user):
            for issue in repository.visible():
                yield repository, issue


def _pulls(call: ApiCall) -> Iterator[tuple[Repository, Issue, Pull]]:
    for repository, issue in _issues(call):
        if issue.pull:
            yield repository, issue, issue.pull


def _edits(call: ApiCall) -> Reply:
    given = _given(call)
    name = f"{given.get('owner')}/{given.get('name')}"
    repository = call.world.repositories.get(name.lower())
    if repository is None or not repository.is_visible_to(call.user):
        return _problem(f"Could not resolve to a Repository with the name '{name}'.", "NOT_FOUND")
    issue = _issue(repository, given.get("number"))
    if issue is None:
        number = given.get("number")
        return _problem(f"Could not resolve to an Issue with the number of {number}.", "NOT_FOUND")
    after = given.get("after")
    start = int(after) if isinstance(after, str) and after.isdecimal() else 0
    found: Shape = {"nameWithOwner": repository.full_name, "issue": _history(issue, start)}
    return Reply(200, {"data": {"repository": found}})


def _closers(call: ApiCall, numbers: list[int]) -> Reply:
    """Return the open and merged pull requests whose text closes each issue."""
    given = _given(call)
    name = f"{given.get('owner')}/{given.get('name')}"
    repository = call.world.repositories.get(name.lower())
    if repository is None or not repository.is_visible_to(call.user):
        return _problem(f"Could not resolve to a Repository with the name '{name}'.", "NOT_FOUND")
    call.world.follow_branches(repository)
    shown: Shape = {}
    for number in numbers:
        issue = _issue(repository, number)
        if issue is None:
            return _problem(
                f"Could not resolve to an Issue with the number of {number}.", "NOT_FOUND"
            )
        nodes: list[Json] = [
            {
                "number": closer.number,
                "url": f"{RepositoryUrls(call.base, repository).html}/pull/{closer.number}",
                "state": "MERGED" if pull.merged_at else "OPEN",
                "isDraft": pull.draft,
                "headRefName": pull.head_ref,
                "headRepository": {"nameWithOwner": repository.full_name},
                "author": _actor(closer.author),
            }
            for closer, pull in closers_of(repository, number)
        ]
        shown[f"i{number}"] = {
            "number": number,
            "updatedAt": timestamp(issue.updated_at),
            "closedByPullRequestsReferences": {"nodes": nodes},
        }
    return Reply(200, {"data": {"repository": shown}})


def _comment_edits(call: ApiCall) -> Reply:
    name = _given(call).get("id")
    found = next((one for one in _comments(call) if name == f"IC_{one.id}"), None)
    if found is None:
        return _problem(f"Could not resolve to a node with the global id of '{name}'.", "NOT_FOUND")
    edits = _edit_fields(found, 0)
    shown: Shape = {"databaseId": found.id, "body": found.body, **edits}
    return Reply(200, {"data": {"node": shown}})


def _comments(call: ApiCall) -> Iterator[Comment]:
    for _, issue in _issues(call):
        yield from issue.comments


def _issue(repository: Repository, number: JsonValue) -> Issue | None:
    found = repository.issues.get(number) if isinstance(number, int) else None
    return None if found is None or found.deleted or found.moved_to or found.pull else found


def _history(issue: Issue, start: int) -> Shape:
    """Return the edits of an issue's text."""
    edits: Shape = {"includesCreatedEdit": bool(issue.edits), **_edit_fields(issue, start)}
    return {"number": issue.number, **edits}


def _edit_fields(text: Issue | Comment, start: int) -> Shape:
    """Return the edits of a text, newest first; the first edit also adds the creation."""
    edits = [(edit.at, edit.editor) for edit in reversed(text.edits)]
    creation = [(text.created_at, text.author)] if edits else []
    listed = [*edits, *creation]
    shown, end = listed[start : start + PAGE], start + PAGE
    nodes: list[Json] = [{"editedAt": timestamp(at), "editor": _actor(who)} for at, who in shown]
    last: tuple[datetime | None, User | None] = edits[0] if edits else (None, None)
    return {
        "author": _actor(text.author),
        "lastEditedAt": timestamp(last[0]),
        "editor": _actor(last[1]),
        "userContentEdits": {
            "pageInfo": {"hasNextPage": len(listed) > end, "endCursor": str(end)},
            "nodes": nodes,
        },
    }


def _actor(user: User | None) -> Shape | None:
    """Return an account; GraphQL omits the `[bot]` of an app's login."""
    if user is None or user.is_gone:
        return None
    if user.login.endswith("[bot]"):
        return {"__typename": "Bot", "login": user.login.removesuffix("[bot]")}
    return {"__typename": "User", "login": user.login, "databaseId": user.id}


def _problem(message: str, kind: str | None = None) -> Reply:
    problem: Shape = {"message": message, **({"type": kind} if kind else {})}
    return Reply(200, {"data": None, "errors": [problem]})


ROUTES = (("POST", "/graphql", ask),)
