"""Which commit an installation is of is read from what its installer noted."""

import json

import pytest

from mulligan.domain.errors import UsageError
from mulligan.interfaces.onboarding.proposal import ActionSource, Origin, named, recorded, source_at

COMMIT = "0123456789" * 4

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("noted", "source"),
    [
        (None, None),
        ("no json", None),
        ({"url": "file:///src/mulligan", "dir_info": {"editable": True}}, None),
        (
            {"url": "https://github.com/acme/mulligan.git", "vcs_info": {"commit_id": COMMIT}},
            ActionSource("acme/mulligan", COMMIT, "github.com"),
        ),
        ({"url": "file:///src/mulligan", "vcs_info": {"commit_id": COMMIT}}, None),
        ({"url": "https://github.com/acme/m", "vcs_info": {"commit_id": "12"}}, None),
    ],
)
def test_an_installer_notes_the_commit(noted: object, source: ActionSource | None) -> None:
    text = noted if isinstance(noted, str) or noted is None else json.dumps(noted)
    assert recorded(text) == source


def test_a_workflow_calls_only_what_is_on_its_own_github() -> None:
    ours = source_at(Origin("acme/mulligan", "ghe.example"), COMMIT)
    assert ours
    assert ours.serves(Origin("o/r", "ghe.example"))
    assert ours.serves(None)
    assert not ours.serves(Origin("o/r", "github.com"))
    assert named(f"acme/mulligan@{COMMIT}").serves(Origin("o/r", "github.com"))


def test_what_is_not_pinned_names_no_source() -> None:
    with pytest.raises(UsageError, match="40"):
        named("acme/mulligan@v1")
