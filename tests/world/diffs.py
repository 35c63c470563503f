"""Changes as git would tell them, made from two sets of files without git."""

import difflib
import re
from collections.abc import Iterator, Mapping

from mulligan.domain.attempt import Change
from mulligan.domain.result import FileChange

Files = Mapping[str, str]
FILE = "100644"


def change_of(before: Files, after: Files, moved: Mapping[str, str] | None = None) -> Change:
    """Return the differences; `moved` maps old names to new ones that git would detect."""
    names = {new: old for old, new in (moved or {}).items()}
    gone = before.keys() - after.keys() - set(names.values())
    pairs = [(names.get(path, path), path) for path in after]
    pairs = [(old, new) for old, new in pairs if before.get(old) != after[new] or old != new]
    pairs += [(path, path) for path in gone]
    files = tuple(_file_diff(before, after, old, new) for old, new in sorted(pairs))
    diff = "".join(_patch(before.get(old), after.get(new), old, new) for old, new in sorted(pairs))
    return Change("a" * 40, "b" * 40, 1, files, diff.encode(errors="surrogateescape"))


def _file_diff(before: Files, after: Files, old: str, new: str) -> FileChange:
    status = "R" if old != new else "D" if new not in after else "M" if old in before else "A"
    size = len(after[new].encode(errors="surrogateescape")) if new in after else None
    old_path = old if status == "R" else None
    return FileChange(path=new, status=status, old_path=old_path, mode=FILE, size=size)


def _patch(before: str | None, after: str | None, old: str, new: str) -> str:
    head = [f"diff --git a/{old} b/{new}"]
    if old != new:
        head += ["similarity index 90%", f"rename from {old}", f"rename to {new}"]
    head += [f"new file mode {FILE}"] * (before is None)
    head += [f"deleted file mode {FILE}"] * (after is None)
    head += [f"index 0000000..1111111 {FILE}"] if before is not None and after is not None else []
    if before == after or not (before or after):
        return "\n".join([*head, ""])
    head.append("--- /dev/null" if before is None else f"--- a/{old}")
    head.append("+++ /dev/null" if after is None else f"+++ b/{new}")
    return "\n".join([*head, *_hunks(before or "", after or ""), ""])


def _hunks(before: str, after: str) -> Iterator[str]:
    lines = before.split("\n")[:-1]
    told = difflib.unified_diff(lines, after.split("\n")[:-1], lineterm="")
    for line in list(told)[2:]:
        yield line + _heading(lines, line) if line.startswith("@@ ") else line


def _heading(lines: list[str], opening: str) -> str:
    found = re.match(r"@@ -(\d+)", opening)
    above = lines[: int(found[1]) - 1] if found else []
    names = [line for line in above if re.match(r"[A-Za-z_$]", line)]
    return f" {names[-1][:80]}" if names else ""
