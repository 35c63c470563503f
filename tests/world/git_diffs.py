"""How two trees differ, as git tells it, but found without git; see world/git_objects.py."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff

from mulligan.domain.result import FileChange
from world.git_objects import LINK, Entry, Files, ObjectStore

NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True)
class Difference:
    """A file that differs; it moved where both paths are given and are not the same."""

    old_path: str
    new_path: str
    before: Entry | None
    after: Entry | None


def differences(before: Files, after: Files) -> list[Difference]:
    """List what differs by path. Only a file that moved as it was counts as moved."""
    gone = {path: entry for path, entry in before.items() if path not in after}
    found = list[Difference]()
    for path in sorted({*before, *after}):
        old, new = before.get(path), after.get(path)
        if old == new or new is None:
            continue
        moved = next((name for name, entry in gone.items() if entry == new and not old), path)
        found.append(Difference(moved, path, gone.pop(moved, old), new))
    found += [Difference(path, path, entry, None) for path, entry in gone.items()]
    return sorted(found, key=lambda each: each.new_path)


def file_change(store: ObjectStore, found: Difference) -> FileChange:
    """Describe one file as the port Worktree does."""
    plus, minus = _counts(store, found)
    if found.after is None:
        mode = found.before.mode if found.before else None
        return FileChange(
            path=found.new_path, status="D", insertions=plus, deletions=minus, mode=mode
        )
    moved = found.old_path != found.new_path
    content = store.blob(found.after.sha)
    return FileChange(
        path=found.new_path,
        status="A" if found.before is None else "R" if moved else "M",
        insertions=plus,
        deletions=minus,
        old_path=found.old_path if moved else None,
        mode=found.after.mode,
        size=len(content),
        link=content.decode() if found.after.mode == LINK else None,
    )


def diff_text(store: ObjectStore, before: Files, after: Files) -> bytes:
    """Write the differences as `git diff -M` does."""
    found = differences(before, after)
    text = "".join(part for each in found for part in _told(store, each))
    return text.encode(errors="surrogateescape")


def _told(store: ObjectStore, found: Difference) -> Iterator[str]:
    old, new = f"a/{found.old_path}", f"b/{found.new_path}"
    yield f"diff --git {old} {new}\n"
    if found.before is None and found.after:
        yield f"new file mode {found.after.mode}\n"
    if found.after is None and found.before:
        yield f"deleted file mode {found.before.mode}\n"
    if found.old_path != found.new_path:
        yield f"similarity index 100%\nrename from {found.old_path}\nrename to {found.new_path}\n"
        return
    mode = ""
    if found.before and found.after:
        if found.before.mode == found.after.mode:
            mode = f" {found.after.mode}"
        else:
            yield f"old mode {found.before.mode}\nnew mode {found.after.mode}\n"
    ids = [entry.sha[:7] if entry else "0" * 7 for entry in (found.before, found.after)]
    yield f"index {'..'.join(ids)}{mode}\n"
    one, other = _content(store, found.before), _content(store, found.after)
    old, new = old if found.before else "/dev/null", new if found.after else "/dev/null"
    if b"\0" in one + other:
        yield f"Binary files {old} and {new} differ\n"
        return
    for line in unified_diff(_lines(one), _lines(other), old, new):
        yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"


def _counts(store: ObjectStore, found: Difference) -> tuple[int | None, int | None]:
    one, other = _content(store, found.before), _content(store, found.after)
    if b"\0" in one + other:
        return None, None
    changed = [
        (end - start, stop - at)
        for kind, start, end, at, stop in _matched(_lines(one), _lines(other))
        if kind != "equal"
    ]
    return sum(plus for _, plus in changed), sum(minus for minus, _ in changed)


def _matched(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def _content(store: ObjectStore, entry: Entry | None) -> bytes:
    return store.blob(entry.sha) if entry else b""


def _lines(content: bytes) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", content.decode(errors="surrogateescape"))
