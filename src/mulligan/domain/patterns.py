"""Regular expressions that others wrote, searched by RE2 in linear time (CONFIG-4). Pure."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, cast

import re2

MAX_PATTERN_CHARS = 1000
"""The maximum length of a regular expression, and of a path pattern."""

MAX_TEXT_CHARS = 100_000
"""The beginning of a text that is searched; a line of an agent's output may have eight million."""

EXPRESSION_BYTES = 1024 * 1024
"""The memory of one expression: RE2 refuses those whose repetitions need more."""


class PatternError(ValueError):
    """RE2 refuses a pattern; the message says what to write."""


class Match(Protocol):
    """The first place that an expression matches, as `re.Match`."""

    def __getitem__(self, group: int, /) -> str: ...
    def groupdict(self) -> dict[str, str | None]: ...


class EngineOptions(Protocol):
    """The settings of RE2 that differ from its defaults."""

    max_mem: int
    log_errors: bool
    dot_nl: bool


class PatternSet(Protocol):
    """Several patterns that are searched at once; `Match` returns the numbers of those found."""

    def Add(self, pattern: str, /) -> int: ...  # noqa: N802 - as the library names it
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: bytes, /) -> list[int] | None: ...  # noqa: N802


class _Compiled(Protocol):
    def search(self, text: str, /) -> Match | None: ...


class _Sets(Protocol):
    def SearchSet(self, options: EngineOptions, /) -> PatternSet: ...  # noqa: N802


class _Engine(Protocol):
    error: type[Exception]
    Set: _Sets

    def Options(self) -> EngineOptions: ...  # noqa: N802
    def compile(self, pattern: str, options: EngineOptions, /) -> _Compiled: ...


RE2 = cast("_Engine", re2)
"""The library, with types."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled regular expression."""

    _compiled: _Compiled

    def search(self, text: str) -> Match | None:
        """Return the first match in a text. Characters that UTF-8 cannot encode are read as `?`."""
        return self._compiled.search(text[:MAX_TEXT_CHARS].encode(errors="replace").decode())


@lru_cache(maxsize=256)
def expression(pattern: str) -> Expression:
    """Compile a regular expression; PatternError if RE2 cannot, or if it is too large."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"write a regular expression of at most {MAX_PATTERN_CHARS} characters")
    try:
        return Expression(RE2.compile(pattern, options(EXPRESSION_BYTES)))
    except (RE2.error, UnicodeEncodeError) as error:
        said = error.args[0] if isinstance(error, RE2.error) else str(error)
        reason = said.decode(errors="replace") if isinstance(said, bytes) else said
        raise PatternError(
            f"write a regular expression that RE2 can read ({reason}); RE2 has no"
            " look-around, no back-references and no possessive repetition"
        ) from error


def expressions(patterns: Iterable[str]) -> tuple[Expression, ...]:
    """Compile the valid ones of several regular expressions."""
    found = list[Expression]()
    for pattern in patterns:
        with suppress(PatternError):
            found.append(expression(pattern))
    return tuple(found)


def options(memory: int) -> EngineOptions:
    """Return the options of a pattern that needs at most this memory."""
    found = RE2.Options()
    found.max_mem, found.log_errors = memory, False
    return found
