"""Read an agent's output as it comes, by the rules of its adapter. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import assert_never

from pydantic import JsonValue

from mulligan.agent.reading import json_object
from mulligan.config.adapters import Fact, Meaning, Rule

LONGEST_LINE = 8 * 1024 * 1024
"""A longer line is passed over: an agent that prints a file must not fill the memory."""

NUMBERS = frozenset({Fact.TURNS, Fact.INPUT, Fact.CACHED, Fact.OUTPUT, Fact.COST})
UNITS = {"k": 1_000, "m": 1_000_000}
NUMBER = re.compile(r"\$?([0-9][0-9,]*(?:\.[0-9]+)?)\s*([kKmM]?)")
STATUS = re.compile(r"(?<![0-9])(?<![0-9][.:])([45][0-9]{2})(?![0-9])")
MOST = 2.0**53
NOTHING: tuple[JsonValue, ...] = (None, "", [], {})

Line = Mapping[str, JsonValue]


@dataclass
class Heard:
    """What an agent's output has told so far."""

    texts: dict[Fact, str] = field(default_factory=dict[Fact, str])
    numbers: dict[Fact, float] = field(default_factory=dict[Fact, float])
    refused: list[str] = field(default_factory=list[str])
    ended: Meaning | None = None
    waiting: bool = False

    def count(self, fact: Fact) -> int | None:
        """Give a number that counts things; None where it was not told."""
        number = self.numbers.get(fact)
        return None if number is None else round(number)

    @property
    def status(self) -> int | None:
        """Give the HTTP status with which the model's service refused last."""
        found = STATUS.search(self.texts.get(Fact.STATUS, ""))
        return int(found[1]) if found else None


class Reader:
    """Is fed with an agent's output in chunks of any size; `heard` is what it told so far."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.heard = Heard()
        self._rules = rules
        self._rest = bytearray()
        self._seen = set[tuple[int, str]]()

    def feed(self, chunk: bytes) -> None:
        """Read what was printed; the last line waits for its end."""
        self._rest += chunk
        *lines, rest = bytes(self._rest).split(b"\n") if b"\n" in chunk else [bytes(self._rest)]
        self._rest = bytearray(rest if len(rest) <= LONGEST_LINE else b"")
        for line in lines:
            self._read(line)

    def close(self) -> Heard:
        """Read a last line that has no end."""
        self._read(bytes(self._rest))
        self._rest.clear()
        return self.heard

    def read_record(self, content: bytes) -> None:
        """Read a file that holds one JSON object, as if it were one line."""
        if line := json_object(content):
            self._apply(line, "")

    def _read(self, line: bytes) -> None:
        if line.strip():
            found = json_object(line)
            self._apply(found, line.decode(errors="replace") if found is None else "")

    def _apply(self, line: Line | None, text: str) -> None:
        for number, rule in enumerate(self._rules):
            fitting = _fit(rule, line, text)
            if fitting is not None and self._is_new(number, rule, fitting):
                _learn(self.heard, rule, fitting)

    def _is_new(self, number: int, rule: Rule, line: Line) -> bool:
        identity = (number, " ".join(map(str, values(line, rule.once))))
        if rule.once and identity in self._seen:
            return False
        self._seen.add(identity)
        return True


def values(line: JsonValue | Line, path: str) -> Iterator[JsonValue]:
    """Give what is at a dotted path.

    `*` stands for each element of a list or an object, `key=value` for each that has that.
    """
    if not path:
        yield line if not isinstance(line, Mapping) else dict(line)
        return
    first, _, rest = path.partition(".")
    inside: Sequence[JsonValue] = ()
    if isinstance(line, Mapping):
        inside = [*line.values()] if first == "*" else [line[first]] if first in line else []
    elif isinstance(line, list):
        inside = [each for each in line if first == "*" or _has(each, first)]
    for each in inside:
        yield from values(each, rest)


def _has(element: JsonValue, wanted: str) -> bool:
    key, is_asked, value = wanted.partition("=")
    return bool(is_asked) and isinstance(element, dict) and element.get(key) == value


def number_in(value: JsonValue) -> float | None:
    """Read a number, written as one or as `1.2k`; None for what is none, or is not sensible."""
    if isinstance(value, str) and (found := NUMBER.fullmatch(value.strip())):
        value = float(found[1].replace(",", "")) * UNITS.get(found[2].lower(), 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= MOST else None


def _fit(rule: Rule, line: Line | None, text: str) -> Line | None:
    """Give what a rule reads in: the JSON line, or the groups found in a line of text."""
    if rule.line:
        found = re.search(rule.line, text) if line is None else None
        return found.groupdict() if found else None
    if line is None or not (rule.where or rule.matching):
        return None
    fits = all(_is_one_of([*values(line, path)], wanted) for path, wanted in rule.where.items())
    matches = all(
        any(re.search(pattern, _text(value)) for value in values(line, path))
        for path, pattern in rule.matching.items()
    )
    return line if fits and matches else None


def _is_one_of(found: Sequence[JsonValue], wanted: JsonValue) -> bool:
    if wanted is None:
        return all(value in NOTHING for value in found)
    allowed = wanted if isinstance(wanted, list) else [wanted]
    return any(value in allowed for value in found)


def _learn(heard: Heard, rule: Rule, line: Line) -> None:
    for fact, paths in rule.take.items():
        _take(heard, fact, [[*values(line, path)] for path in paths])
    for fact, paths in rule.add.items():
        known = _numbers(value for path in paths for value in values(line, path))
        if known:
            heard.numbers[fact] = heard.numbers.get(fact, 0) + sum(known)
    for fact, text in rule.put.items():
        _take(heard, fact, [[text]])
    if rule.means:
        _understand(heard, rule.means)


def _understand(heard: Heard, meaning: Meaning) -> None:
    match meaning:
        case Meaning.WAITING:
            heard.waiting = True
        case Meaning.PROGRESS:
            heard.waiting = False
            for fact in (Fact.STATUS, Fact.MESSAGE):
                heard.texts.pop(fact, None)
        case Meaning.REFUSED:
            heard.refused = heard.refused or ["a tool"]
        case Meaning.RESULT | Meaning.FAILED | Meaning.LIMIT:
            heard.ended = meaning
        case _:
            assert_never(meaning)


def _take(heard: Heard, fact: Fact, found: Sequence[Sequence[JsonValue]]) -> None:
    """Take what was found at each path: numbers are added up, of several texts the last counts."""
    if fact in NUMBERS:
        if known := _numbers(value for values in found for value in values):
            heard.numbers[fact] = sum(known)
        return
    texts = [[_text(value) for value in values if value not in NOTHING] for values in found]
    if fact is Fact.REFUSED:
        heard.refused = [*dict.fromkeys([*heard.refused, *chain(*texts)])]
    elif any(texts):
        heard.texts[fact] = " ".join(each[-1] for each in texts if each)


def _numbers(found: Iterable[JsonValue]) -> list[float]:
    return [number for value in found if (number := number_in(value)) is not None]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
