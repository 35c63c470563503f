"""The functions and classes that a line lies in: by grammar, else by indentation. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tree_sitter import Node
from tree_sitter_language_pack import SupportedLanguage, get_parser

LANGUAGES: Mapping[str, SupportedLanguage] = {
    **dict.fromkeys((".py", ".pyi"), "python"),
    **dict.fromkeys((".js", ".cjs", ".mjs", ".jsx"), "javascript"),
    **dict.fromkeys((".ts", ".cts", ".mts"), "typescript"),
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    **dict.fromkeys((".sh", ".bash"), "bash"),
    **dict.fromkeys((".ml", ".mli"), "ocaml"),
    **dict.fromkeys((".pl", ".pm"), "perl"),
    **dict.fromkeys((".groovy", ".gradle"), "groovy"),
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".cs": "csharp",
    ".rb": "ruby",
    ".php": "php",
    ".swift": "swift",
    ".scala": "scala",
    ".lua": "lua",
    ".hs": "haskell",
    ".dart": "dart",
    ".zig": "zig",
    ".r": "r",
    ".jl": "julia",
    ".m": "objc",
    ".ps1": "powershell",
    ".sol": "solidity",
}
"""Grammars by the end of a file's name; those of other languages are told by indentation."""

BLOCK = re.compile(
    r"(?:\w+_)?(?:function|func|method|class|struct|interface|trait|impl|constructor|object|mod"
    r"|module|subroutine|closure|lambda)"
    r"(?:_(?:definition|declaration|declaration_statement|item|statement|literal|specifier"
    r"|expression|implementation|def))?"
)
"""Kinds of nodes that define something, in the words that the grammars share."""

DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Block:
    """A function or class by its first and last line, both counting from 1."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1


def enclosing(content: bytes, file: str, line: int) -> tuple[Block, ...]:
    """Give the blocks that a line lies in, outermost first."""
    language = LANGUAGES.get(PurePosixPath(file).suffix.lower())
    lines = content.split(b"\n")
    if not 1 <= line <= len(lines):
        return ()
    if language is None:
        return _by_indentation([row.decode(errors="replace") for row in lines], line)
    root = get_parser(language).parse(content).root_node
    row = lines[line - 1]
    at = (line - 1, len(row) - len(row.lstrip()))
    found = root.named_descendant_for_point_range(at, at)
    blocks = dict.fromkeys(_climb(found)) if found else {}
    return tuple(blocks)[:DEEPEST][::-1]


def _climb(node: Node) -> Iterator[Block]:
    """Yield the definitions around a node, innermost first; the file itself is none."""
    at: Node | None = node
    while at and at.parent:
        if BLOCK.fullmatch(at.type) and at.end_point.row > at.start_point.row:
            yield Block(at.start_point.row + 1, at.end_point.row + 1)
        at = at.parent


def _by_indentation(lines: list[str], line: int) -> tuple[Block, ...]:
    """Take what a line is indented under, wherever that leads."""
    blocks, depth = list[Block](), _depth(lines[line - 1])
    for above in range(line - 1, 0, -1):
        text = lines[above - 1]
        if text.strip() and _depth(text) < depth:
            depth = _depth(text)
            blocks.append(Block(above, _end(lines, above, depth)))
    return tuple(blocks[:DEEPEST][::-1])


def _end(lines: list[str], first: int, depth: int) -> int:
    """Find the last line that is indented deeper than the first one."""
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
