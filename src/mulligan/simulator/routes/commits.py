"""What is in the bare repository: branches, refs, commits, comparisons and files."""

from mulligan.domain.issue import Permission
from mulligan.simulator import git_shapes
from mulligan.simulator.bare import Bare
from mulligan.simulator.call import Call
from mulligan.simulator.refused import Refused, not_found
from mulligan.simulator.reply import Reply


def branches(call: Call) -> Reply:
    """List the branches."""
    place = call.place
    found = sorted(_bare(call).branches().items())
    return call.page(found, lambda pair: git_shapes.branch(place, *pair))


def branch(call: Call) -> Reply:
    """Show a branch with its commit."""
    bare, name = _bare(call), call.params["name"]
    sha = bare.branches().get(name)
    if sha is None:
        raise Refused(404, "Branch not found")
    commit = bare.commits(sha, limit=1)[0]
    return Reply(200, git_shapes.branch(call.place, name, sha, commit))


def ref(call: Call) -> Reply:
    """Show the one reference of this name."""
    name = f"refs/{call.params['name']}"
    found = _bare(call).refs(name).get(name)
    if found is None:
        raise not_found()
    return Reply(200, git_shapes.ref(call.place, name, *found))


def matching_refs(call: Call) -> Reply:
    """List the references whose name starts so."""
    place, start = call.place, f"refs/{call.params['name']}"
    refs = _bare(call).refs("refs/").items()
    found = [(name, *facts) for name, facts in refs if name.startswith(start)]
    return call.page(found, lambda one: git_shapes.ref(place, *one))


def delete_ref(call: Call) -> Reply:
    """Delete a reference."""
    call.doer(Permission.WRITE, not_found)
    name = f"refs/{call.params['name']}"
    if name not in _bare(call).refs(name):
        raise Refused(422, "Reference does not exist")
    _bare(call).delete(name)
    return Reply(204)


def commits(call: Call) -> Reply:
    """List the commits of a branch, newest first."""
    place = call.place
    start = call.query.get("sha") or place.repository.default_branch
    found = _bare(call).commits(_resolve(call, start))
    return call.page(found, lambda commit: git_shapes.commit(place, commit))


def commit(call: Call) -> Reply:
    """Show a commit, named by branch, tag or id, with its files."""
    sha, place, bare = _resolve(call, call.params["name"]), call.place, _bare(call)
    found = bare.commits(sha, limit=1)[0]
    changes = bare.changes(found.parents[0], sha) if found.parents else []
    files = [git_shapes.changed_file(place, sha, one) for one in changes]
    return Reply(200, {**git_shapes.commit(place, found), "files": files})


def compare(call: Call) -> Reply:
    """Compare two commits, written `base...head`."""
    base_name, dots, head_name = call.params["span"].partition("...")
    if not dots:
        raise not_found()
    place, bare = call.place, _bare(call)
    base, head = _resolve(call, base_name), _resolve(call, head_name.rpartition(":")[2])
    start = bare.common(base, head)
    if start is None:
        raise Refused(404, f"No common ancestor between {base_name} and {head_name}.")
    ahead, behind = bare.ahead(base, head), bare.ahead(head, base)
    words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
    changes = bare.changes(start, head)
    return Reply(
        200,
        {
            "url": f"{place.api}/compare/{base_name}...{head_name}",
            "html_url": f"{place.html}/compare/{base_name}...{head_name}",
            "base_commit": git_shapes.commit(place, bare.commits(base, limit=1)[0]),
            "merge_base_commit": git_shapes.commit(place, bare.commits(start, limit=1)[0]),
            "status": words.get((ahead > 0, behind > 0), "diverged"),
            "ahead_by": ahead,
            "behind_by": behind,
            "total_commits": ahead,
            "commits": [
                git_shapes.commit(place, one) for one in bare.commits(f"{base}..{head}")[::-1]
            ],
            "files": [git_shapes.changed_file(place, head, one) for one in changes],
        },
    )


def contents(call: Call) -> Reply:
    """Show a file with its content, or list a directory."""
    place, bare = call.place, _bare(call)
    at = call.query.get("ref") or place.repository.default_branch
    path = call.params.get("name", "").strip("/")
    found = bare.entries(_resolve(call, at), path)
    if not found:
        raise not_found()
    if len(found) == 1 and found[0].path == path:
        return Reply(200, git_shapes.content(place, found[0], at, bare.read(found[0].sha)))
    return Reply(200, [git_shapes.content(place, one, at) for one in found])


def _bare(call: Call) -> Bare:
    return Bare(call.repository().bare)


def _resolve(call: Call, revision: str) -> str:
    sha = _bare(call).resolve(revision)
    if sha is None:
        raise Refused(404, f"No commit found for the ref {revision}")
    return sha


REPO = "/repos/{owner}/{repo}"
ROUTES = (
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
