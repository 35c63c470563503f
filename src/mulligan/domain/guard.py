"""A rule that a change breaks whatever the checks say (SPEC A9), as it is recorded. Pure."""

from enum import StrEnum

from pydantic import JsonValue, model_validator

from mulligan.domain.record import Record


class GuardKind(StrEnum):
    """Which rule was broken."""

    SCOPE = "scope"
    """`scope.allow` and `scope.deny`."""
    PROTECTED = "protected"
    """`scope.protect`: files that steer CI, agents, reviews, git or Mulligan itself."""
    SIZE = "size"
    """How much may change at all."""
    LINK = "link"
    """A symbolic link that may lead out of the repository."""
    SUBMODULE = "submodule"
    DELETED_TEST = "deleted_test"
    SKIPPED_TEST = "skipped_test"
    SECRET = "secret"  # noqa: S105 - a kind, not a password


class GuardViolation(Record):
    """One broken rule; `message` is one sentence that names what broke it, and what to do.

    `path` is None where the rule is about the change as a whole.
    """

    kind: GuardKind = GuardKind.SCOPE
    path: str | None = None
    message: str

    @model_validator(mode="before")
    @classmethod
    def _read_a_sentence(cls, value: JsonValue) -> JsonValue:
        # The first versions stored the sentence alone.
        return {"message": value} if isinstance(value, str) else value
