"""Say which image a repository has for `image` of the policy; `init` never writes it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from mulligan.config.devcontainer import (
    DEVCONTAINER_FILES,
    source_of_devcontainer,
    whole_reference,
)
from mulligan.config.policy import DEVCONTAINER, IMAGE
from mulligan.domain.errors import MisconfiguredError
from mulligan.interfaces.onboarding.tree import RepositoryFiles
from mulligan.interfaces.onboarding.workflows import CiJob


@dataclass(frozen=True, slots=True)
class OwnImage:
    """A value of `image` that would fit, where it was found, and what the operator must allow."""

    value: str
    source: str
    permission: str


def find_image(tree: RepositoryFiles, jobs: Iterable[CiJob]) -> OwnImage | None:
    """Find the image of a devcontainer.json, or of a job of the CI; None if there is none."""
    for path in DEVCONTAINER_FILES:
        if path in tree.texts:
            try:
                source = source_of_devcontainer(path, tree.texts[path].encode())
            except MisconfiguredError:
                break
            allowed = (
                f'{{images: ["{source}"]}}' if isinstance(source, str) else "{builds: [OWNER/NAME]}"
            )
            return OwnImage(DEVCONTAINER, path, allowed)
    for job in jobs:
        reference = whole_reference(job.image) if job.image else ""
        if IMAGE.fullmatch(reference):
            return OwnImage(reference, job.path, f'{{images: ["{reference}"]}}')
    return None


def image_lines(image: OwnImage | None) -> list[str]:
    """Return the lines for `.github/mulligan.yml`, all of them comments."""
    if image is None:
        return []
    return [
        f"# The commands can run in the image that {image.source} names.",
        "# For that, mulligan.yml allows it:",
        f"# sandbox: {image.permission}",
        "# and this file says:",
        f"# image: {image.value}",
    ]
