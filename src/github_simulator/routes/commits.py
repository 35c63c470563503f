"""Check runs with their logs, and statuses of commits."""

from dataclasses import replace

from github_simulator import json_shapes
from github_simulator.bare_repository import BareRepository
from github_simulator.records import ACTIONS, Annotation, CheckOutput, CheckRun, Permission
from github_simulator.reply import ErrorReply, Reply, forbidden, not_found
from github_simulator.request import ApiCall

REPO = "/repos/{owner}/{repo}"

SIGNATURE = "c0ffee"

MAX_ANNOTATIONS = 50


def checks(call: ApiCall) -> Reply:
    """List the check runs of a commit, within an object."""
    place, every = call.urls, call.query.get("filter") == "all"
    found = call.world.runs.checks_of(_commit(call), every=every)
    page = call.page(found, lambda run: json_shapes.check_run(place, run))
    return replace(page, body={"total_count": len(found), "check_runs": page.body})


def check(call: ApiCall) -> Reply:
    """Show a check run."""
    return Reply(200, json_shapes.check_run(call.urls, _run(call)))


def create(call: ApiCall) -> Reply:
    """Create a check run, as only an app can."""
    by, fields = call.actor(Permission.WRITE, forbidden), call.fields
    if by.user.type != "Bot":
        raise ErrorReply(403, "You must authenticate via a GitHub App.")
    repository, shown = call.repository(), fields.part("output")
    sha = BareRepository(repository.bare).resolve(fields.required("head_sha"))
    if sha is None:
        raise ErrorReply(422, f"No commit found for SHA: {fields.required('head_sha')}")
    notes = shown.parts("annotations")
    if len(notes) > MAX_ANNOTATIONS:
        message = f"Invalid request.\n\nNo more than {MAX_ANNOTATIONS} items are allowed."
        raise ErrorReply(422, message)
    found = [
        Annotation(
            each.required("path"),
            each.number("start_line") or 1,
            each.required("message"),
            each.required("annotation_level"),
            each.text("title"),
        )
        for each in notes
    ]
    output = CheckOutput(None, shown.required("title"), shown.required("summary"), found)
    call.world.runs.check(
        (repository.full_name, sha),
        fields.required("name"),
        fields.text("conclusion"),
        output,
        by.user.login.removesuffix("[bot]"),
        external_id=fields.text("external_id") or "",
    )
    return Reply(201, json_shapes.check_run(call.urls, call.world.runs.checks[-1]))


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
    url = f"{call.base}/signed-logs/{run.id}/{SIGNATURE}"
    return Reply(302, None, {"location": url})


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
    ("POST", f"{REPO}/check-runs", create),
    ("GET", f"{REPO}/check-runs/{{run}}", check),
    ("GET", f"{REPO}/check-runs/{{run}}/annotations", annotations),
    ("GET", f"{REPO}/actions/jobs/{{run}}/logs", log),
    ("GET", "/signed-logs/{run}/{signature}", kept_log),
)
