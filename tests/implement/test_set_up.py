"""Which changes have the setup commands run again (SETUP-3)."""

import pytest

from mulligan.config.policy import SetUp
from mulligan.domain.attempt import Change
from mulligan.domain.result import FileChange
from mulligan.implement.set_up import touched_inputs

pytestmark = pytest.mark.pure

NPM = SetUp(run=("npm ci",))
OWN = SetUp(run=("npm ci",), inputs=("deps/",))


@pytest.mark.parametrize(
    ("settings", "files", "touched"),
    [
        (NPM, [FileChange(path="src/a.js", status="M")], ()),
        (NPM, [FileChange(path="web/package.json", status="M")], ("web/package.json",)),
        (NPM, [FileChange(path="package-lock.json", status="D")], ("package-lock.json",)),
        (
            NPM,
            [FileChange(path="old.json", status="R", old_path="package.json")],
            ("package.json",),
        ),
        (SetUp(run=("sh fetch.sh",)), [FileChange(path="fetch.sh", status="M")], ("fetch.sh",)),
        (OWN, [FileChange(path="package.json", status="M")], ()),
        (OWN, [FileChange(path="deps/a", status="A")], ("deps/a",)),
        (SetUp(), [FileChange(path="package.json", status="M")], ()),
    ],
)
def test_a_change_to_an_input_is_seen(
    settings: SetUp, files: list[FileChange], touched: tuple[str, ...]
) -> None:
    assert touched_inputs(Change("a" * 40, "b" * 40, 1, tuple(files)), settings) == touched
