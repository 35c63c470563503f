"""Draw the folders of the source into docs/architecture.md, from the import contracts.

`make docs` runs it. The order is that of the contracts in pyproject.toml, and each line is the
first sentence of the folder's `__init__.py`.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PAGE = Path("docs") / "architecture.md"
BEGIN, END = "<!-- folders: made by docs/folders.py -->\n", "<!-- end of folders -->\n"
LINE = "-" * 12


def drawn(root: Path) -> str:
    """Give the diagram of both packages, as the block that the page holds."""
    lines = [
        "src/mulligan/",
        *_floors(root, "mulligan", ""),
        "",
        "src/github_simulator/",
        f"  {'':<14} {_job(root / 'src' / 'github_simulator')}",
        *_floors(root, "github_simulator", ""),
    ]
    return "\n".join(["```", *lines, "```", ""])


def with_drawing(page: str, drawing: str) -> str:
    """Replace the drawing between the two markers of a page."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        message = f"{PAGE} needs the lines {BEGIN.strip()!r} and {END.strip()!r}."
        raise SystemExit(message)
    return f"{before}{BEGIN}{drawing}{END}{after}"


def _floors(root: Path, package: str, indent: str) -> Iterator[str]:
    """Draw the layers of a package, the highest first; without a contract, its folders."""
    layers = _layers(root, package)
    for position, layer in enumerate(layers or _subfolders(root, package)):
        if layers and position:
            yield f"{indent}  {LINE}"
        for name in (each.strip() for each in re.split(r"[|:]", layer)):
            place = root / "src" / Path(*package.split(".")) / name
            mark = "/" if place.is_dir() else ".py"
            yield f"{indent}  {name + mark:<14} {_job(place)}"
            yield from _floors(root, f"{package}.{name}", f"{indent}  ")


def _layers(root: Path, package: str) -> list[str]:
    """Read the layers that a contract names for a package; none where no contract does."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and package in contract["containers"]:
            return contract["layers"]
    return []


def _subfolders(root: Path, package: str) -> list[str]:
    inside = root / "src" / Path(*package.split("."))
    return sorted(found.parent.name for found in inside.glob("*/__init__.py"))


def _job(place: Path) -> str:
    """Give the first sentence of a package or module, without the mark that it is pure."""
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    said = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return re.sub(r" \([A-Z]+-\d+[^)]*\)", "", said.partition("\n")[0].removesuffix(" Pure."))


def main(root: Path) -> None:
    """Write the drawing into the page."""
    page = root / PAGE
    page.write_text(with_drawing(page.read_text(encoding="utf-8"), drawn(root)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parents[1])
