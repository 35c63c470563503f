"""What a change must not do, whatever the checks say (SPEC A9). Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathspec import GitIgnoreSpec

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.errors import MisconfiguredError

SYMLINK, SUBMODULE = b"120000", b"160000"

PART = re.compile(rb"^diff --git ", re.MULTILINE)
"""What opens the part of a file: content never stands at the beginning of a diff's line."""
MODE = re.compile(
    rb"^(?:new file mode|deleted file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) (\d{6})$",
    re.MULTILINE,
)
NAME = re.compile(
    rb'^(?:\+\+\+|---) (?:[ab]/(?P<plain>[^\n]*?)|"[ab]/(?P<quoted>(?:[^"\\\n]|\\.)*)")\t?$',
    re.MULTILINE,
)
RENAMED = re.compile(
    rb'^rename from (?:(?P<plain>[^"\n][^\n]*)|"(?P<quoted>(?:[^"\\\n]|\\.)*)")$', re.MULTILINE
)
ADDED = re.compile(rb"^\+([^\n]*)$", re.MULTILINE)
CUT_OFF = re.compile(rb"\n\[\.\.\. [^\n]* bytes omitted\]\n\Z")


def violations(change: Change, scope: Scope) -> tuple[str, ...]:
    """List every rule that the change breaks, each as one sentence that names the path.

    MisconfiguredError where a pattern of the scope is none.
    """
    parts = tuple(_parts(change.diff))
    return (*_paths(change, parts, scope), *_size(change, scope), *_special(parts))


@dataclass(frozen=True, slots=True)
class _Part:
    """What a diff says of one file: the lines before its content, and its content."""

    head: bytes
    content: bytes

    @property
    def modes(self) -> set[bytes]:
        return set(MODE.findall(self.head))

    @property
    def path(self) -> str:
        names = [_text(found) for found in NAME.finditer(self.head)]
        return names[-1] if names else ""

    @property
    def old_path(self) -> str | None:
        found = RENAMED.search(self.head)
        return _text(found) if found else None

    @property
    def target(self) -> str:
        """Give where a link of this part points to."""
        return b"\n".join(ADDED.findall(self.content)).decode(errors="replace")


def _parts(diff: bytes) -> Iterator[_Part]:
    starts = [found.start() for found in PART.finditer(diff)]
    for start, end in zip(starts, [*starts[1:], len(diff)], strict=False):
        content = diff.find(b"\n@@ ", start, end)
        at = content if content >= 0 else end
        yield _Part(diff[start : at + 1], diff[at:end])


def _text(found: re.Match[bytes]) -> str:
    """Read a path; git quotes one with unusual bytes as C does."""
    path = found["plain"]
    if path is None:
        path = found["quoted"].decode("latin-1").encode().decode("unicode_escape").encode("latin-1")
    return path.decode(errors="replace")


def _paths(change: Change, parts: Sequence[_Part], scope: Scope) -> Iterator[str]:
    """Find the paths that may not change; a file that was moved away has changed, too."""
    allow, deny = _spec(scope.allow, "allow"), _spec(scope.deny, "deny")
    moved = (part.old_path for part in parts)
    for path in dict.fromkeys([*(file.path for file in change.files), *filter(None, moved)]):
        if scope.allow and not allow.match_file(path):
            yield f"{path} is outside the allowed scope ({', '.join(scope.allow)})."
        elif deny.match_file(path):
            yield f"{path} must not change: scope.deny has {', '.join(scope.deny)}."


def _spec(patterns: Sequence[str], key: str) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error) as error:
        message = f"scope.{key} has a pattern that is none ({error}); write it as in .gitignore."
        raise MisconfiguredError(message) from error


def _size(change: Change, scope: Scope) -> Iterator[str]:
    if len(change.files) > scope.max_changed_files:
        allowed = f"scope.max_changed_files allows {scope.max_changed_files}"
        yield f"{len(change.files)} files were changed; {allowed}."
    if CUT_OFF.search(change.diff):
        yield "The change is too large to be looked through; make a smaller one."


def _special(parts: Sequence[_Part]) -> Iterator[str]:
    """Find submodules, and links that lead out of the tree."""
    for part in parts:
        if SUBMODULE in part.modes:
            yield f"{part.path} is a submodule; submodules must not be added, changed or removed."
        if SYMLINK in part.modes and _leads_out(part.path, part.target):
            yield (
                f"{part.path} is a symbolic link to {part.target}, which may lead out of the "
                "repository; let it point to a file in it, without going up more than it must."
            )


def _leads_out(path: str, target: str) -> bool:
    """Tell whether a link may lead out of the tree.

    Going up behind a name counts as leading out: that name may be a link itself.
    """
    steps = [step for step in target.split("/") if step not in {"", "."}]
    up = next((at for at, step in enumerate(steps) if step != ".."), len(steps))
    return target.startswith("/") or ".." in steps[up:] or up > path.count("/")
