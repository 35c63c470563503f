"""The JSON that GitHub gives for check runs, their annotations and commit statuses. Pure."""

from collections.abc import Sequence

from mulligan.domain.issue import Permission
from mulligan.simulator.repository_shapes import repository
from mulligan.simulator.runs import Annotation, CheckRun, Status
from mulligan.simulator.shapes import Json, Place, Shape, user, when


def check_run(place: Place, one: CheckRun) -> Shape:
    """Shape a check run."""
    done, api = one.conclusion is not None, f"{place.api}/check-runs/{one.id}"
    return {
        "id": one.id,
        "node_id": f"CR_{one.id}",
        "name": one.name,
        "head_sha": one.commit[1],
        "url": api,
        "html_url": f"{place.html}/runs/{one.id}",
        "details_url": f"{place.html}/runs/{one.id}",
        "external_id": "",
        "check_suite": {"id": one.suite},
        "status": "completed" if done else "in_progress",
        "conclusion": one.conclusion,
        "started_at": when(one.at),
        "completed_at": when(one.at) if done else None,
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


def _app(place: Place, one: CheckRun) -> Shape:
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
        "created_at": when(place.repository.created_at),
        "updated_at": when(place.repository.created_at),
        "permissions": {"checks": "write"},
        "events": [],
    }


def annotation(one: Annotation) -> Shape:
    """Shape what a check run says about a line."""
    return {
        "path": one.path,
        "start_line": one.line,
        "end_line": one.line,
        "start_column": None,
        "end_column": None,
        "blob_href": "",
        "annotation_level": one.level,
        "message": one.message,
        "title": None,
        "raw_details": None,
    }


def status(place: Place, sha: str, one: Status) -> Shape:
    """Shape a commit status."""
    return {
        "url": f"{place.api}/statuses/{sha}",
        "id": one.id,
        "node_id": f"SC_{one.id}",
        "state": one.state,
        "description": one.description,
        "target_url": None,
        "avatar_url": None,
        "context": one.context,
        "created_at": when(one.at),
        "updated_at": when(one.at),
    }


def combined(place: Place, sha: str, found: Sequence[Status], page: Json) -> Shape:
    """Shape what the statuses of a commit come to; `page` is the part that was asked for."""
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
