"""The image of a devcontainer comes from the base branch, and from nothing else (IMAGE-2)."""

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest

from mulligan.config.policy import Policy
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.image import CONTEXT, BuildFiles, Image, ImageBuild
from mulligan.implement.image import in_image
from mulligan.implement.ports import Artifacts, Images, Worktrees
from mulligan.storage.artifacts import FileArtifacts
from world.checkouts import REF, REPOSITORY
from world.kept_work import KINDS
from world.plain_worktrees import Clones, PlainWorktree
from world.repositories import branch_head, commit_to, make_remote

POLICY = Policy(image="devcontainer")
FILE = ".devcontainer/devcontainer.json"


@dataclass
class Recording:
    """Implements Images: it keeps what it is asked to build, and the files for it."""

    place: Path
    builds: list[ImageBuild] = field(default_factory=list[ImageBuild])
    contents: list[str] = field(default_factory=list[str])

    def open(self, repository: str, reference: str, uses: ExitStack) -> Image:
        raise AssertionError(reference)

    def build(
        self, repository: str, build: ImageBuild, files: BuildFiles, log: Path, uses: ExitStack
    ) -> Image:
        assert repository == REPOSITORY
        place = self.place / str(len(self.builds))
        place.mkdir(parents=True)
        log.write_text(files.write(place).read_text())
        self.builds.append(build)
        self.contents.append(files.content)
        return Image(build.file, "sha256:", place / CONTEXT, {})

    def prune(self, before: datetime) -> None:
        raise AssertionError(before)


@dataclass(frozen=True)
class Tools:
    """Implements ImageTools."""

    artifacts: Artifacts
    images: Images
    worktrees: Worktrees


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    files = {
        FILE: '{"build": {"dockerfile": "Dockerfile", "context": "../app"}}',
        ".devcontainer/Dockerfile": "FROM a\n",
        "app/one.txt": "1\n",
    }
    return make_remote(tmp_path / "remote.git", files)


@pytest.fixture
def clones(tmp_path: Path, remote: Path) -> Clones:
    (root := tmp_path / "work").mkdir()
    return KINDS["plain"](root, remote)


@pytest.fixture
def images(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "built")


@pytest.fixture
def tools(tmp_path: Path, clones: Clones, images: Recording) -> Tools:
    return Tools(FileArtifacts(tmp_path / "artifacts"), images, clones)


def opened(tools: Tools, base: str = "") -> PlainWorktree:
    """Open the worktree in which an attempt starts, on an older base."""
    with tools.worktrees.open(REF) as tree, ExitStack() as uses:
        assert isinstance(tree, PlainWorktree)
        started = replace(tree, base_sha=base or tree.base_sha)
        found = in_image(started, REF, 1, POLICY, tools, uses)
        assert isinstance(found, PlainWorktree)
        return found


def test_the_context_and_the_dockerfile_are_those_of_the_base(
    tools: Tools, images: Recording, remote: Path
) -> None:
    base = branch_head(remote, "main") or ""
    commit_to(remote, {".devcontainer/Dockerfile": "FROM evil\n", "app/two.txt": "2\n"})
    tree = opened(tools, base)
    assert tree.image
    assert sorted(each.name for each in tree.image.root.iterdir()) == ["one.txt"]
    assert tools.artifacts.path(REF, 1, "setup.log").read_text() == "FROM a\n"
    assert images.builds == [ImageBuild(".devcontainer/Dockerfile", "app")]


def test_what_a_build_does_not_use_does_not_count(
    tools: Tools, images: Recording, remote: Path
) -> None:
    opened(tools)
    commit_to(remote, {"README.md": "x\n"})
    opened(tools)
    commit_to(remote, {"app/two.txt": "2\n"})
    opened(tools)
    commit_to(remote, {".devcontainer/Dockerfile": "FROM b\n"})
    opened(tools)
    first, second, third, fourth = images.contents
    assert first == second
    assert len({first, third, fourth}) == 3


@pytest.mark.parametrize(
    "file",
    [
        '{"build": {"dockerfile": "nowhere"}}',
        '{"build": {"dockerfile": "Dockerfile", "context": "../nowhere"}}',
        '{"build": {"dockerfile": "Dockerfile", "context": "Dockerfile"}}',
    ],
)
def test_a_build_without_its_files_is_a_mistake(file: str, tools: Tools, remote: Path) -> None:
    commit_to(remote, {FILE: file})
    with pytest.raises(MisconfiguredError, match=r"one of them does not exist"):
        opened(tools)


def test_without_a_file_the_policy_is_wrong(tools: Tools, tmp_path: Path) -> None:
    remote = make_remote(tmp_path / "other.git", {"a": "b\n"})
    (root := tmp_path / "other").mkdir()
    others = replace(tools, worktrees=KINDS["plain"](root, remote))
    with pytest.raises(MisconfiguredError, match=r"has no \.devcontainer/devcontainer\.json"):
        opened(others)
