"""C and C++: CMake, Meson, the Autotools; each check builds first, for it starts clean. Pure."""

from mulligan.starter.proposal import Proposal, build, suite
from mulligan.starter.tree import Tree

CMAKE = "cmake -S . -B build && cmake --build build --parallel"
CTEST = "ctest --test-dir build --output-on-failure"
TESTING = r"enable_testing\s*\(|include\s*\(\s*CTest"
MESON = "meson setup build"


def propose(tree: Tree) -> Proposal | None:
    """Propose by the first build system that is there."""
    if "CMakeLists.txt" in tree.paths:
        if tree.says(TESTING, "CMakeLists.txt"):
            return Proposal("CMake", (), (suite(f"{CMAKE} && {CTEST}", "CMakeLists.txt"),))
        return Proposal("CMake", (), (build(CMAKE, "CMakeLists.txt"),))
    if "meson.build" in tree.paths:
        if tree.says(r"^\s*test\s*\(|subdir\s*\(\s*'tests?'", "meson.build"):
            line = f"{MESON} && meson test -C build --print-errorlogs"
            return Proposal("Meson", (), (suite(line, "meson.build"),))
        return Proposal("Meson", (), (build(f"{MESON} && meson compile -C build", "meson.build"),))
    if tree.has("configure.ac", "configure.in"):
        ready = "./configure" if "configure" in tree.paths else "autoreconf -i && ./configure"
        return Proposal("Autotools", (), (suite(f"{ready} && make check", "configure.ac"),))
    return None
