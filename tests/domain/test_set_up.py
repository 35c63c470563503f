"""Which files decide whether setup commands have to run (SETUP-2)."""

import pytest

from mulligan.domain.set_up import key_inputs, select_inputs

pytestmark = pytest.mark.pure

TREE = (
    *("README.md", "pyproject.toml", "requirements-dev.txt", "web/package.json"),
    *("web/src/package.jsonc", "crates/a/Cargo.lock", "tools/setup.sh", "Makefile", "tox.ini"),
    *("src/shop.py", "app.csproj", "docs/requirements.md"),
)
MANIFESTS = {
    *("pyproject.toml", "requirements-dev.txt", "web/package.json", "crates/a/Cargo.lock"),
    "app.csproj",
}


@pytest.mark.parametrize(
    ("lines", "patterns", "found"),
    [
        (("pip install .",), (), MANIFESTS),
        (("./tools/setup.sh --all",), (), MANIFESTS | {"tools/setup.sh"}),
        (("sh tools/setup.sh",), (), MANIFESTS | {"tools/setup.sh"}),
        (("cd web && npm ci; make deps",), (), MANIFESTS | {"Makefile"}),
        (("tox --notest",), (), MANIFESTS | {"tox.ini"}),
        (
            ("make deps",),
            ("web/", "*.py"),
            {"web/package.json", "web/src/package.jsonc", "src/shop.py"},
        ),
        (
            ("make deps",),
            ("*", "!*.md", "!*.py"),
            {*TREE} - {"README.md", "docs/requirements.md", "src/shop.py"},
        ),
        (("make deps",), ("nothing",), set[str]()),
    ],
)
def test_the_inputs_are_manifests_or_what_the_repository_names(
    lines: tuple[str, ...], patterns: tuple[str, ...], found: set[str]
) -> None:
    assert select_inputs(TREE, lines, patterns) == found


def test_without_inputs_every_file_is_one() -> None:
    blobs = {"b.c": "2", "a.c": "1"}
    assert key_inputs(blobs, ("./configure",), ()) == {"a.c": "1", "b.c": "2"}
    assert list(key_inputs(blobs | {"package.json": "3"}, ("npm ci",), ())) == ["package.json"]


def test_what_has_another_content_gives_another_key() -> None:
    before, after = {"go.mod": "1", "a.go": "1"}, {"go.mod": "2", "a.go": "1"}
    lines = ("go mod download",)
    assert key_inputs(before, lines, ()) != key_inputs(after, lines, ())
    assert key_inputs(before, lines, ()) == key_inputs(before | {"a.go": "2"}, lines, ())
