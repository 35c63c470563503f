"""What runs on a commit on GitHub: check runs and statuses, and what a failed one printed (P4)."""

from mulligan.domain.ci import CheckRun
from mulligan.errors import DeniedError
from mulligan.github.client import Client
from mulligan.github.run_shapes import (
    ANNOTATIONS,
    CHECK_RUN,
    CHECK_RUNS,
    STATUSES,
    AnnotationShape,
    CheckRunShape,
    StatusShape,
)

ACTIONS = "github-actions"
"""The app whose check runs are jobs, with the same ids."""
STATUS = "status"
"""Stands for the app of a commit status, which has none."""
PENDING = "pending"


def runs_on(client: Client, repository: str, sha: str) -> tuple[CheckRun, ...]:
    """Read check runs and statuses of a commit; free of charge while nothing changed."""
    commit = f"/repos/{repository}/commits/{sha}"
    checks = client.read_all(CHECK_RUNS, f"{commit}/check-runs")
    statuses = client.read_all(STATUSES, f"{commit}/status")
    return (*map(_of_check, checks), *map(_of_status, statuses))


def log_of(client: Client, repository: str, run: CheckRun) -> bytes:
    """Fetch the end of a job's log; of other checks, and where it is gone, what they say."""
    if run.app == STATUS:
        return run.said.encode()
    if run.app == ACTIONS:
        try:
            return client.download(f"/repos/{repository}/actions/jobs/{run.id}/logs")
        except DeniedError:
            # Logs are kept for a while, and to read them takes a right of its own.
            return _said(client, repository, run)
    return _said(client, repository, run)


def _said(client: Client, repository: str, run: CheckRun) -> bytes:
    path = f"/repos/{repository}/check-runs/{run.id}"
    output = client.read(CHECK_RUN, path).output
    notes = client.read_all(ANNOTATIONS, f"{path}/annotations")
    parts = [output.title, *map(_annotation, notes), output.summary, output.text]
    return "\n".join(part for part in parts if part).encode()


def _of_check(found: CheckRunShape) -> CheckRun:
    app = found.app.slug if found.app else ""
    done = found.status == "completed"
    suite = found.check_suite.id if found.check_suite else 0
    return CheckRun(found.id, app, found.name, found.conclusion if done else None, suite=suite)


def _of_status(found: StatusShape) -> CheckRun:
    done = None if found.state == PENDING else found.state
    return CheckRun(found.id, STATUS, found.context, done, found.description)


def _annotation(found: AnnotationShape) -> str:
    level = "error" if found.annotation_level == "failure" else found.annotation_level
    return f"{found.path}:{found.start_line}: {level}: {found.message}"
