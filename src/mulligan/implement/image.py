"""Choose the image in which an attempt's setup commands and checks run (IMAGE-1, IMAGE-2)."""

import hashlib
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from mulligan.config.devcontainer import devcontainer_file, source_of_devcontainer
from mulligan.config.policy import DEVCONTAINER, Policy
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.image import CONTEXT, BuildFiles, ImageBuild
from mulligan.domain.issue import IssueRef
from mulligan.domain.set_up import SetUpError
from mulligan.implement.ports import Artifacts, Images, Worktree, Worktrees
from mulligan.implement.set_up import SET_UP_LOG, require_passed


class ImageTools(Protocol):
    """What opening an image needs: less than a WriteContext, since `mulligan check` has none."""

    @property
    def artifacts(self) -> Artifacts: ...
    @property
    def images(self) -> Images: ...
    @property
    def worktrees(self) -> Worktrees: ...


def in_image(
    tree: Worktree, ref: IssueRef, number: int, policy: Policy, tools: ImageTools, uses: ExitStack
) -> Worktree:
    """Return the worktree with the image of the policy, if it names one.

    `uses` keeps the image. MisconfiguredError or UnavailableError if it cannot be used.
    """
    if not policy.image:
        return tree
    repository, sha = ref.repository, tree.base_sha
    source: str | ImageBuild = policy.image
    if source == DEVCONTAINER:
        found = devcontainer_file(lambda path: tools.worktrees.base_file(repository, path, sha))
        source = source_of_devcontainer(*found)
    if isinstance(source, str):
        return tree.with_image(tools.images.open(repository, source, uses))
    files = _files_of(source, repository, sha, tools.worktrees)
    log = tools.artifacts.path(ref, number, SET_UP_LOG)
    try:
        image = tools.images.build(repository, source, files, log, uses)
    except SetUpError as error:
        require_passed(error.failed, ref)
        raise
    return tree.with_image(image)


def _files_of(build: ImageBuild, repository: str, sha: str, worktrees: Worktrees) -> BuildFiles:
    """Find the files of a build in a commit of the base branch; MisconfiguredError if one lacks."""
    file = worktrees.base_file(repository, build.file, sha)
    tree = worktrees.base_tree(repository, build.context, sha)
    if file is None or tree is None:
        raise MisconfiguredError(
            f"The devcontainer.json of the base branch names {build.file} and the directory"
            f" {build.context} for a build, and one of them does not exist; fix it."
        )
    content = f"{tree} {hashlib.sha256(file).hexdigest()}"

    def write(place: Path) -> Path:
        context, dockerfile = place / CONTEXT, place / "Dockerfile"
        context.mkdir()
        worktrees.write_tree(repository, tree, context)
        dockerfile.write_bytes(file)
        return dockerfile

    return BuildFiles(content, write)
