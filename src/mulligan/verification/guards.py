"""What a change must not do, whatever the checks say (SPEC A9). Pure."""

import posixpath
import re
from collections.abc import Iterator

from pathspec import GitIgnoreSpec

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change

FILE = re.compile(rb"^diff --git (?:\"?a/)(?P<path>.*?)\"? \"?b/", re.MULTILINE)
SYMLINK, SUBMODULE = b"120000", b"160000"
MODE = re.compile(
    rb"^(?:new file mode|new mode|index [0-9a-f]+\.\.[0-9a-f]+) (\d{6})$", re.MULTILINE
)


def violations(change: Change, scope: Scope) -> tuple[str, ...]:
    """List every rule that the change breaks, each as one sentence that names the path."""
    return (*_paths(change, scope), *_count(change, scope), *_special(change))


def _paths(change: Change, scope: Scope) -> Iterator[str]:
    allowed = GitIgnoreSpec.from_lines(scope.allow)
    denied = GitIgnoreSpec.from_lines(scope.deny)
    for file in change.files:
        if scope.allow and not allowed.match_file(file.path):
            yield f"{file.path} is outside the allowed scope ({', '.join(scope.allow)})."
        elif denied.match_file(file.path):
            yield f"{file.path} must not change (scope.deny: {', '.join(scope.deny)})."


def _count(change: Change, scope: Scope) -> Iterator[str]:
    if len(change.files) > scope.max_changed_files:
        yield f"{len(change.files)} files changed; at most {scope.max_changed_files} may."


def _special(change: Change) -> Iterator[str]:
    """Find links that lead out of the tree, and submodules, in the parts of the diff."""
    starts = [found.start() for found in FILE.finditer(change.diff)]
    for start, end in zip(starts, [*starts[1:], len(change.diff)], strict=True):
        part = change.diff[start:end]
        header = part.partition(b"\n@@")[0]
        modes = {found[1] for found in MODE.finditer(header)}
        named = FILE.match(part)
        path = named["path"].decode(errors="replace") if named else ""
        if SUBMODULE in modes:
            yield f"{path} is a submodule; submodules must not be added or changed."
        if SYMLINK in modes and _leads_out(path, _added(part)):
            yield f"{path} is a symbolic link that leads out of the repository."


def _added(part: bytes) -> str:
    found = re.search(rb"^\+(?!\+\+ )(.*)$", part, re.MULTILINE)
    return found[1].decode(errors="replace") if found else ""


def _leads_out(path: str, target: str) -> bool:
    reached = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return target.startswith("/") or reached == ".." or reached.startswith("../")
