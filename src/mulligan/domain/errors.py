"""Exceptions, by who must act.

The result of an attempt is an outcome, not an exception. Each message is one sentence for people,
and says what to do.
"""

from pathlib import Path


class MulliganError(Exception):
    """A failure that Mulligan cannot fix by itself."""


class ConfigError(MulliganError):
    """The configuration is missing or invalid: the operator must fix it."""


class OutdatedError(ConfigError):
    """A newer Mulligan has migrated the ledger: this one must be upgraded."""


class UsageError(MulliganError):
    """The command was called with wrong arguments: the caller must change them."""


class WorldError(MulliganError):
    """Something outside Mulligan failed; the attempt does not count."""


class UnavailableError(WorldError):
    """GitHub, git, the disk or a setup command failed; retry later."""


class DiskFullError(UnavailableError):
    """The disk of a `place` runs full while a command runs: of bytes, or of files."""

    def __init__(self, message: str, place: Path, *, lacks_files: bool = False) -> None:
        super().__init__(message)
        self.place = place
        self.lacks_files = lacks_files


class CertificateError(UnavailableError):
    """A server's certificate is not accepted: a person must act, and it is tried again later.

    It says nothing about the issue, so it asks nobody on the issue.
    """


class DeniedError(WorldError):
    """A credential, a permission or a server rule refuses it; a person must act."""


class RefusedError(DeniedError):
    """A server answered 401 or 403: a person must act, unless it passes within minutes."""


class ForbiddenError(RefusedError):
    """A server answered 403: a permission is missing."""


class UnconfirmedError(UnavailableError):
    """GitHub does not find `what`, which is no proof that it is gone: ask again (GITHUB-3)."""

    def __init__(self, message: str, what: str) -> None:
        super().__init__(message)
        self.what = what


class GoneError(DeniedError):
    """The issue was deleted or transferred, or its repository renamed: the work on it ends."""


class MisconfiguredError(WorldError):
    """A program or a setting on this machine is missing; the operator must act."""


class NotStartedError(MisconfiguredError):
    """The system cannot execute a program, although it may be there."""


class InvariantError(MulliganError):
    """A rule that always holds was broken: a bug in Mulligan."""


class WithdrawnError(MulliganError):
    """A person withdrew the request; the work on it ends."""


class ReviewsWithdrawnError(WithdrawnError):
    """No review requests the changes any more; the pull request stays as it is."""


class LeaseLostError(MulliganError):
    """Another worker took over the issue; this one must stop without further effects."""


class StandsBackError(LeaseLostError):
    """Another installation owns the repository's ready label; this one does nothing there."""


class ShutdownError(MulliganError):
    """Mulligan is shutting down; the running process has been stopped."""
