"""Check runs and statuses of a commit, annotations, and the logs of jobs."""

from dataclasses import replace

from mulligan.simulator import run_shapes
from mulligan.simulator.bare import Bare
from mulligan.simulator.call import Call
from mulligan.simulator.refused import Refused, not_found
from mulligan.simulator.reply import Reply
from mulligan.simulator.runs import ACTIONS, CheckRun

SIGNATURE = "c0ffee"


def checks(call: Call) -> Reply:
    """List the check runs of a commit, within an object."""
    place, every = call.place, call.query.get("filter") == "all"
    found = call.world.runs.checks_of(_commit(call), every=every)
    page = call.page(found, lambda run: run_shapes.check_run(place, run))
    return replace(page, body={"total_count": len(found), "check_runs": page.body})


def check(call: Call) -> Reply:
    """Show a check run."""
    return Reply(200, run_shapes.check_run(call.place, _run(call)))


def annotations(call: Call) -> Reply:
    """List what a check run says about lines."""
    run = _run(call)
    return call.page(run.output.annotations, run_shapes.annotation)


def status(call: Call) -> Reply:
    """Show what the statuses of a commit come to; without any, GitHub calls it pending."""
    place, commit = call.place, _commit(call)
    found = call.world.runs.statuses_of(commit)
    page = call.page(found, lambda one: run_shapes.status(place, commit[1], one))
    return replace(page, body=run_shapes.combined(place, commit[1], found, page.body))


def log(call: Call) -> Reply:
    """Send the reader of a log to where it is kept: a signed address for a short time."""
    run = _run(call)
    if call.user is None:
        raise Refused(403, "Must have admin rights to Repository.")
    if run.app != ACTIONS or run.output.log is None:
        raise not_found()
    there = f"{call.base}/signed-logs/{run.id}/{SIGNATURE}"
    return Reply(302, None, {"location": there})


def kept_log(call: Call) -> Reply:
    """Give a log to whoever has its address; who shows a token as well is refused."""
    if call.token:
        raise Refused(400, "InvalidAuthenticationInfo")
    found = next((run for run in call.world.runs.checks if str(run.id) == call.params["run"]), None)
    if found is None or call.params["signature"] != SIGNATURE:
        raise Refused(403, "AuthenticationFailed")
    return Reply(200, headers={"content-type": "text/plain"}, page=found.output.log or "")


def _commit(call: Call) -> tuple[str, str]:
    repository = call.repository()
    sha = Bare(repository.bare).resolve(call.params["ref"])
    if sha is None:
        raise Refused(422, f"No commit found for SHA: {call.params['ref']}")
    return repository.full_name.lower(), sha


def _run(call: Call) -> CheckRun:
    found = call.world.runs.find(call.repository().full_name, call.params["run"])
    if found is None:
        raise not_found()
    return found


REPO = "/repos/{owner}/{repo}"
ROUTES = (
    ("GET", f"{REPO}/commits/{{ref}}/check-runs", checks),
    ("GET", f"{REPO}/commits/{{ref}}/status", status),
    ("GET", f"{REPO}/check-runs/{{run}}", check),
    ("GET", f"{REPO}/check-runs/{{run}}/annotations", annotations),
    ("GET", f"{REPO}/actions/jobs/{{run}}/logs", log),
    ("GET", "/signed-logs/{run}/{signature}", kept_log),
)
