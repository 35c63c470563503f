"""Choose the image in which an attempt's setup commands and checks run (IMAGE-1)."""

from contextlib import ExitStack
from typing import Protocol

from mulligan.config.devcontainer import devcontainer_file, image_of_devcontainer
from mulligan.config.policy import DEVCONTAINER, Policy
from mulligan.implement.ports import Images, Worktree, Worktrees


class ImageTools(Protocol):
    """What opening an image needs: less than a WriteContext, since `mulligan check` has none."""

    @property
    def images(self) -> Images: ...
    @property
    def worktrees(self) -> Worktrees: ...


def in_image(
    tree: Worktree, repository: str, policy: Policy, tools: ImageTools, uses: ExitStack
) -> Worktree:
    """Return the worktree with the image of the policy, if it names one.

    `uses` keeps the image. MisconfiguredError or UnavailableError if it cannot be used.
    """
    if not policy.image:
        return tree
    reference = policy.image
    if reference == DEVCONTAINER:
        found = devcontainer_file(
            lambda path: tools.worktrees.base_file(repository, path, tree.base_sha)
        )
        reference = image_of_devcontainer(*found)
    return tree.with_image(tools.images.open(repository, reference, uses))
