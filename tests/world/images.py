"""An image whose root is assembled from programs of this machine."""

import atexit
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from mulligan.domain.image import Image

PYTHON = str(Path(sys.executable).resolve())
PROGRAMS = (
    "sh",
    "cat",
    "echo",
    "env",
    "git",
    "id",
    "ls",
    "mkdir",
    "readlink",
    "rm",
    "sleep",
    "true",
)
SHARED_OBJECT = re.compile(r"(/\S+) \(0x")
WITHOUT = shutil.ignore_patterns(
    *(
        "__pycache__",
        "test",
        "tests",
        "site-packages",
        "idlelib",
        "ensurepip",
        "config-*",
        "*.a",
        "_tkinter*",
    )
)
PATH = "/image/bin"


def assembled_image() -> Image:
    """Give an image with a shell, a few programs and Python; it is deleted at the end."""
    return image_at(_root_with_python())


def image_at(root: Path) -> Image:
    """Give an image with these files."""
    return Image("localhost/assembled:1", f"sha256:{'a' * 64}", root, {"PATH": PATH})


def assemble(root: Path) -> Image:
    """Make an image with a shell and a few programs in a new directory."""
    programs = [found for name in PROGRAMS if (found := shutil.which(name, path="/usr/bin:/bin"))]
    for program in programs:
        _copy(Path(program), root / PATH[1:] / Path(program).name)
    _copy(root / PATH[1:] / "sh", root / "bin" / "sh")
    _copy_libraries(root, map(Path, programs))
    (root / "etc").mkdir()
    (root / "etc" / "os-release").write_text("ID=assembled\n")
    return image_at(root)


@cache
def _root_with_python() -> Path:
    root = Path(tempfile.mkdtemp(prefix="mulligan-image-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    assemble(root)
    _copy(Path(PYTHON), _in(root, PYTHON))
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(library, _in(root, library), ignore=WITHOUT, symlinks=True)
    modules = _in(root, library).glob("lib-dynload/*.so")
    _copy_libraries(root, (Path(PYTHON), *modules))
    return root


def _copy_libraries(root: Path, objects: Iterable[Path]) -> None:
    for found in _needed(objects):
        _copy(Path(found), _in(root, found))


def _in(root: Path, path: Path | str) -> Path:
    return root / Path(path).relative_to("/")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def _needed(objects: Iterable[Path]) -> Iterator[str]:
    """Yield the libraries that programs and modules load, and the loader."""
    listed = subprocess.run(
        ["ldd", *map(str, objects)], capture_output=True, text=True, check=False
    )
    yield from dict.fromkeys(SHARED_OBJECT.findall(listed.stdout))
