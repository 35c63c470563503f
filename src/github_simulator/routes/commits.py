"""Check runs with their logs, and statuses of commits."""

from dataclasses import replace

from github_simulator import json_shapes
from github_simulator.bare_repository import BareRepository
from github_simulator.records import ACTIONS, CheckRun
from github_simulator.reply import ErrorReply, Reply, not_found
from github_simulator.request import ApiCall

REPO = "/repos/{owner}/{repo}"

SIGNATURE = "c0ffee"


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
)
