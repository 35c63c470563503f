"""The policy of each repository, read from its base branch only, never from an agent's."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from mulligan.config.load import load_policy
from mulligan.config.policy import Policy
from mulligan.errors import ConfigError, MisconfiguredError, UnavailableError
from mulligan.ports import Worktrees

POLICY_FILE = ".github/mulligan.yml"


@dataclass(frozen=True, slots=True)
class BasePolicies:
    """The port `Policies`; `overrides` are the operator's keys, by repository."""

    worktrees: Worktrees
    overrides: Mapping[str, Mapping[str, JsonValue]]

    def current(self, repository: str) -> Policy:
        """Give the policy in force: the base branch's as fetched last.

        Where that file is invalid or cannot be read, or nothing was fetched yet, the operator's
        keys over the defaults, so that somebody can still be told.
        """
        try:
            return self._read(repository, None)
        except (ConfigError, UnavailableError):
            return load_policy(None, self._overrides(repository), POLICY_FILE)

    def at(self, repository: str, sha: str) -> Policy:
        """Read the policy of one commit; MisconfiguredError where the file is invalid."""
        try:
            return self._read(repository, sha)
        except ConfigError as error:
            raise MisconfiguredError(str(error)) from error

    def strict(self, repository: str) -> Policy:
        """Give the policy in force; ConfigError where the base branch's file is invalid."""
        return self._read(repository, None)

    def _read(self, repository: str, sha: str | None) -> Policy:
        text = self.worktrees.base_file(repository, POLICY_FILE, sha)
        return load_policy(text, self._overrides(repository), f"{POLICY_FILE} of {repository}")

    def _overrides(self, repository: str) -> Mapping[str, JsonValue]:
        return self.overrides.get(repository, {})
