"""Rules that refuse a change, whatever the results of its checks (GUARD-1). Pure."""

from mulligan.checks.guards.lost_tests import lost_test_violations
from mulligan.checks.guards.scope import file_violations, path_violations
from mulligan.checks.guards.secrets import secret_violations
from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.result import GuardViolation
from mulligan.text.diff import patches_of
from mulligan.text.redact import Redactor

NO_SECRETS_KNOWN = Redactor()


def violations(
    change: Change, scope: Scope, redactor: Redactor = NO_SECRETS_KNOWN
) -> tuple[GuardViolation, ...]:
    """List every rule that the change breaks; `redactor` knows Mulligan's own secrets.

    Files over the size limit are refused, and not read.
    """
    patches = tuple(patches_of(change.diff))
    large = {file.path for file in change.files if (file.size or 0) > scope.max_file_bytes}
    read = tuple(patch for patch in patches if patch.path not in large)
    return (
        *path_violations(change, patches, scope),
        *file_violations(change, patches, scope),
        *lost_test_violations(change, read, scope),
        *secret_violations(read, scope, redactor),
    )
