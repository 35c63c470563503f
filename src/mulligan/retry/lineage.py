"""Prove from what is stored what every attempt was told, and after which others (SPEC 8). Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from mulligan.domain.result import WorkerResultMeta
from mulligan.retry.manifest import Manifest, sha256

MANIFEST, INPUTS, CONTEXT, PROMPT = "manifest.json", "inputs.json", "context.md", "prompt.md"

Stored = Callable[[int, str], bytes | None]
"""Gives a file of the attempt with a number over all epochs; None where it is gone."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found of one attempt; `broken` is empty where every hash holds."""

    number: int
    broken: tuple[str, ...] = ()


def prove_lineage(history: Sequence[WorkerResultMeta], stored: Stored) -> tuple[Proof, ...]:
    """Recompute every hash of the attempts that got as far as a prompt, oldest first."""
    earlier, proofs = list[str](), list[Proof]()
    for meta in history:
        if not meta.manifest_hash:
            continue
        broken = tuple(_broken(meta.number, meta.manifest_hash, tuple(earlier), stored))
        proofs.append(Proof(meta.number, broken))
        earlier.append(meta.manifest_hash)
    return tuple(proofs)


def _broken(number: int, recorded: str, earlier: tuple[str, ...], stored: Stored) -> Iterator[str]:
    written = stored(number, MANIFEST)
    if written is None:
        yield f"{MANIFEST} is gone."
        return
    if sha256(written) != recorded:
        yield f"{MANIFEST} is not the one that the ledger names."
    try:
        manifest = Manifest.model_validate_json(written)
    except ValidationError:
        yield f"{MANIFEST} cannot be read."
        return
    if manifest.prior_manifest_hashes != earlier:
        yield "It names other earlier attempts than the ledger."
    wanted = {
        INPUTS: manifest.inputs_hash,
        CONTEXT: manifest.context_hash,
        PROMPT: manifest.delivered_hash,
    }
    for name, expected in wanted.items():
        if expected and (why := _wrong(stored(number, name), expected)):
            yield f"{name} {why}"


def _wrong(content: bytes | None, expected: str) -> str:
    if content is None:
        return "is gone."
    return "" if sha256(content) == expected else "was changed: its hash is not the recorded one."
