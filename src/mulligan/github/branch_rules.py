"""Read the rules that GitHub applies to a branch, for `doctor` (RULES-1)."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from urllib.parse import quote

from pydantic import Field, TypeAdapter

from mulligan.domain.branch_rules import BranchRule, ClassicProtection
from mulligan.domain.errors import WorldError
from mulligan.github.client import Client
from mulligan.github.shapes import Shape


class Parameters(Shape):
    """The parameters of the rules that Mulligan reads."""

    operator: str = ""
    pattern: str = ""
    negate: bool | None = False
    restricted_file_paths: tuple[str, ...] = ()
    restricted_file_extensions: tuple[str, ...] = ()
    max_file_path_length: int = 0
    max_file_size: int = 0


class RuleShape(Shape):
    """A rule of a branch (https://docs.github.com/rest/repos/rules#get-rules-for-a-branch)."""

    type: str
    parameters: Parameters | None = None
    ruleset_source: str = ""
    ruleset_id: int | None = None


class RulesetShape(Shape):
    """A ruleset; GitHub reports only to its caller whether that account may bypass it."""

    current_user_can_bypass: str | None = None


class SwitchShape(Shape):
    enabled: bool = False


class ProtectionShape(Shape):
    """The classic protection of a branch, which only administrators can read."""

    required_signatures: SwitchShape = Field(default_factory=SwitchShape)
    required_linear_history: SwitchShape = Field(default_factory=SwitchShape)


class BranchShape(Shape):
    protected: bool = False


class SigningKeyShape(Shape):
    key: str


RULES = TypeAdapter(tuple[RuleShape, ...])
RULESET = TypeAdapter(RulesetShape)
PROTECTION = TypeAdapter(ProtectionShape)
BRANCH = TypeAdapter(BranchShape)
SIGNING_KEYS = TypeAdapter(tuple[SigningKeyShape, ...])

MAY_BYPASS = {"always", "exempt"}


class RuleReader:
    """Reads rules and protections; a refusal or a 404 is an error, never "no rules"."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def rules(self, repository: str, branch: str) -> Sequence[BranchRule]:
        """List the active rules of a branch, which need not exist, that bind Mulligan's account."""

        @cache
        def may_bypass(ruleset: int) -> bool:
            # Without the answer, the rule counts.
            with suppress(WorldError):
                path = f"/repos/{repository}/rulesets/{ruleset}"
                return self._client.read(RULESET, path).current_user_can_bypass in MAY_BYPASS
            return False

        path = f"/repos/{repository}/rules/branches/{quote(branch, safe='')}"
        found = self._client.read_all(RULES, path)
        return [
            _rule(each)
            for each in found
            if each.ruleset_id is None or not may_bypass(each.ruleset_id)
        ]

    def protection(self, repository: str, branch: str) -> ClassicProtection | None:
        """Read the classic protection of an existing branch; None if it has none."""
        path = f"/repos/{repository}/branches/{quote(branch, safe='')}"
        if not self._client.read(BRANCH, path).protected:
            return None
        found = self._client.read(PROTECTION, f"{path}/protection")
        return ClassicProtection(
            signatures=found.required_signatures.enabled,
            linear_history=found.required_linear_history.enabled,
        )

    def signing_keys(self, login: str) -> Sequence[str]:
        """List the public signing keys of an account, each as "TYPE BASE64"."""
        path = f"/users/{quote(login, safe='')}/ssh_signing_keys"
        found = self._client.read_all(SIGNING_KEYS, path)
        return [" ".join(each.key.split()[:2]) for each in found]


def _rule(found: RuleShape) -> BranchRule:
    about = found.parameters or Parameters()
    return BranchRule(
        kind=found.type,
        operator=about.operator,
        pattern=about.pattern,
        negated=bool(about.negate),
        paths=about.restricted_file_paths or about.restricted_file_extensions,
        limit=about.max_file_path_length or about.max_file_size,
        source=found.ruleset_source,
    )
