"""Hostile text in every field of a value: what messages are built from, with nothing left out."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel

Value = Any
"""A value of the domain: a dataclass, a record, or what their fields hold."""

OWN = {
    "IssueRef": {"repository"},
    "Issue": {"url", "text_sha256"},
    "IssueStatus": {"asked_at", "restored"},
    "Request": {"written_act"},
    "SeenText": {"sha256", "written_act"},
    "PullStatus": {"url", "updated_to"},
    "FileChange": {"mode"},
    "CheckResult": {"fingerprint", "evidence", "log_artifact"},
    "WorkPushed": {"git_ref"},
    "WorkerResultMeta": {
        *("issue", "base_sha", "start_sha", "head_sha", "branch", "diff_summary"),
        *("diff_artifact", "manifest_hash", "worker"),
    },
}
"""Fields that GitHub, git or Mulligan itself fills: addresses, hashes, references, counts."""


@dataclass
class Planter:
    """Puts `text` into every field of text, with a number for each; `fields` names them."""

    text: str
    fields: list[str] = field(default_factory=list[str])

    def plant(self, value: Value, place: str = "") -> Value:
        """Return the value with the text in each of its fields."""
        if isinstance(value, BaseModel):
            hints = get_type_hints(type(value), include_extras=False)
            names = type(value).model_fields
            return value.model_copy(update=self._planted(value, names, hints))
        if is_dataclass(value) and not isinstance(value, type):
            hints = get_type_hints(type(value), include_extras=False)
            names = [each.name for each in fields(value) if each.init]
            return replace(value, **self._planted(value, names, hints))
        if isinstance(value, tuple):
            return tuple(self.plant(each, place) for each in cast("tuple[Value, ...]", value))
        return (
            self._text(place) if isinstance(value, str) and not isinstance(value, Enum) else value
        )

    def _planted(
        self, value: Value, names: Iterable[str], hints: dict[str, Any]
    ) -> dict[str, Value]:
        own = OWN.get(type(value).__name__, set[str]())
        found = dict[str, Value]()
        for name in names:
            if name in own:
                continue
            now, place = getattr(value, name), f"{type(value).__name__}.{name}"
            if now and not isinstance(now, str):
                found[name] = self.plant(now, place)
            elif is_text(hints[name]):
                found[name] = self._text(place)
            elif not now and is_texts(hints[name]):
                found[name] = (self._text(place),)
        return found

    def _text(self, place: str) -> str:
        if place not in self.fields:
            self.fields.append(place)
        return self.text.replace("N", f"{self.fields.index(place)}x")

    def named(self, line: str) -> list[str]:
        """Name the fields whose text a line has."""
        return [self.fields[int(number)] for number in re.findall(r"zq(\d+)x", line)]


def is_text(hint: Value) -> bool:
    """Tell a field of text, which may be missing."""
    return get_origin(hint) is not Literal and str in options_of(hint)


def is_texts(hint: Value) -> bool:
    """Tell a field of several texts."""
    return any(
        get_origin(each) is tuple and get_args(each)[:1] == (str,) for each in options_of(hint)
    )


def options_of(hint: Value) -> tuple[Value, ...]:
    """Return the types of a union, or the one type."""
    return get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
