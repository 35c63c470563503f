"""Read `git diff-tree -r -z --raw --numstat --no-renames` into file changes. Pure."""

from mulligan.domain.result import FileChange

BINARY = b"-"


def changes_of(output: bytes) -> tuple[FileChange, ...]:
    """List the files in git's order; a name that is not UTF-8 has its bad bytes replaced."""
    tokens = iter(output.split(b"\0"))
    letters, files = dict[bytes, str](), list[FileChange]()
    for token in tokens:
        if token.startswith(b":"):
            letters[next(tokens)] = token.rpartition(b" ")[2].decode()
        elif token:
            plus, minus, path = token.split(b"\t", 2)
            files.append(_change(path, letters.get(path, "M"), plus, minus))
    return tuple(files)


def _change(path: bytes, letter: str, plus: bytes, minus: bytes) -> FileChange:
    binary = BINARY in {plus, minus}
    return FileChange(
        path=path.decode(errors="replace"),
        status=letter,
        insertions=None if binary else int(plus),
        deletions=None if binary else int(minus),
    )
