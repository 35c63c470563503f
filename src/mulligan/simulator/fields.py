"""Reads the JSON body of a request, field by field, and refuses what GitHub refuses. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue, TypeAdapter, ValidationError

from mulligan.simulator.refused import Refused

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a body; what is missing or null reads as None."""

    values: dict[str, JsonValue]

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Read an object; no body at all is an empty one."""
        value = parse(body)
        if not isinstance(value, dict):
            raise Refused(400, "Body should be a JSON object")
        return cls(value)

    def text(self, name: str) -> str | None:
        """Read a string."""
        value = self.values.get(name)
        if value is None or isinstance(value, str):
            return value
        raise Refused(422, f"Invalid request.\n\nFor '{name}', {value!r} is not a string.")

    def required(self, name: str) -> str:
        """Read a string that must be there."""
        value = self.text(name)
        if value is None:
            raise Refused(422, f'Invalid request.\n\n"{name}" wasn\'t supplied.')
        return value

    def flag(self, name: str) -> bool:
        """Read a boolean; missing means false."""
        return self.values.get(name) is True

    def number(self, name: str) -> int | None:
        """Read a whole number."""
        value = self.values.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise Refused(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an integer.")

    def parts(self, name: str) -> list["Fields"]:
        """Read a list of objects; missing means an empty one."""
        value = self.values.get(name)
        items = [] if value is None else value
        if not isinstance(items, list):
            raise Refused(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an array.")
        found = list[Fields]()
        for item in items:
            if not isinstance(item, dict):
                raise Refused(422, f"Invalid request.\n\n{item!r} is not an object.")
            found.append(Fields(item))
        return found

    def names(self, name: str) -> list[str] | None:
        """Read a list of strings, or of objects with a `name`, as labels may be given."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, list):
            return names(value)
        raise Refused(422, f"Invalid request.\n\nFor '{name}', {value!r} is not an array.")


def parse(body: bytes) -> JsonValue:
    """Parse a body of any kind."""
    try:
        return _JSON.validate_json(body or b"{}")
    except ValidationError:
        raise Refused(400, "Problems parsing JSON") from None


def names(values: Sequence[JsonValue]) -> list[str]:
    """Read strings, or objects with a `name`."""
    found = list[str]()
    for value in values:
        name = value.get("name") if isinstance(value, dict) else value
        if not isinstance(name, str):
            raise Refused(422, f"Invalid request.\n\n{value!r} is not a string.")
        found.append(name)
    return found
