"""Propose `checkout` of the policy, from the files of a repository and of its CI. Pure."""

from collections.abc import Iterable, Mapping

from mulligan.config.policy import RECURSIVE, CheckoutSettings
from mulligan.interfaces.onboarding.workflows import CiJob

GITMODULES = ".gitmodules"
ATTRIBUTES = ".gitattributes"
LFS_FILTER = "filter=lfs"
ACTION = "actions/checkout@"


def propose_checkout(files: Mapping[str, str], jobs: Iterable[CiJob]) -> CheckoutSettings:
    """Propose the key.

    `files` are texts of the base branch by path; only `.gitmodules` and each `.gitattributes`
    count. Submodules and LFS files that the repository does not have are never proposed.
    """
    steps = [step for job in jobs for step in job.steps if step.action.startswith(ACTION)]
    has_submodules = "[submodule " in files.get(GITMODULES, "")
    has_lfs = any(
        LFS_FILTER in text for path, text in files.items() if path.rpartition("/")[2] == ATTRIBUTES
    )
    is_deep = any(step.inputs.get("submodules", "").lower() == RECURSIVE for step in steps)
    return CheckoutSettings(
        submodules=has_submodules and (RECURSIVE if is_deep else True), lfs=has_lfs
    )


def checkout_lines(settings: CheckoutSettings) -> list[str]:
    """Return the lines for `.github/mulligan.yml`; none for the defaults."""
    if settings == CheckoutSettings():
        return []
    lines = ["# Files that are not in the repository's own commits.", "checkout:"]
    if settings.submodules:
        value = RECURSIVE if settings.submodules == RECURSIVE else "true"
        lines.append(f"  submodules: {value}")
    if settings.lfs:
        lines.append("  lfs: true")
    return lines
