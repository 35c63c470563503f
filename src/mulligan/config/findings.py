"""Word what the settings refuse: where it stands, what was found, and what would be right. Pure."""

from collections.abc import Iterator
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mulligan.config.document import Document, Place, dotted
from mulligan.config.mistakes import Mistake
from mulligan.config.schema import File, keys, schema_of, wanted


def findings(error: ValidationError, document: Document, file: File) -> Iterator[Mistake]:
    """Give a mistake for each thing that is wrong, with the values as they were written."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    meant = {place for each in found if (place := _meant(each, file))}
    for each in found:
        place = each["loc"]
        if each["type"] == "missing" and place in meant:
            continue
        if each["type"] == "too_short" and any(_within(other["loc"], place) for other in found):
            # What was refused does not count, so a list of one bad value is said to be too short.
            continue
        yield Mistake(document.line(place), dotted(place), _said(each, document, file))


def _said(each: ErrorDetails, document: Document, file: File) -> str:
    place, schema = each["loc"], schema_of(file)
    spot = document.spots.get(place) or document.spots.get(place[:-1])
    match each["type"]:
        case "extra_forbidden":
            return _unknown(str(place[-1]), keys(schema, place[:-1]))
        case "missing":
            return f"is missing; write {wanted(schema, place)}"
        case "value_error":
            said = each["msg"].removeprefix("Value error, ")
            return f"is {spot.found}; {said}" if spot and spot.is_plain else f"is wrong: {said}"
        case _:
            found = spot.found if spot else "wrong"
            return f"is {found}; write {wanted(schema, place)}"


def _within(place: Place, outer: Place) -> bool:
    return len(place) > len(outer) and place[: len(outer)] == outer


def _meant(each: ErrorDetails, file: File) -> Place | None:
    """Give the place of the key that an unknown one seems to be meant for."""
    if each["type"] != "extra_forbidden":
        return None
    *outer, name = each["loc"]
    near = get_close_matches(str(name), keys(schema_of(file), tuple(outer)), n=1)
    return (*outer, near[0]) if near else None


def _unknown(name: str, known: list[str]) -> str:
    said = "is not a key that Mulligan knows"
    if near := get_close_matches(name, known, n=1):
        return f"{said}; did you mean {near[0]}?"
    return f"{said}; take it out, or write one of {', '.join(known)}"
