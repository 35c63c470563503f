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
    """What was found of one attempt, fix rounds and all; empty `broken`: every hash holds."""

    number: int
    broken: tuple[str, ...] = ()


def of_round(name: str, fix_round: int) -> str:
    """Name the file of a fix round after the attempt's: `prompt.md`, `prompt-fix-1.md`."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}-fix-{fix_round}.{ending}" if fix_round else name


def prove_lineage(history: Sequence[WorkerResultMeta], stored: Stored) -> tuple[Proof, ...]:
    """Recompute every hash of the attempts that got as far as a prompt, oldest first."""
    earlier, proofs = list[str](), list[Proof]()
    for meta in history:
        if not meta.manifest_hash:
            continue
        proofs.append(Proof(meta.number, tuple(_broken(meta, tuple(earlier), stored))))
        earlier.append(meta.manifest_hash)
    return tuple(proofs)


def _broken(meta: WorkerResultMeta, earlier: tuple[str, ...], stored: Stored) -> Iterator[str]:
    def file(name: str) -> bytes | None:
        return stored(meta.number, name)

    recorded = meta.manifest_hash or ""
    yield from _broken_run(recorded, 0, earlier, file)
    rounds = [recorded]
    for fix in meta.fix_rounds:
        # Earlier versions kept the prompt of a fix round, but no manifest of it.
        if fix.manifest_hash:
            yield from _broken_run(fix.manifest_hash, fix.number, tuple(rounds), file)
            rounds.append(fix.manifest_hash)


def _broken_run(
    recorded: str, fix_round: int, earlier: tuple[str, ...], file: Callable[[str], bytes | None]
) -> Iterator[str]:
    """Say what is wrong with the record of one run of the agent."""
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


def _wrong(content: bytes | None, expected: str) -> str:
    if content is None:
        return "is gone."
    return "" if sha256(content) == expected else "was changed: its hash is not the recorded one."
