"""A policy file that is wrong keeps its own repository waiting, in one comment, until mended."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.issue import IssueRef
from world.issue_names import ref_of
from world.place import MAINTAINER, NAME, MulliganInstallation, mulligan_installation
from world.repositories import commit_to, make_remote

FILE = ".github/mulligan.yml"
OTHER = "acme/other"
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"
WRONG = "labels: {ready: robot}\nmax_issue_attempts: many\nchekcs: []\n"
RIGHT = "labels: {ready: robot}\n"


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    bare = make_remote(tmp_path / "tools.git", {"notes.txt": "one\n"})
    other = make_remote(tmp_path / "other.git", {"notes.txt": "one\n"})
    with mulligan_installation(tmp_path, bare) as made:
        made.world.add_repository(
            OTHER, other, "main", {MAINTAINER: "admin", "mulligan-bot": "write"}
        )
        made.configure(
            repositories=[
                {"name": NAME, "clone_url": str(bare)},
                {"name": OTHER, "clone_url": str(other)},
            ]
        )
        made.agent(WRITE)
        yield made


def labelled(here: MulliganInstallation, repository: str, label: str) -> IssueRef:
    ref = ref_of(here.world.open_issue(repository, "Two is missing", "Please.", "zoe"))
    here.world.label(ref, label, MAINTAINER)
    return ref


def writes(here: MulliganInstallation) -> list[str]:
    asked = [one for one in here.world.requests if one.method != "GET"]
    return [f"{one.method} {one.path}" for one in asked if f"/{NAME}/" in one.path]


@pytest.mark.deep
def test_one_comment_says_what_is_wrong_and_mending_it_is_enough(
    here: MulliganInstallation,
) -> None:
    commit_to(here.bare, {FILE: WRONG})
    ref = labelled(here, NAME, "robot")
    labelled(here, OTHER, "mulligan")
    done = here.run("once")
    assert done.returncode == 1
    assert f"{NAME}: Its policy is invalid" in done.stderr
    assert len(here.world.pulls_of(OTHER)) == 1
    (comment,) = here.comments(ref)
    for part in ("cannot start work yet", "line 2", "line 3", "chekcs", "checks"):
        assert part in comment
    assert here.world.labels_of(ref) == ["robot"]
    assert len(writes(here)) == 1
    assert here.run("once").returncode == 1
    assert len(writes(here)) == 1
    assert here.attempts(ref) == []
    assert "line 2: max_issue_attempts is 'many'" in here.run("explain", str(ref)).stdout
    assert "max_issue_attempts is 'many'" in here.run("doctor").stdout
    commit_to(here.bare, {FILE: RIGHT})
    assert here.run("once").returncode == 0
    assert len(here.world.pulls_of(NAME)) == 1
    (comment,) = here.comments(ref)
    assert "asks for a review" in comment


@pytest.mark.deep
def test_an_issue_that_is_withdrawn_meanwhile_is_left(here: MulliganInstallation) -> None:
    commit_to(here.bare, {FILE: "- not\n- a mapping\n"})
    ref = labelled(here, NAME, "mulligan")
    assert here.run("once").returncode == 1
    assert "the file is a list" in here.comments(ref)[0]
    here.world.unlabel(ref, "mulligan", MAINTAINER)
    assert here.run("once").returncode == 1
    (comment,) = here.comments(ref)
    assert "is done with this issue" in comment
    here.world.label(ref, "mulligan", MAINTAINER)
    commit_to(here.bare, {FILE: None})
    assert here.run("once").returncode == 0
    assert here.world.labels_of(ref) == ["mulligan:review"]
