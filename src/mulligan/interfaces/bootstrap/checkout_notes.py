"""What `check` and `rehearse` say about files that are not in a clone's commit (WORKTREE-5)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue

from mulligan.config.load import load_valid_part
from mulligan.config.policy import POLICY_FILES, CheckoutSettings
from mulligan.git.local_clone import LocalClone
from mulligan.implement.prompt.outcome_text import names_of
from mulligan.interfaces.bootstrap.container import Environment


def checkout_notes(
    clone: Path, environment: Environment, settings: CheckoutSettings
) -> Iterator[str]:
    """Say which further files attempts get, or which key gives these to them."""
    paths = LocalClone(clone, environment).submodules()
    if paths:
        submodules = "submodule" if len(paths) == 1 else "submodules"
        yield _submodules(f"{submodules} {names_of(paths)}", len(paths), settings)
    if b"filter=lfs" in (LocalClone(clone, environment).committed(".gitattributes") or b""):
        yield LFS_ON if settings.lfs else LFS_OFF


LFS_ON = "Attempts get the content of Git LFS files, by `checkout.lfs`."
LFS_OFF = (
    "Git LFS files are pointers in attempts. If a check needs their content, set"
    " `checkout: {lfs: true}` in .github/mulligan.yml."
)


def _submodules(named: str, count: int, settings: CheckoutSettings) -> str:
    if settings.submodules:
        return f"Attempts get the files of the {named}, by `checkout.submodules`."
    return (
        f"The {named} {'is' if count == 1 else 'are'} empty in attempts. If a check needs those"
        " files, set `checkout: {submodules: true}` in .github/mulligan.yml."
    )


def committed_checkout(
    clone: Path, environment: Environment, overrides: Mapping[str, JsonValue]
) -> CheckoutSettings:
    """Read the key from the policy in the commit that is checked out, and from the operator's."""
    files = (LocalClone(clone, environment).committed(name) for name in POLICY_FILES)
    text = next((each for each in files if each is not None), None)
    return load_valid_part(text, overrides, {}).checkout
