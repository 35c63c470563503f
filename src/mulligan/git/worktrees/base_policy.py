"""Read each repository's policy, from its base branch only, never from an agent's branch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from mulligan.config.load import load_policy, load_valid_part, policy_file
from mulligan.config.policy import POLICY_FILE, POLICY_FILES, Policy
from mulligan.domain.errors import ConfigError, MisconfiguredError, UnavailableError
from mulligan.implement.ports import Worktrees


@dataclass(frozen=True, slots=True)
class BasePolicies:
    """Implements the port `Policies`; `overrides` are the operator's keys, by repository.

    `defaults` are this host's values for keys that nobody has set.
    """

    worktrees: Worktrees
    overrides: Mapping[str, Mapping[str, JsonValue]]
    defaults: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def in_force(self, repository: str) -> Policy:
        """Use the defaults if the file cannot be read, or nothing was fetched.

        The valid keys of an invalid file count, so that Mulligan can still report the error. The
        operator's keys override both.
        """
        overrides = self._overrides(repository)
        try:
            text = next(iter(self._files(repository, None).values()), None)
            return load_valid_part(text, overrides, self.defaults)
        except UnavailableError:
            return load_policy(None, overrides, POLICY_FILE, defaults=self.defaults)

    def at(self, repository: str, sha: str) -> Policy:
        try:
            return self._read(repository, sha)
        except ConfigError as error:
            raise MisconfiguredError(_on_one_line(error)) from error

    def fault(self, repository: str) -> str:
        try:
            self._read(repository, None)
        except ConfigError as error:
            return _on_one_line(error)
        except UnavailableError:
            return ""
        return ""

    def strict(self, repository: str) -> Policy:
        """Return the policy in force; ConfigError if the base branch's file is invalid."""
        return self._read(repository, None)

    def _read(self, repository: str, sha: str | None) -> Policy:
        files = self._files(repository, sha)
        name = policy_file(files, repository)
        where = f"{name} of {repository}"
        overrides = self._overrides(repository)
        return load_policy(files.get(name), overrides, where, defaults=self.defaults)

    def _files(self, repository: str, sha: str | None) -> Mapping[str, bytes]:
        files = {name: self.worktrees.base_file(repository, name, sha) for name in POLICY_FILES}
        return {name: text for name, text in files.items() if text is not None}

    def _overrides(self, repository: str) -> Mapping[str, JsonValue]:
        return self.overrides.get(repository, {})


def _on_one_line(error: ConfigError) -> str:
    """Join the errors of a file to one line, for a record or a table."""
    return " ".join(str(error).split())
