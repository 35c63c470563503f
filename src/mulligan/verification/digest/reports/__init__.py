"""Read the structured reports that tools write: JUnit XML, SARIF, JSON of any shape. Pure."""

from collections.abc import Callable

from mulligan.verification.digest.family import Reading
from mulligan.verification.digest.reports.documents import Document, documents
from mulligan.verification.digest.reports.go import read_go
from mulligan.verification.digest.reports.issues import read_issues
from mulligan.verification.digest.reports.sarif import read_sarif
from mulligan.verification.digest.reports.tests import read_tests
from mulligan.verification.digest.reports.xml import read_xml
from mulligan.verification.digest.stream import as_utf8

LARGEST = 16 * 1024 * 1024
"""Bytes of a report that are read; a larger one is left alone."""

READERS: tuple[Callable[[Document], Reading], ...] = (
    read_xml,
    read_sarif,
    read_go,
    read_tests,
    read_issues,
)
"""In the order in which they are asked; the first that finds something has it."""


def read_report(report: bytes) -> Reading:
    """Read a report file; one that is too large, broken, or of no known shape says nothing."""
    if len(report) > LARGEST:
        return Reading()
    text = b"".join(as_utf8(iter([report]))).decode(errors="replace")
    return joined([read_document(found) for found in documents(text)])


def read_document(document: Document) -> Reading:
    """Ask the readers in turn."""
    readings = (read(document) for read in READERS)
    return next((reading for reading in readings if reading.found), Reading())


def joined(readings: list[Reading]) -> Reading:
    """Put together what several documents say."""
    found = tuple(found for reading in readings for found in reading.found)
    return Reading(found, sum(reading.count for reading in readings))
