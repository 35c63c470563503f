"""Propose `checkout` of the policy, from the files of a repository and of its CI. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import yaml

from mulligan.config.policy import RECURSIVE, CheckoutSettings

GITMODULES = ".gitmodules"
ATTRIBUTES = ".gitattributes"
LFS_FILTER = "filter=lfs"
ACTION = "actions/checkout@"


def propose_checkout(files: Mapping[str, str], workflows: Iterable[str]) -> CheckoutSettings:
    """Propose the key.

    `files` are texts of the base branch by path; only `.gitmodules` and each `.gitattributes`
    count. `workflows` are the texts of the CI's workflows; invalid ones count for nothing.
    Submodules and LFS files that the repository does not have are never proposed.
    """
    steps = [step for text in workflows for step in _checkout_steps(text)]
    has_submodules = "[submodule " in files.get(GITMODULES, "")
    has_lfs = any(
        LFS_FILTER in text for path, text in files.items() if path.rpartition("/")[2] == ATTRIBUTES
    )
    wanted = {_text(step.get("submodules")) for step in steps}
    is_deep = RECURSIVE in wanted
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


def _checkout_steps(text: str) -> Iterator[Mapping[str, object]]:
    """Yield the inputs of each step with actions/checkout in a workflow."""
    try:
        content: object = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - texts, lists and mappings
    except (yaml.YAMLError, RecursionError, ValueError):
        return
    for job in _mapping(_mapping(content).get("jobs")).values():
        steps = _mapping(job).get("steps")
        for step in cast("list[object]", steps) if isinstance(steps, list) else []:
            found = _mapping(step)
            if _text(found.get("uses")).startswith(ACTION):
                yield _mapping(found.get("with"))


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value.strip().lower() if isinstance(value, str) else ""
