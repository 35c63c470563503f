"""Take out of GitHub's OpenAPI description what Mulligan's requests can meet.

    python tests/world/extract_openapi.py DESCRIPTION VERSION

DESCRIPTION is `generated/api.github.com.json` of the npm package `@octokit/openapi`, VERSION its
version. What is kept: the paths below, and the schemas that they lead to, without any prose.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue, TypeAdapter

KEPT = Path(__file__).parents[1] / "fixtures" / "openapi" / "github.json.gz"
PATHS = re.compile(
    r"/(user|app|rate_limit|users/\{username\}(/ssh_signing_keys)?|app-manifests/\{code\}/conversions"
    r"|app/installations/\{installation_id\}/access_tokens"
    r"|repos/\{owner\}/\{repo\}(/(installation|labels|issues|pulls|commits|statuses|check-runs"
    r"|check-suites|collaborators|assignees|branches|contents|git|compare|actions/(runs|jobs)"
    r"|rules|rulesets)"
    r"(/.*)?)?)"
)
PROSE = {
    "discriminator",
    "description",
    "summary",
    "example",
    "examples",
    "externalDocs",
    "tags",
    "operationId",
}
TREE: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def bare(value: JsonValue, *, names: bool = False) -> JsonValue:
    """Drop prose; under `properties`, the keys are names and all stay."""
    match value:
        case {"nullable": True, "enum": [*allowed]} if None not in allowed:
            # GitHub means that null may stand there, too.
            return bare({**value, "enum": [*allowed, None]})
        case dict():
            return {
                key: bare(inner, names=key in {"properties", "patternProperties"} and not names)
                for key, inner in value.items()
                if names or (key not in PROSE and not key.startswith("x-"))
            }
        case list():
            return [bare(inner) for inner in value]
        case _:
            return value


def references(value: JsonValue) -> Iterator[str]:
    """Find what a part refers to."""
    match value:
        case {"$ref": str(there)}:
            yield there
        case dict():
            for inner in value.values():
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)
        case _:
            return


def at(whole: JsonValue, pointer: str) -> JsonValue:
    """Give what a `#/a/b` points to."""
    for step in pointer.removeprefix("#/").split("/"):
        assert isinstance(whole, dict)
        whole = whole[step]
    return whole


def extract(whole: JsonValue, version: str) -> dict[str, JsonValue]:
    """Keep the paths, and all that they lead to."""
    assert isinstance(whole, dict)
    paths = whole["paths"]
    assert isinstance(paths, dict)
    kept = {path: bare(item) for path, item in paths.items() if PATHS.fullmatch(path)}
    waiting, found = [*references(list(kept.values()))], dict[str, JsonValue]()
    while waiting:
        pointer = waiting.pop()
        if pointer not in found:
            found[pointer] = bare(at(whole, pointer))
            waiting += references(found[pointer])
    components = dict[str, JsonValue]()
    for pointer, part in sorted(found.items()):
        _, _, kind, name = pointer.split("/")
        group = components.setdefault(kind, {})
        assert isinstance(group, dict)
        group[name] = part
    return {"version": version, "paths": kept, "components": components}


def main() -> None:
    description, version = sys.argv[1:]
    made = extract(TREE.validate_json(Path(description).read_bytes()), version)
    text = json.dumps(made, sort_keys=True, separators=(",", ":")).encode()
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_bytes(gzip.compress(text, mtime=0))


if __name__ == "__main__":
    main()
