"""The table of protected files is whole, and its patterns match what a file system reads."""

import pytest

from mulligan.config.policy import POLICY_FILES
from mulligan.domain.globs import globs
from mulligan.domain.protected import PROTECTED, PROTECTED_BY_DEFAULT, Protected, normalised_path

pytestmark = pytest.mark.pure


def test_each_kind_has_its_files_and_their_patterns_are_normalised() -> None:
    assert set(PROTECTED) == set(Protected)
    assert set(Protected) - set(PROTECTED_BY_DEFAULT) == {Protected.AUTORUN}
    for files in PROTECTED.values():
        assert [normalised_path(pattern) for pattern in files.patterns] == [*files.patterns]


def test_every_path_of_a_policy_is_protected() -> None:
    policy = globs(PROTECTED[Protected.POLICY].patterns)
    assert [path for path in POLICY_FILES if not policy.match(path)] == []


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("AGENTS.md", "agents.md"),
        ("a/Cl\u200daude.MD", "a/claude.md"),
        ("\uff21gents.md", "agents.md"),
        (".github /Workflows./x.yml", ".github/workflows/x.yml"),
    ],
)
def test_names_that_a_file_system_treats_as_equal_are_equal(path: str, same: str) -> None:
    assert normalised_path(path) == same
