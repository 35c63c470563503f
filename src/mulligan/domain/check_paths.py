"""Whether a change concerns a check that has `paths` (CHECK-8). Pure."""

from collections.abc import Collection, Sequence

from mulligan.domain.globs import globs
from mulligan.domain.set_up import is_manifest, named_files, select_inputs
from mulligan.domain.verification import DECIDING


def concerns_all(
    changed: Collection[str], setup_commands: Sequence[str], setup_inputs: Sequence[str]
) -> bool:
    """Return whether changed paths concern every check, whatever its own paths.

    These are the inputs of the setup commands and, in the root directory, manifests, lock files and
    the configuration of test programs.
    """
    if setup_commands and select_inputs(changed, setup_commands, setup_inputs):
        return True
    in_root = (path for path in changed if "/" not in path)
    return any(is_manifest(path) or DECIDING.search(path) for path in in_root)


def concerns_check(changed: Collection[str], paths: Sequence[str], command: str) -> bool:
    """Return whether changed paths are among a check's `paths`, or are files its command names.

    Without `paths`, every change concerns the check.
    """
    if not paths:
        return True
    return bool(globs(tuple(paths)).select(changed) or named_files(changed, [command]))
