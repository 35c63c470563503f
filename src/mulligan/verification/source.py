"""The code around the places that a check names, taken before the tree is reset (SPEC C16)."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mulligan.domain.result import Finding, SourceExcerpt
from mulligan.verification import inside
from mulligan.verification.blocks import Block, enclosing

PLACES = 5
FILE_BYTES = 512 * 1024
BEFORE_AND_AFTER = 3
WHOLE_BLOCK = 24
"""Lines up to which the innermost function or class is shown whole."""
LINE_CHARS = 160


def code_around(root: Path, findings: Iterable[Finding]) -> tuple[SourceExcerpt, ...]:
    """Show the first places that findings name in files of the worktree, each place once."""
    places = dict.fromkeys(
        (found.file, found.line) for found in findings if found.file and found.line
    )
    shown = list[SourceExcerpt]()
    for file, line in places:
        if len(shown) < PLACES and file and line:
            text = _around(root, file, line)
            shown += [SourceExcerpt(file=file, line=line, text=text)] if text else []
    return tuple(shown)


def _around(root: Path, file: str, line: int) -> str:
    content = inside.read(root, file, FILE_BYTES)
    if not content or b"\0" in content:
        return ""
    lines = content.decode(errors="replace").rstrip("\n").split("\n")
    # A tool that misses something at the end names the line after the last.
    at = min(line, len(lines))
    return excerpt(lines, at, enclosing(content, file, at)) if line <= at + 1 else ""


def excerpt(lines: Sequence[str], line: int, blocks: Sequence[Block]) -> str:
    """Write the heads of the blocks, outermost first, and what stands around the marked line.

    All lines count from 1; a short innermost block is shown whole.
    """
    wanted = {line + step for step in range(-BEFORE_AND_AFTER, BEFORE_AND_AFTER + 1)}
    wanted |= {block.first for block in blocks}
    if blocks and len(blocks[-1]) <= WHOLE_BLOCK:
        wanted |= set(range(blocks[-1].first, blocks[-1].last + 1))
    chosen = sorted(number for number in wanted if 1 <= number <= len(lines))
    width, told, last = len(str(chosen[-1])), list[str](), chosen[0] - 1
    for number in chosen:
        if number > last + 1:
            told.append(f"  {'':{width}} | ...")
        mark = ">" if number == line else " "
        told.append(f"{mark} {number:{width}} | {lines[number - 1][:LINE_CHARS]}".rstrip())
        last = number
    return "\n".join(told)
