"""JUnit XML, which most test runners can write, and the XML of checkstyle. Pure."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from mulligan.domain.result import names_unit
from mulligan.verification.digest.family import Found, Reading
from mulligan.verification.digest.findings import finding
from mulligan.verification.digest.locations import Place, number
from mulligan.verification.digest.reports.documents import Document
from mulligan.verification.digest.reports.failure import failure, of_file

BAD_XML = (ParseError, DefusedXmlException, ValueError, LookupError)
BAD = {"failure", "error"}


def read_xml(document: Document) -> Reading:
    """Find the failed tests, or the complaints; XML that is broken or not safe says nothing."""
    if not (document.is_xml and isinstance(document.value, str)):
        return Reading()
    try:
        root = fromstring(document.value)
    except BAD_XML:
        return Reading()
    found = tuple(_complaints(root) if root.tag == "checkstyle" else _failures(root))
    return Reading(found, len(found))


def _failures(root: Element) -> Iterator[Found]:
    for case, suite in _cases(root):
        bad = [result for result in case if result.tag in BAD]
        if bad:
            texts = [part for one in bad for part in (one.get("message"), one.text) if part]
            file, line = case.get("file"), number(case.get("line"))
            place = Place(file, line) if file else None
            yield failure(_full_name(case, suite), "\n".join(texts), place)


def _cases(element: Element) -> Iterator[tuple[Element, Element]]:
    """Yield the tests, each with the suite that it stands in."""
    for part in element:
        if part.tag == "testcase":
            yield part, element
        elif part.tag in {"testsuite", "testsuites"}:
            yield from _cases(part)


def _full_name(case: Element, suite: Element) -> str:
    """Name a test with its file or its suite, where its class does not say what it is of."""
    name = _name(case)
    owner = case.get("file") or suite.get("file") or suite.get("filepath") or ""
    if owner or names_unit(name):
        return of_file(name, owner)
    title = suite.get("package") or suite.get("name") or ""
    return name if not title or title in name else f"{title}::{name}"


def _name(case: Element) -> str:
    """Join class and name, as far as the name does not have it already."""
    owner, name = case.get("classname") or "", case.get("name") or ""
    if not owner or owner in name or not name:
        return name or owner
    return f"{owner}::{name}" if "." in owner or name.startswith("test_") else f"{owner} {name}"


def _complaints(root: Element) -> Iterator[Found]:
    for file in root.iter("file"):
        for error in file.iter("error"):
            if error.get("severity") == "info":
                continue
            place = Place(
                file.get("name") or "", number(error.get("line")), number(error.get("column"))
            )
            message, code = error.get("message") or "", (error.get("source") or "").split(".")[-1]
            heading = " ".join(f"{place}: {code} {message}".split())
            yield Found(finding(message, place, code=code or None), None, heading)
