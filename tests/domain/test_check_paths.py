"""Which changes concern a check that has `paths` (CHECK-8)."""

import pytest

from mulligan.domain.check_paths import concerns_all, concerns_check

pytestmark = pytest.mark.pure

WEB = ("packages/web/", "*.css")


@pytest.mark.parametrize(
    ("paths", "command", "changed", "concerned"),
    [
        ((), "x", {"a"}, True),
        (WEB, "x", {"packages/web/src/a.ts"}, True),
        (WEB, "x", {"packages/api/site.css"}, True),
        (WEB, "x", {"packages/api/a.py", "packages/website/a.ts"}, False),
        (WEB, "x", set[str](), False),
        (WEB, "./ci/web.sh --all", {"ci/web.sh"}, True),
        (WEB, "sh ci/web.sh", {"ci/api.sh"}, False),
        (WEB, "make -C packages/web test", {"Makefile"}, True),
        (("*", "!docs/**"), "x", {"docs/a.md", "docs/deep/b.md"}, False),
        (("*", "!docs/**"), "x", {"docs/a.md", "a.py"}, True),
    ],
)
def test_a_check_is_concerned_by_its_paths_and_the_files_that_its_command_names(
    paths: tuple[str, ...], command: str, changed: set[str], *, concerned: bool
) -> None:
    assert concerns_check(changed, paths, command) is concerned


@pytest.mark.parametrize(
    ("commands", "inputs", "changed", "concerned"),
    [
        ((), (), "package.json", True),
        ((), (), "pnpm-lock.yaml", True),
        ((), (), "go.work", True),
        ((), (), "conftest.py", True),
        ((), (), "vitest.config.ts", True),
        ((), (), "README.md", False),
        ((), (), "packages/web/package.json", False),
        ((), (), "packages/web/conftest.py", False),
        (("npm ci",), (), "packages/web/package.json", True),
        (("sh tools/install.sh",), (), "tools/install.sh", True),
        (("npm ci",), ("native/",), "native/a.c", True),
        (("npm ci",), ("native/",), "packages/web/package.json", False),
        (("npm ci",), ("native/",), "package-lock.json", True),
        (("npm ci",), (), "packages/web/src/a.ts", False),
    ],
)
def test_files_that_everything_depends_on_concern_every_check(
    commands: tuple[str, ...], inputs: tuple[str, ...], changed: str, *, concerned: bool
) -> None:
    assert concerns_all({"src/a.py", changed}, commands, inputs) is concerned
