"""What a change must not do, whatever the checks say (SPEC A9). Pure."""

from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.guard import GuardViolation
from mulligan.text.redact import Redactor
from mulligan.verification.guards import files, lost_tests, paths, secrets
from mulligan.verification.guards.patch import patches_of

NOTHING_KNOWN = Redactor()


def violations(
    change: Change, scope: Scope, redactor: Redactor = NOTHING_KNOWN
) -> tuple[GuardViolation, ...]:
    """List every rule that the change breaks; `redactor` knows Mulligan's own secrets.

    MisconfiguredError where a pattern of the scope is none.
    """
    patches = tuple(patches_of(change.diff))
    return (
        *paths.violations(change, patches, scope),
        *files.violations(change, patches, scope),
        *lost_tests.violations(change, patches, scope),
        *secrets.violations(patches, scope, redactor),
    )
