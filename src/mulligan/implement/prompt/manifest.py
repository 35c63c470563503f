"""The manifest: the hashed inputs of each prompt, and how they are verified (PROMPT-3). Pure."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field, JsonValue, ValidationError

from mulligan.config.policy import Policy
from mulligan.domain.attachment import Attachment
from mulligan.domain.issue import Issue
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.learning import notes_for
from mulligan.domain.outcome import Record
from mulligan.domain.result import CheckResult, WorkerResultMeta

MANIFEST, INPUTS, CONTEXT, PROMPT = "manifest.json", "inputs.json", "context.md", "prompt.md"

Stored = Callable[[int, str], bytes | None]
"""Returns a file of the attempt with a number over all epochs; None if it was deleted."""


class Manifest(Record):
    """The inputs of an attempt's prompt as SHA-256 in hex; `delivered_hash` is of its bytes.

    `context_window_hash` is of the prompt's sections as canonical JSON, and `rendered_prompt_hash`
    of the prompt that was written from them; both are null in the records of older versions.
    `sandbox` is the confinement in force. `hidden` counts the hidden text removed from the issue,
    and `cut` the omissions in the retry context, both by kind. `fix_round` is 0 for the attempt
    itself; a fix round names that manifest as the last of the earlier ones. `attachments` are in
    the attempt's own only.
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
    context_window_hash: str | None = None
    rendered_prompt_hash: str | None = None
    attachments: tuple[Attachment, ...] = ()

    def canonical(self) -> bytes:
        """Return it as canonical JSON: the same bytes on any machine."""
        return canonical(self)

    def digest(self) -> str:
        """Return the hash that identifies the manifest."""
        return hash_of(self)


# Hashes.


def canonical(value: str | Record | Mapping[str, JsonValue]) -> bytes:
    """Return a value as JSON with sorted keys and without spaces, in UTF-8."""
    plain = value.model_dump(mode="json") if isinstance(value, Record) else value
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="surrogatepass")


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def hash_of(value: str | Record | Mapping[str, JsonValue]) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return sha256(canonical(value))


# The inputs of a prompt.


def inputs_of(case: IssueContext, policy: Policy, start_sha: str) -> dict[str, JsonValue]:
    """Return the inputs of an attempt's prompt."""
    return {
        "issue": _snapshot(case.issue),
        "guidance": case.status.request.guidance,
        "policy": policy.model_dump(mode="json"),
        "prior_attempts": [meta.model_dump(mode="json") for meta in case.history],
        "learned": [*notes_for(case.history, case.learnings or ())],
        "start_sha": start_sha,
    }


def inputs_of_round(
    manifest_hash: str, position: tuple[int, int], failed: Sequence[CheckResult]
) -> dict[str, JsonValue]:
    """Return the inputs of a fix round: the attempt's manifest, and the failing checks."""
    return {
        "manifest": manifest_hash,
        "fix_round": [*position],
        "checks": [check.model_dump(mode="json") for check in failed],
    }


def _snapshot(issue: Issue) -> dict[str, JsonValue]:
    """Return the parts of an issue that the agent reads; not labels and state, which change."""
    return {
        "ref": str(issue.ref),
        "title": issue.title,
        "body": issue.body,
        "comments": [
            {
                "author": comment.author,
                "body": comment.body,
                "created_at": comment.created_at.isoformat(),
            }
            for comment in issue.comments
        ],
    }


def of_round(name: str, fix_round: int) -> str:
    """Return the file of a fix round, after the attempt's: `prompt.md`, `prompt-fix-1.md`."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}-fix-{fix_round}.{ending}" if fix_round else name


# Verification.


@dataclass(frozen=True, slots=True)
class ManifestCheck:
    """The result for one attempt with its fix rounds; empty `broken`: every hash matches."""

    number: int
    broken: tuple[str, ...] = ()


def verify_manifests(
    history: Sequence[WorkerResultMeta], stored: Stored
) -> tuple[ManifestCheck, ...]:
    """Recompute every hash of the attempts that had a prompt, oldest first."""
    earlier, proofs = list[str](), list[ManifestCheck]()
    for meta in history:
        if not meta.manifest_hash:
            continue
        proofs.append(ManifestCheck(meta.number, tuple(_broken(meta, tuple(earlier), stored))))
        earlier.append(meta.manifest_hash)
    return tuple(proofs)


def _broken(meta: WorkerResultMeta, earlier: tuple[str, ...], stored: Stored) -> Iterator[str]:
    def file(name: str) -> bytes | None:
        return stored(meta.number, name)

    recorded = meta.manifest_hash or ""
    yield from _broken_run(recorded, 0, earlier, file)
    rounds = [recorded]
    for fix in meta.fix_rounds:
        # Earlier versions stored the prompt of a fix round, but no manifest.
        if fix.manifest_hash:
            yield from _broken_run(fix.manifest_hash, fix.number, tuple(rounds), file)
            rounds.append(fix.manifest_hash)


def _broken_run(
    recorded: str, fix_round: int, earlier: tuple[str, ...], file: Callable[[str], bytes | None]
) -> Iterator[str]:
    """Yield the errors in the record of one run of the agent."""
    name = of_round(MANIFEST, fix_round)
    written = file(name)
    if written is None:
        yield f"{name} is gone."
        return
    if sha256(written) != recorded:
        yield f"{name} is not the one that the ledger names."
    try:
        manifest = Manifest.model_validate_json(written)
    except ValidationError:
        yield f"{name} cannot be read."
        return
    if manifest.prior_manifest_hashes != earlier:
        yield f"{name} names other earlier attempts than the ledger."
    yield from _broken_files(manifest, fix_round, file)


def _broken_files(
    manifest: Manifest, fix_round: int, file: Callable[[str], bytes | None]
) -> Iterator[str]:
    wanted = {
        INPUTS: manifest.inputs_hash,
        CONTEXT: manifest.context_hash,
        PROMPT: manifest.delivered_hash,
    }
    for kind, expected in wanted.items():
        name = of_round(kind, fix_round)
        if expected and (why := _wrong(file(name), expected)):
            yield f"{name} {why}"
    for each in manifest.attachments:
        if each.name and (why := _wrong(file(each.name), each.sha256)):
            yield f"{each.name} {why}"


def _wrong(content: bytes | None, expected: str) -> str:
    if content is None:
        return "is gone."
    return "" if sha256(content) == expected else "was changed: its hash is not the recorded one."
