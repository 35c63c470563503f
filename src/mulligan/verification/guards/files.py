"""How much may change, and which kinds of files may come: links, submodules, large ones. Pure."""

import re
from collections.abc import Iterator, Sequence

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.guard import GuardKind, GuardViolation
from mulligan.domain.result import FileChange
from mulligan.verification.guards.patch import Patch

SYMLINK, SUBMODULE, DELETED = "120000", "160000", "D"
DRIVE = re.compile(r"[A-Za-z]:")
CUT_OFF = re.compile(rb"\n\[\.\.\. [^\n]* bytes omitted\]\n\Z")


def violations(change: Change, patches: Sequence[Patch], scope: Scope) -> Iterator[GuardViolation]:
    """Find what is too much, submodules, and links that may lead out of the tree."""
    yield from _too_much(change, scope)
    submodules = {file.path for file in change.files if file.mode == SUBMODULE}
    submodules |= {patch.path for patch in patches if SUBMODULE.encode() in patch.modes}
    for path in sorted(submodules):
        message = f"{path} is a submodule; submodules must not be added, changed or removed."
        yield GuardViolation(kind=GuardKind.SUBMODULE, path=path, message=message)
    for file in change.files:
        if file.mode == SYMLINK and file.status != DELETED:
            yield from _link(file)


def _too_much(change: Change, scope: Scope) -> Iterator[GuardViolation]:
    if len(change.files) > scope.max_changed_files:
        allowed = f"scope.max_changed_files allows {scope.max_changed_files}"
        message = f"{len(change.files)} files were changed; {allowed}."
        yield GuardViolation(kind=GuardKind.SIZE, message=message)
    if CUT_OFF.search(change.diff):
        message = "The change is too large to be looked through; make a smaller one."
        yield GuardViolation(kind=GuardKind.SIZE, message=message)
    for file in change.files:
        if (file.size or 0) > scope.max_file_bytes:
            message = (
                f"{file.path} has {file.size} bytes; scope.max_file_bytes allows "
                f"{scope.max_file_bytes}."
            )
            yield GuardViolation(kind=GuardKind.SIZE, path=file.path, message=message)


def _link(file: FileChange) -> Iterator[GuardViolation]:
    if file.link is None:
        message = f"{file.path} is a symbolic link that cannot be looked at; take it out."
    elif _leads_out(file.path, file.link):
        message = (
            f"{file.path} is a symbolic link to {file.link}, which may lead out of the "
            "repository; let it point to a file in it."
        )
    else:
        return
    yield GuardViolation(kind=GuardKind.LINK, path=file.path, message=message)


def _leads_out(path: str, target: str) -> bool:
    """Tell whether a link may lead out of the tree, or into git's own directory.

    Going up behind a name counts as leading out: that name may be a link itself.
    """
    target = target.replace("\\", "/")
    steps = [step for step in target.split("/") if step not in {"", "."}]
    up = next((at for at, step in enumerate(steps) if step != ".."), len(steps))
    return (
        target.startswith("/")
        or bool(DRIVE.match(target))
        or ".." in steps[up:]
        or up > path.count("/")
        or ".git" in {step.casefold() for step in steps}
    )
