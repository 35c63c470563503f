"""Read the code around the locations that a check reports, safely, from a worktree (CONTEXT-14)."""

import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath

from tree_sitter import Language, Node, Parser

from mulligan.domain.result import Finding, SourceExcerpt

# The code around a location

MAX_EXCERPTS = 5
FILE_BYTES = 512 * 1024
CONTEXT_LINES = 3

MAX_WHOLE_BLOCK_LINES = 24
"""Limit of lines up to which the innermost function or class is shown whole."""

LINE_CHARS = 160


@dataclass(frozen=True, slots=True)
class Block:
    """A function or class by its first and last line, both counting from 1."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


def code_around(root: Path, findings: Iterable[Finding]) -> tuple[SourceExcerpt, ...]:
    """Return excerpts of the first locations in findings, each once."""
    places = dict.fromkeys(
        (found.file, found.line) for found in findings if found.file and found.line
    )
    shown = list[SourceExcerpt]()
    for file, line in places:
        if len(shown) < MAX_EXCERPTS and file and line:
            text = _around(root, file, line)
            shown += [SourceExcerpt(file=file, line=line, text=text)] if text else []
    return tuple(shown)


def _around(root: Path, file: str, line: int) -> str:
    content = read(root, file, FILE_BYTES)
    if not content or b"\0" in content:
        return ""
    lines = content.decode(errors="replace").rstrip("\n").split("\n")
    # A tool that misses something at the end reports the line after the last.
    at = min(line, len(lines))
    return excerpt(lines, at, enclosing(content, file, at)) if line <= at + 1 else ""


def excerpt(lines: Sequence[str], line: int, blocks: Sequence[Block]) -> str:
    """Return the heads of the enclosing blocks, outermost first, and the marked line's context.

    All lines count from 1; a short innermost block is shown whole.
    """
    wanted = {line + step for step in range(-CONTEXT_LINES, CONTEXT_LINES + 1)}
    wanted |= {block.first for block in blocks}
    if blocks and len(blocks[-1]) <= MAX_WHOLE_BLOCK_LINES:
        wanted |= set(range(blocks[-1].first, blocks[-1].last + 1))
    chosen = sorted(number for number in wanted if 1 <= number <= len(lines))
    width, lines_shown, last = len(str(chosen[-1])), list[str](), chosen[0] - 1
    for number in chosen:
        if number > last + 1:
            lines_shown.append(f"  {'':{width}} | ...")
        mark = ">" if number == line else " "
        lines_shown.append(f"{mark} {number:{width}} | {lines[number - 1][:LINE_CHARS]}".rstrip())
        last = number
    return "\n".join(lines_shown)


# The functions and classes that enclose a line

LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".cjs", ".mjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".cts", ".mts"), "typescript.language_typescript"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    **dict.fromkeys((".sh", ".bash"), "bash"),
    ".tsx": "typescript.language_tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".cs": "c_sharp",
    ".rb": "ruby",
    ".php": "php.language_php",
    ".swift": "swift",
    ".scala": "scala",
}
"""Grammars by file suffix; blocks of other languages are found by indentation.

A grammar is a package `tree_sitter_NAME`, and the function in it that gives the language.
"""


@cache
def _parser(grammar: str) -> Parser:
    package, _, function = grammar.partition(".")
    # Imported only for a file of that language.
    module = import_module(f"tree_sitter_{package}")
    language: Callable[[], object] = getattr(module, function or "language")
    return Parser(Language(language()))


BLOCK = re.compile(
    r"(?:\w+_)?(?:function|func|method|class|struct|interface|trait|impl|constructor|object|mod"
    r"|module|subroutine|closure|lambda)"
    r"(?:_(?:definition|declaration|declaration_statement|item|statement|literal|specifier"
    r"|expression|implementation|def))?"
)
"""Kinds of nodes that define something, in the words that the grammars share."""

MAX_BLOCK_DEPTH = 6


def enclosing(content: bytes, file: str, line: int) -> tuple[Block, ...]:
    """Return the blocks that enclose a line, outermost first."""
    language = LANGUAGES.get(PurePosixPath(file).suffix.lower())
    lines = content.split(b"\n")
    if not 1 <= line <= len(lines):
        return ()
    if language is None:
        return _by_indentation([row.decode(errors="replace") for row in lines], line)
    root = _parser(language).parse(content).root_node
    row = lines[line - 1]
    at = (line - 1, len(row) - len(row.lstrip()))
    found = root.named_descendant_for_point_range(at, at)
    blocks = dict.fromkeys(_enclosing_definitions(found)) if found else {}
    return tuple(blocks)[:MAX_BLOCK_DEPTH][::-1]


def _enclosing_definitions(node: Node) -> Iterator[Block]:
    """Yield the definitions around a node, innermost first, without the file itself."""
    at: Node | None = node
    while at and at.parent:
        if BLOCK.fullmatch(at.type) and at.end_point.row > at.start_point.row:
            yield Block(at.start_point.row + 1, at.end_point.row + 1)
        at = at.parent


def _by_indentation(lines: list[str], line: int) -> tuple[Block, ...]:
    """Return the blocks under which a line is indented."""
    blocks, depth = list[Block](), _depth(lines[line - 1])
    for above in range(line - 1, 0, -1):
        text = lines[above - 1]
        if text.strip() and _depth(text) < depth:
            depth = _depth(text)
            blocks.append(Block(above, _end(lines, above, depth)))
    return tuple(blocks[:MAX_BLOCK_DEPTH][::-1])


def _end(lines: list[str], first: int, depth: int) -> int:
    """Return the last line that is indented deeper than the first one."""
    last = first
    for number in range(first + 1, len(lines) + 1):
        text = lines[number - 1]
        if text.strip() and _depth(text) <= depth:
            break
        last = number if text.strip() else last
    return last


def _depth(text: str) -> int:
    expanded = text.expandtabs()
    return len(expanded) - len(expanded.lstrip())


# Files below a directory, without following links out of it


def read(root: Path, name: str, most: int) -> bytes | None:
    """Read a file below `root`; None if it does not exist or is larger than `most` bytes."""
    with suppress(OSError, ValueError), _directory_of(root, name) as (directory, last):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(last, flags, dir_fd=directory), "rb") as opened:
            found = os.fstat(opened.fileno())
            if stat.S_ISREG(found.st_mode) and found.st_size <= most:
                return opened.read(most)
    return None


def remove(root: Path, name: str) -> None:
    """Remove a file or link below `root`, if it exists."""
    with suppress(OSError, ValueError), _directory_of(root, name) as (directory, last):
        os.unlink(last, dir_fd=directory)


@contextmanager
def _directory_of(root: Path, name: str) -> Generator[tuple[int, str]]:
    """Open the directory of a file, step by step; yield it, and the last part of the name."""
    *parents, last = _steps(root, name)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    directory = os.open(root, flags)
    try:
        for parent in parents:
            below = os.open(parent, flags | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = below
        yield directory, last
    finally:
        os.close(directory)


def _steps(root: Path, name: str) -> tuple[str, ...]:
    """Split a path, relative or absolute, into parts; ValueError if it leads out of `root`."""
    path = PurePosixPath(name)
    parts = (path.relative_to(root.as_posix()) if path.is_absolute() else path).parts
    if not parts or ".." in parts:
        raise ValueError(f"{name!r} is not a file in {root}.")
    return parts
