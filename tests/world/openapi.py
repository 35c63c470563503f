"""GitHub's own description of its API (OpenAPI), against what is asked and answered."""

import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from openapi_schema_validator import OAS30Validator
from pydantic import BaseModel, JsonValue, TypeAdapter
from referencing import Registry, Resource, Specification

from world.simulated_github import World

KEPT = Path(__file__).parents[1] / "fixtures" / "openapi" / "github.json.gz"
ROOT = "urn:github"
ANY: Specification[JsonValue] = Specification.OPAQUE
TREE: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)
REFUSED = re.compile(r"304|[45]\d\d")
KNOWN_DEVIATIONS = re.compile(r"answered: (?:\d+\.)?labels\.\d+\.description: None")
"""Where GitHub answers otherwise than it describes: a label without a description has null."""


class Exchange(NamedTuple):
    """A request and its answer; bodies are JSON, None for none."""

    method: str
    path: str
    query: Mapping[str, str]
    sent: JsonValue
    status: int
    answered: JsonValue


class Description(BaseModel):
    """The part of GitHub's description that is kept (world/extract_openapi.py)."""

    version: str
    paths: dict[str, dict[str, JsonValue]]
    components: dict[str, dict[str, JsonValue]]


@cache
def github() -> Description:
    return Description.model_validate_json(gzip.decompress(KEPT.read_bytes()))


@dataclass(frozen=True)
class Operation:
    """GitHub's description of one verb at one path; `pointer` is its place."""

    path: str
    verb: str
    value: Mapping[str, JsonValue]

    @property
    def pointer(self) -> str:
        return f"#/paths/{self.path.replace('~', '~0').replace('/', '~1')}/{self.verb}"


def operation(method: str, path: str) -> Operation | None:
    """Find what GitHub describes for a request; of several, the most literal."""
    fitting = [known for known in github().paths if _pattern(known).fullmatch(path)]
    for known in sorted(fitting, key=lambda each: each.count("{")):
        found = github().paths[known].get(method.lower())
        if isinstance(found, dict):
            return Operation(known, method.lower(), found)
    return None


def schema_violations(exchange: Exchange) -> Iterator[str]:
    """Say what of an exchange is not as GitHub describes it."""
    found = operation(exchange.method, exchange.path)
    named = f"{exchange.method} {exchange.path}"
    if found is None:
        yield f"{named}: GitHub describes no such request"
        return
    for wrong in (*_query(found, exchange), *_sent(found, exchange), *_answered(found, exchange)):
        if not KNOWN_DEVIATIONS.match(wrong):
            yield f"{named}: {wrong}"


def _query(found: Operation, exchange: Exchange) -> Iterator[str]:
    known = {str(each["name"]): each["schema"] for each in _parameters(found)}
    for name, value in exchange.query.items():
        if name not in known:
            yield f"the query {name} is not described"
            continue
        schema = _resolved(known[name])
        given: JsonValue = int(value) if schema.get("type") == "integer" else value
        yield from (f"query {name}: {why}" for why in _errors(schema, given))


def _parameters(found: Operation) -> Iterator[dict[str, JsonValue]]:
    listed = found.value.get("parameters", [])
    assert isinstance(listed, list)
    for each in listed:
        parameter = _resolved(each)
        if parameter["in"] == "query":
            yield parameter


def _sent(found: Operation, exchange: Exchange) -> Iterator[str]:
    body = found.value.get("requestBody")
    if body is None:
        if exchange.sent is not None:
            yield f"a body is sent, and none is described: {exchange.sent}"
        return
    pointer = f"{found.pointer}/requestBody/content/application~1json/schema"
    yield from (f"sent: {why}" for why in _errors({"$ref": f"{ROOT}{pointer}"}, exchange.sent))


def _answered(found: Operation, exchange: Exchange) -> Iterator[str]:
    responses = found.value["responses"]
    assert isinstance(responses, dict)
    if REFUSED.fullmatch(str(exchange.status)):
        return
    described = responses.get(str(exchange.status))
    if described is None:
        yield f"the status {exchange.status} is not described"
        return
    content = _resolved(described).get("content")
    if not isinstance(content, dict):
        return
    media = content["application/json"]
    assert isinstance(media, dict)
    yield from (
        f"answered: {why}" for why in _errors(_absolute(media["schema"]), exchange.answered)
    )


def _errors(schema: JsonValue, value: JsonValue) -> Iterator[str]:
    validator = OAS30Validator(_absolute(schema), registry=_registry())
    for error in validator.iter_errors(value):
        where = ".".join(str(step) for step in error.absolute_path) or "the whole"
        yield f"{where}: {error.message[:200]}"


@cache
def _registry() -> Registry[JsonValue]:
    whole = TREE.validate_python(github().model_dump())
    resource = Resource(contents=_absolute(whole), specification=ANY)
    return Registry[JsonValue]().with_resource(ROOT, resource)


def _absolute(value: JsonValue) -> JsonValue:
    """Make references resolvable from any place."""
    match value:
        case {"$ref": str(there)} if there.startswith("#"):
            return {"$ref": f"{ROOT}{there}"}
        case dict():
            return {key: _absolute(inner) for key, inner in value.items()}
        case list():
            return [_absolute(inner) for inner in value]
        case _:
            return value


def _resolved(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    there = value.get("$ref")
    if not isinstance(there, str):
        return value
    kind, name = there.rpartition("#")[2].split("/")[2:]
    return _resolved(github().components[kind][name])


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{[^}]*\}", path)
    # Only a file's path and a branch may hold slashes.
    holds = path.endswith(("/{path}", "/rules/branches/{branch}"))
    return re.compile((".+" if holds else "[^/]+").join(map(re.escape, parts)))


def as_json(body: bytes) -> JsonValue:
    """Read a body; None for none."""
    return TREE.validate_json(body) if body else None


def exchanges_of(world: World) -> list[Exchange]:
    """Give what a simulated GitHub was asked and answered since its `exchanges` were set.

    GraphQL has a description of its own.
    """
    return [
        Exchange(
            each.request.method,
            each.request.path,
            each.query,
            as_json(each.sent),
            each.request.status,
            as_json(each.answered),
        )
        for each in world.exchanges or ()
        if each.request.path != "/graphql"
    ]
