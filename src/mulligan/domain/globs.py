"""Path patterns as in .gitignore, matched by RE2 in linear time (CONFIG-4). Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from mulligan.domain.patterns import (
    MAX_PATTERN_CHARS,
    RE2,
    PatternError,
    PatternSet,
    options,
)

SET_BYTES = 2 * 1024 * 1024
"""The memory of all path patterns of a list: enough for 200, and little enough for 0.2 s a path."""

BELOW = "(?P<ps_d>/)"
"""How the expressions of pathspec match the slash below a directory that a pattern names."""

NO_STEP = re.compile(r"(?:^|/)\.{1,2}(?:/|$)|//")
"""Text that no path in git has: a pattern with it would silently open a guard."""

NOTHING = r"[^\x00-\x{10FFFF}]"


@dataclass(frozen=True, slots=True)
class Globs:
    """A list of path patterns; make it with `globs`.

    The set has two expressions for each pattern: 2n matches the path, or a directory above it, and
    2n + 1 the path alone. `_includes[n]` is false for a pattern that begins with `!`.
    """

    _set: PatternSet
    _includes: tuple[bool, ...]

    def match(self, path: str) -> bool:
        """Return whether the patterns include a path.

        The last pattern that matches the path itself decides; without one, the last that matches a
        directory above it.
        """
        found = self._set.Match(path.encode(errors="replace"))
        if not found:
            return False
        return self._includes[max(found, key=lambda number: (number % 2, number)) // 2]

    def select(self, paths: Iterable[str]) -> frozenset[str]:
        """Return the paths that the patterns include."""
        return frozenset(filter(self.match, paths))


@lru_cache(maxsize=64)
def globs(patterns: tuple[str, ...]) -> Globs:
    """Compile path patterns; PatternError if one is invalid, matches no path or is too large.

    None is ever left out: that would open a guard. Cached, since each step of an attempt reads the
    policy.
    """
    settings = options(SET_BYTES)
    settings.dot_nl = True
    together = RE2.Set.SearchSet(settings)
    includes = tuple(_add(pattern, together) for pattern in patterns)
    try:
        together.Compile()
    except RE2.error as error:
        raise PatternError("write fewer or shorter patterns, such as directories") from error
    return Globs(together, includes)


def _add(pattern: str, together: PatternSet) -> bool:
    """Add the two expressions of a pattern; return whether it includes what it matches."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(f"write a pattern of at most {MAX_PATTERN_CHARS} characters")
    if NO_STEP.search(pattern.removeprefix("!")):
        raise PatternError("write a pattern without ./, ../ and //; this one matches no path")
    try:
        regex, includes = GitIgnoreSpecPattern.pattern_to_regex(pattern)
        if regex is not None:
            together.Add(regex)
            together.Add(regex.replace(BELOW, NOTHING))
    except (RE2.error, ValueError) as error:
        raise PatternError("write a pattern as in .gitignore; this one is invalid") from error
    if includes is None:
        raise PatternError("write a pattern as in .gitignore; this one matches no path")
    return includes
