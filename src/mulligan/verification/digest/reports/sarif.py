"""SARIF: the results of each run. Pure."""

from collections.abc import Iterator

from mulligan.verification.digest.family import Found, Reading
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.reports.documents import Document
from mulligan.verification.digest.reports.fields import Row, place_in, rows_in, text_of

SILENT = {"note", "none"}
FINE = {"pass", "notApplicable", "informational"}


def read_sarif(document: Document) -> Reading:
    """Find the results that are neither notes nor passes; the errors first."""
    value = document.value
    runs = rows_in(value.get("runs")) if isinstance(value, dict) else []
    results = [result for run in runs for result in rows_in(run.get("results"))]
    bad = [row for row in results if text_of(row, ("level",)) not in SILENT and not _is_fine(row)]
    ordered = sorted(bad, key=lambda row: text_of(row, ("level",)) == "warning")
    found = tuple(_found(ordered))
    return Reading(found, len(found))


def _is_fine(result: Row) -> bool:
    return text_of(result, ("kind",)) in FINE or bool(rows_in(result.get("suppressions")))


def _found(results: list[Row]) -> Iterator[Found]:
    for result in results:
        said = result.get("message")
        message = text_of(said, ("text", "markdown", "id")) if isinstance(said, dict) else ""
        code = text_of(result, ("ruleId",))
        place = place_in({"locations": result.get("locations")})
        where = f"{place}: " if place else ""
        heading = " ".join(f"{where}{code} {message}".split())
        yield Found(finding(message, place, code=code or None), None, heading)
