"""Exceptions, told apart by who must act.

What an attempt can come to is an outcome, not an exception. The message of each is one sentence
for a person, and says what to do.
"""


class MulliganError(Exception):
    """Something the bot cannot put right by itself."""


class ConfigError(MulliganError):
    """The configuration is missing or wrong: the operator must mend it."""


class UsageError(MulliganError):
    """The command was called in a way that means nothing: the caller must change it."""


class WorldError(MulliganError):
    """Something outside failed; an attempt that meets it does not count."""


class UnavailableError(WorldError):
    """GitHub, git, the disk or the set-up failed for now; worth another try later."""


class DeniedError(WorldError):
    """A credential, a right or a rule of the server forbids it; a person must act."""


class GoneError(DeniedError):
    """The issue is not there, or not any more, or its repository was renamed: it is let go."""


class MisconfiguredError(WorldError):
    """A program or a setting on this machine is missing; the operator must act."""


class InvariantError(MulliganError):
    """A rule that always holds was broken: a bug in Mulligan."""


class WithdrawnError(MulliganError):
    """A person withdrew the request; the work on it ends."""


class LeaseLostError(MulliganError):
    """Another worker took the issue over; this one must have no effect any more."""


class ShutdownError(MulliganError):
    """Mulligan was told to stop; what was running has been stopped."""
