"""The frozen, hashed list of everything that an attempt was given (SPEC 8). Pure."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from pydantic import Field, JsonValue

from mulligan.config.policy import Policy
from mulligan.domain.case import Case
from mulligan.domain.issue import Issue
from mulligan.domain.record import Record
from mulligan.domain.result import CheckResult


class Manifest(Record):
    """What went into an attempt's prompt, as SHA-256 in hex; `delivered_hash` is of its bytes.

    `sandbox` names the confinement in force. `hidden` counts what was taken out of the issue's
    texts since nobody sees it, and `cut` what was left out of the retry context, both by kind.
    `fix_round` is 0 for the attempt itself; a fix round names that manifest as the last of the
    earlier ones.
    """

    inputs_hash: str
    context_hash: str | None
    delivered_hash: str
    prior_manifest_hashes: tuple[str, ...]
    agent: str
    agent_version: str | None = None
    sandbox: str = ""
    hidden: dict[str, int] = Field(default_factory=dict)
    cut: dict[str, int] = Field(default_factory=dict)
    fix_round: int = 0

    def canonical(self) -> bytes:
        """Write it as canonical JSON: the same bytes on any machine."""
        return canonical(self)

    def digest(self) -> str:
        """Give the hash that names the manifest."""
        return hash_of(self)


def canonical(value: str | Record | Mapping[str, JsonValue]) -> bytes:
    """Write a value as JSON with sorted keys and without spaces, in UTF-8."""
    plain = value.model_dump(mode="json") if isinstance(value, Record) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="surrogatepass")


def sha256(content: bytes) -> str:
    """Give the SHA-256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def hash_of(value: str | Record | Mapping[str, JsonValue]) -> str:
    """Give the SHA-256 of a value's canonical JSON, in hex."""
    return sha256(canonical(value))


def inputs_of(case: Case, policy: Policy, start_sha: str) -> dict[str, JsonValue]:
    """List what the prompt of an attempt is made from."""
    return {
        "issue": _snapshot(case.issue),
        "guidance": case.status.guidance,
        "policy": policy.model_dump(mode="json"),
        "prior_attempts": [meta.model_dump(mode="json") for meta in case.history],
        "start_sha": start_sha,
    }


def inputs_of_round(
    manifest_hash: str, position: tuple[int, int], failed: Sequence[CheckResult]
) -> dict[str, JsonValue]:
    """List what a fix round is made from: the attempt's manifest, and the checks that fail."""
    return {
        "manifest": manifest_hash,
        "fix_round": [*position],
        "checks": [check.model_dump(mode="json") for check in failed],
    }


def _snapshot(issue: Issue) -> dict[str, JsonValue]:
    """Take of an issue what the agent gets to see; labels and state move on their own."""
    return {
        "ref": str(issue.ref),
        "title": issue.title,
        "body": issue.body,
        "comments": [
            {"author": said.author, "body": said.body, "created_at": said.created_at.isoformat()}
            for said in issue.comments
        ],
    }
