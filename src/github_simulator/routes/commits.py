"""Branches, commits, comparisons and files of the bare repository, and checks on commits."""

from dataclasses import replace

from github_simulator import json_shapes
from github_simulator.bare_repository import BareRepository
from github_simulator.records import ACTIONS, CheckRun, Permission
from github_simulator.reply import ErrorReply, Reply, not_found
from github_simulator.request import ApiCall

REPO = "/repos/{owner}/{repo}"

SIGNATURE = "c0ffee"


# Git data.


def branches(call: ApiCall) -> Reply:
    """List the branches."""
    place = call.urls
    found = sorted(_bare(call).branches().items())
    return call.page(found, lambda pair: json_shapes.branch(place, *pair))


def branch(call: ApiCall) -> Reply:
    """Show a branch with its commit."""
    bare, name = _bare(call), call.params["name"]
    sha = bare.branches().get(name)
    if sha is None:
        raise ErrorReply(404, "Branch not found")
    commit = bare.commits(sha, limit=1)[0]
    return Reply(200, json_shapes.branch(call.urls, name, sha, commit))


def ref(call: ApiCall) -> Reply:
    """Show the reference with this exact name."""
    name = f"refs/{call.params['name']}"
    found = _bare(call).refs(name).get(name)
    if found is None:
        raise not_found()
    return Reply(200, json_shapes.ref(call.urls, name, *found))


def matching_refs(call: ApiCall) -> Reply:
    """List the references whose name begins with this."""
    place, start = call.urls, f"refs/{call.params['name']}"
    refs = _bare(call).refs("refs/").items()
    found = [(name, *facts) for name, facts in refs if name.startswith(start)]
    return call.page(found, lambda one: json_shapes.ref(place, *one))


def delete_ref(call: ApiCall) -> Reply:
    """Delete a reference."""
    call.actor(Permission.WRITE, not_found)
    name = f"refs/{call.params['name']}"
    if name not in _bare(call).refs(name):
        raise ErrorReply(422, "Reference does not exist")
    _bare(call).delete(name)
    return Reply(204)


def commits(call: ApiCall) -> Reply:
    """List the commits of a branch, newest first."""
    place = call.urls
    start = call.query.get("sha") or place.repository.default_branch
    found = _bare(call).commits(_resolve(call, start))
    return call.page(found, lambda commit: json_shapes.commit(place, commit))


def commit(call: ApiCall) -> Reply:
    """Show a commit, by branch, tag or id, with its files."""
    sha, place, bare = _resolve(call, call.params["name"]), call.urls, _bare(call)
    found = bare.commits(sha, limit=1)[0]
    changes = bare.changes(found.parents[0], sha) if found.parents else []
    files = [json_shapes.changed_file(place, sha, one) for one in changes]
    return Reply(200, {**json_shapes.commit(place, found), "files": files})


def compare(call: ApiCall) -> Reply:
    """Compare two commits, written `base...head`."""
    base_name, dots, head_name = call.params["span"].partition("...")
    if not dots:
        raise not_found()
    place, bare = call.urls, _bare(call)
    base, head = _resolve(call, base_name), _resolve(call, head_name.rpartition(":")[2])
    start = bare.merge_base(base, head)
    if start is None:
        raise ErrorReply(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead, behind = bare.count_ahead(base, head), bare.count_ahead(head, base)
    words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
    changes = bare.changes(start, head)
    return Reply(
        200,
        {
            "url": f"{place.api}/compare/{base_name}...{head_name}",
            "html_url": f"{place.html}/compare/{base_name}...{head_name}",
            "base_commit": json_shapes.commit(place, bare.commits(base, limit=1)[0]),
            "merge_base_commit": json_shapes.commit(place, bare.commits(start, limit=1)[0]),
            "status": words.get((ahead > 0, behind > 0), "diverged"),
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "commits": [
                json_shapes.commit(place, one) for one in bare.commits(f"{base}..{head}")[::-1]
            ],
            "files": [json_shapes.changed_file(place, head, one) for one in changes],
        },
    )


def contents(call: ApiCall) -> Reply:
    """Show a file with its content, or list a directory."""
    place, bare = call.urls, _bare(call)
    at = call.query.get("ref") or place.repository.default_branch
    path = call.params.get("name", "").strip("/")
    found = bare.entries(_resolve(call, at), path)
    if not found:
        raise not_found()
    if len(found) == 1 and found[0].path == path:
        return Reply(200, json_shapes.content(place, found[0], at, bare.read(found[0].sha)))
    return Reply(200, [json_shapes.content(place, one, at) for one in found])


def _bare(call: ApiCall) -> BareRepository:
    return BareRepository(call.repository().bare)


def _resolve(call: ApiCall, revision: str) -> str:
    sha = _bare(call).resolve(revision)
    if sha is None:
        raise ErrorReply(404, f"No commit found for the ref {revision}")
    return sha


# Check runs and statuses of commits.


def checks(call: ApiCall) -> Reply:
    """List the check runs of a commit, within an object."""
    place, every = call.urls, call.query.get("filter") == "all"
    found = call.world.runs.checks_of(_commit(call), every=every)
    page = call.page(found, lambda run: json_shapes.check_run(place, run))
    return replace(page, body={"total_count": len(found), "check_runs": page.body})


def check(call: ApiCall) -> Reply:
    """Show a check run."""
    return Reply(200, json_shapes.check_run(call.urls, _run(call)))


def annotations(call: ApiCall) -> Reply:
    """List the annotations of a check run."""
    run = _run(call)
    return call.page(run.output.annotations, json_shapes.annotation)


def status(call: ApiCall) -> Reply:
    """Show the combined status of a commit; GitHub calls it pending if there is none."""
    place, commit = call.urls, _commit(call)
    found = call.world.runs.statuses_of(commit)
    page = call.page(found, lambda one: json_shapes.status(place, commit[1], one))
    return replace(page, body=json_shapes.combined_status(place, commit[1], found, page.body))


def log(call: ApiCall) -> Reply:
    """Redirect to the log's storage: a signed address that expires."""
    run = _run(call)
    if call.user is None:
        raise ErrorReply(403, "Must have admin rights to Repository.")
    if run.app != ACTIONS or run.output.log is None:
        raise not_found()
    there = f"{call.base}/signed-logs/{run.id}/{SIGNATURE}"
    return Reply(302, None, {"location": there})


def kept_log(call: ApiCall) -> Reply:
    """Return a log to anybody with its address; refuse a request that also sends a token."""
    if call.token:
        raise ErrorReply(400, "InvalidAuthenticationInfo")
    found = next((run for run in call.world.runs.checks if str(run.id) == call.params["run"]), None)
    if found is None or call.params["signature"] != SIGNATURE:
        raise ErrorReply(403, "AuthenticationFailed")
    return Reply(200, headers={"content-type": "text/plain"}, page=found.output.log or "")


def _commit(call: ApiCall) -> tuple[str, str]:
    repository = call.repository()
    sha = BareRepository(repository.bare).resolve(call.params["ref"])
    if sha is None:
        raise ErrorReply(422, f"No commit found for SHA: {call.params['ref']}")
    return repository.full_name.lower(), sha


def _run(call: ApiCall) -> CheckRun:
    found = call.world.runs.find(call.repository().full_name, call.params["run"])
    if found is None:
        raise not_found()
    return found


ROUTES = (
    ("GET", f"{REPO}/commits/{{ref}}/check-runs", checks),
    ("GET", f"{REPO}/commits/{{ref}}/status", status),
    ("GET", f"{REPO}/check-runs/{{run}}", check),
    ("GET", f"{REPO}/check-runs/{{run}}/annotations", annotations),
    ("GET", f"{REPO}/actions/jobs/{{run}}/logs", log),
    ("GET", "/signed-logs/{run}/{signature}", kept_log),
    ("GET", f"{REPO}/branches", branches),
    ("GET", f"{REPO}/branches/{{name:path}}", branch),
    ("GET", f"{REPO}/git/ref/{{name:path}}", ref),
    ("GET", f"{REPO}/git/matching-refs/{{name:path}}", matching_refs),
    ("DELETE", f"{REPO}/git/refs/{{name:path}}", delete_ref),
    ("GET", f"{REPO}/commits", commits),
    ("GET", f"{REPO}/commits/{{name:path}}", commit),
    ("GET", f"{REPO}/compare/{{span:path}}", compare),
    ("GET", f"{REPO}/contents", contents),
    ("GET", f"{REPO}/contents/{{name:path}}", contents),
)
