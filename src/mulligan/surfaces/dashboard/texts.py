"""The files of an attempt as plain text: those of attempts that the ledger knows, and no others."""

import re
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from mulligan.artifacts import Artifacts
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.errors import UsageError
from mulligan.retry.lineage import of_round
from mulligan.surfaces.dashboard.api import found
from mulligan.surfaces.dashboard.desk import Desk
from mulligan.text.escape import visible

PARTS = {
    "prompt": "prompt.md",
    "context": "context.json",
    "diff": "changes.diff",
    "log": "agent.log",
    "manifest": "manifest.json",
    "setup": "setup.log",
}
"""What can be asked for, and its file."""

CHECK = re.compile(r"check-([1-9][0-9]{0,2})")
NUMBER = re.compile(r"[1-9][0-9]{0,8}")
MOST = 1024 * 1024
"""Bytes of a file that are shown, its end: a log may have a gigabyte."""

CUT = "[… only the end of this file is shown; `mulligan inspect` has all of it]\n"


def text(desk: Desk, request: Request) -> Response:
    """Show one file, secrets taken out, and nothing that a person cannot see."""
    status, history, _ = found(desk, request)
    books, asked = desk.books, request.path_params
    number, part = asked["attempt"], asked["part"]
    if not NUMBER.fullmatch(number) or not 1 <= int(number) <= status.number:
        message = f"{status.issue} has no attempt {number}."
        raise UsageError(message)
    artifact = _artifact(status.issue, int(number), part, history, books.artifacts)
    if artifact is None:
        message = f"Attempt {number} of {status.issue} has no {part} here, or not any more."
        raise UsageError(message)
    content = books.redactor.content(books.artifacts.read(artifact, MOST + 1))
    shown = visible(content[-MOST:].decode(errors="replace"))
    return PlainTextResponse(CUT + shown if len(content) > MOST else shown)


def files_of(
    ref: IssueRef, number: int, meta: WorkerResultMeta | None, artifacts: Artifacts
) -> tuple[tuple[str, str], ...]:
    """List the files that are kept of an attempt, as the part of the address and its name."""
    rounds = len(meta.fix_rounds) if meta else 0
    wanted = [(part, part) for part in PARTS]
    for fix_round in range(1, rounds + 1):
        wanted += [
            (f"{part}-fix-{fix_round}", f"{part} of fix round {fix_round}")
            for part in ("prompt", "log")
        ]
    kept = [each for each in wanted if _kept(ref, number, each[0], artifacts)]
    checks = enumerate(meta.checks if meta else (), start=1)
    logs = [
        (f"check-{place}", f"log of {check.name}")
        for place, check in checks
        if _log_of(check, ref, number, artifacts)
    ]
    return (*kept, *logs)


def _artifact(
    ref: IssueRef,
    number: int,
    part: str,
    history: Sequence[WorkerResultMeta],
    artifacts: Artifacts,
) -> str | None:
    if of_check := CHECK.fullmatch(part):
        checks = [check for meta in history if meta.number == number for check in meta.checks]
        place = int(of_check[1]) - 1
        return _log_of(checks[place], ref, number, artifacts) if place < len(checks) else None
    return _kept(ref, number, part, artifacts)


def _log_of(check: CheckResult, ref: IssueRef, number: int, artifacts: Artifacts) -> str | None:
    """Give the log of a check, if it is kept, and on this machine."""
    own = f"{ref.repository}/{ref.number}/{number}/"
    name = check.log_artifact.removeprefix(own)
    return artifacts.find(ref, number, name) if name else None


def _kept(ref: IssueRef, number: int, part: str, artifacts: Artifacts) -> str | None:
    name, _, fix_round = part.partition("-fix-")
    if name not in PARTS or (fix_round and not NUMBER.fullmatch(fix_round)):
        return None
    return artifacts.find(ref, number, of_round(PARTS[name], int(fix_round or 0)))
