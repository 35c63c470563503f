"""Refuse changes outside the scope: protected paths, size, submodules, links. Pure."""

import re
from collections.abc import Iterator, Sequence

from mulligan.checks.guards.links import Links
from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.globs import globs
from mulligan.domain.protected import PROTECTED, Protected, normalised_path
from mulligan.domain.result import FileChange, GuardKind, GuardViolation
from mulligan.text.diff import Patch

SPECS = {kind: globs(files.patterns) for kind, files in PROTECTED.items()}

SYMLINK, SUBMODULE, DELETED = "120000", "160000", "D"

DRIVE = re.compile(r"[A-Za-z]:")

DIFF_CUT_MARK = re.compile(rb"\n\[\.\.\. [^\n]* bytes omitted\]\n\Z")


def path_violations(
    change: Change, patches: Sequence[Patch], scope: Scope
) -> Iterator[GuardViolation]:
    """Yield the paths that may not change; moving a file changes its old path, too.

    Of a change with too many files, which is refused anyway, only the first paths are matched.
    """
    allow, deny = globs(scope.allow), globs(scope.deny)
    links = _links(change)
    paths = changed_paths(change, patches)
    if len(change.files) > scope.max_changed_files:
        paths = paths[: scope.max_changed_files]
    for path in paths:
        if scope.allow and not allow.match(path):
            message = f"{path} is outside the allowed scope ({', '.join(scope.allow)})."
            yield GuardViolation(path=path, message=message)
        elif deny.match(path):
            message = f"{path} must not change: scope.deny has {', '.join(scope.deny)}."
            yield GuardViolation(path=path, message=message)
        else:
            yield from _protected(path, scope, links)


def changed_paths(change: Change, patches: Sequence[Patch]) -> tuple[str, ...]:
    """List all paths of the change, old ones included."""
    names = (name for file in change.files for name in (file.path, file.old_path))
    in_patches = (name for patch in patches for name in (patch.path, patch.old_path))
    return tuple(dict.fromkeys(filter(None, (*names, *in_patches))))


def _links(change: Change) -> Sequence[Links]:
    """Return the links of the start tree, and those with the ones that the change adds."""
    before = dict(change.links)
    added = {each.path: each.link for each in change.files if each.link and each.status != DELETED}
    trees = (before, {**before, **added}) if added else (before,)
    return [Links.of(tree, normalised_path) for tree in trees if before]


def _protected(path: str, scope: Scope, links: Sequence[Links]) -> Iterator[GuardViolation]:
    """Refuse a path that a kind protects by its name, or by a link that leads to it."""
    others = dict.fromkeys(name for tree in links for name in tree.names_of(path))
    for kind in dict.fromkeys(scope.protect):
        name = next((each for each in (path, *others) if _is_of(kind, each, path)), None)
        if name is None:
            continue
        leads = "" if name == path else f": {name} leads to it, and"
        why = f"{leads or ', since'} {PROTECTED[kind].reason}"
        message = f"{path} must not change{why} (scope.protect: {kind})."
        yield GuardViolation(kind=GuardKind.PROTECTED, path=path, message=message)


def _is_of(kind: Protected, name: str, path: str) -> bool:
    """Return whether a name is of a kind; another name of the path may be that of a directory."""
    normalised = normalised_path(name)
    return SPECS[kind].match(normalised) or (name != path and SPECS[kind].match(f"{normalised}/"))


def file_violations(
    change: Change, patches: Sequence[Patch], scope: Scope
) -> Iterator[GuardViolation]:
    """Yield excess files and sizes, submodules, and links that may lead out of the tree."""
    yield from _too_much(change, scope)
    submodules = {file.path for file in change.files if file.mode == SUBMODULE}
    submodules |= {patch.path for patch in patches if SUBMODULE.encode() in patch.modes}
    for path in sorted(submodules):
        message = f"{path} is a submodule; submodules must not be added, changed or removed."
        yield GuardViolation(kind=GuardKind.SUBMODULE, path=path, message=message)
    for path in change.submodule_links:
        message = (
            f"The commit that the submodule {path} links to was changed. Mulligan does not publish "
            "this. Undo it, and change only files outside the submodule."
        )
        yield GuardViolation(kind=GuardKind.SUBMODULE, path=path, message=message)
    for path in change.submodule_files:
        message = (
            f"{path} is in a submodule, whose files are not part of this repository. Undo "
            "this, and change only files outside the submodule."
        )
        yield GuardViolation(kind=GuardKind.SUBMODULE, path=path, message=message)
    for path in change.raw_lfs_files:
        message = (
            f"{path} belongs in Git LFS, but its content is not an LFS pointer. Mulligan cannot "
            "upload to Git LFS; do not add or change such a file."
        )
        yield GuardViolation(kind=GuardKind.LFS, path=path, message=message)
    for path in change.set_up_paths:
        message = (
            f"{path} belongs to what the setup commands leave, which the base branch does not "
            "track, or hides it. Leave it out of the commit, and change its source instead."
        )
        yield GuardViolation(kind=GuardKind.SET_UP, path=path, message=message)
    for file in change.files:
        if file.mode == SYMLINK and file.status != DELETED:
            yield from _link(file)


def _too_much(change: Change, scope: Scope) -> Iterator[GuardViolation]:
    if len(change.files) > scope.max_changed_files:
        allowed = f"scope.max_changed_files allows {scope.max_changed_files}"
        message = f"{len(change.files)} files were changed; {allowed}."
        yield GuardViolation(kind=GuardKind.SIZE, message=message)
    if DIFF_CUT_MARK.search(change.diff):
        message = "The change is too large to be checked; make a smaller one."
        yield GuardViolation(kind=GuardKind.SIZE, message=message)
    if change.unread:
        yield GuardViolation(kind=GuardKind.SIZE, message=change.unread)
    sizes = (*((file.path, file.size or 0) for file in change.files), *change.too_large)
    for path, size in sizes:
        if size > scope.max_file_bytes:
            message = (
                f"{path} has {size} bytes; scope.max_file_bytes allows {scope.max_file_bytes}."
            )
            yield GuardViolation(kind=GuardKind.SIZE, path=path, message=message)


def _link(file: FileChange) -> Iterator[GuardViolation]:
    if file.link is None:
        message = f"{file.path} is an unreadable symbolic link; remove it."
    elif _leads_out(file.path, file.link):
        message = (
            f"{file.path} is a symbolic link to {file.link}, which may lead out of the "
            "repository; let it point to a file in it."
        )
    else:
        return
    yield GuardViolation(kind=GuardKind.LINK, path=file.path, message=message)


def _leads_out(path: str, target: str) -> bool:
    """Return whether a link may lead out of the tree, or into git's own directory.

    Going up after a name counts as leading out: that name may be a link itself.
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
