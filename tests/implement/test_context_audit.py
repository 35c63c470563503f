"""What is stored of every attempt proves what it was told, and a change of it shows."""

import pytest

from mulligan.domain.result import FixRound, WorkerResultMeta
from mulligan.implement.prompt.manifest import (
    CONTEXT,
    INPUTS,
    MANIFEST,
    PROMPT,
    Manifest,
    ManifestCheck,
    of_round,
    sha256,
    verify_manifests,
)
from world.attempts import red

pytestmark = pytest.mark.pure

Files = dict[tuple[int, str], bytes]


def told(number: int, earlier: tuple[str, ...], files: Files) -> WorkerResultMeta:
    """Store what an attempt was told; give its record."""
    manifest = Manifest(
        inputs_hash=sha256(b"inputs"),
        context_hash=sha256(b"context") if earlier else None,
        delivered_hash=sha256(b"prompt"),
        prior_manifest_hashes=earlier,
        agent="command",
    )
    files |= {
        (number, MANIFEST): manifest.canonical(),
        (number, INPUTS): b"inputs",
        (number, PROMPT): b"prompt",
        **({(number, CONTEXT): b"context"} if earlier else {}),
    }
    return red(number).model_copy(update={"manifest_hash": manifest.digest()})


@pytest.fixture
def files() -> Files:
    return {}


@pytest.fixture
def history(files: Files) -> list[WorkerResultMeta]:
    """Two attempts that were told something, and between them one that died before."""
    first = told(1, (), files)
    return [first, red(2), told(3, (first.manifest_hash or "",), files)]


def prove(history: list[WorkerResultMeta], files: Files) -> tuple[ManifestCheck, ...]:
    return verify_manifests(history, lambda number, name: files.get((number, name)))


def test_what_was_told_holds(history: list[WorkerResultMeta], files: Files) -> None:
    assert prove(history, files) == (ManifestCheck(1), ManifestCheck(3))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (PROMPT, b"another prompt", "prompt.md was changed: its hash is not the recorded one."),
        (CONTEXT, b"", "context.md was changed: its hash is not the recorded one."),
        (INPUTS, None, "inputs.json is gone."),
        (MANIFEST, None, "manifest.json is gone."),
        (MANIFEST, b"{", "manifest.json cannot be read."),
    ],
)
def test_what_was_changed_shows(
    history: list[WorkerResultMeta], files: Files, name: str, content: bytes | None, said: str
) -> None:
    if content is None:
        del files[3, name]
    else:
        files[3, name] = content
    first, third = prove(history, files)
    assert first == ManifestCheck(1)
    assert third.broken[-1] == said


def test_a_manifest_that_was_made_anew_is_not_the_recorded_one(
    history: list[WorkerResultMeta], files: Files
) -> None:
    told(3, ("0" * 64,), files)
    _, third = prove(history, files)
    assert third.broken == (
        "manifest.json is not the one that the ledger names.",
        "manifest.json names other earlier attempts than the ledger.",
    )


def mended(meta: WorkerResultMeta, rounds: int, files: Files) -> WorkerResultMeta:
    """Store what so many fix rounds of an attempt were told; one more is of an earlier version."""
    earlier, fixes = [meta.manifest_hash or ""], [FixRound(number=rounds + 1)]
    for number in range(1, rounds + 1):
        manifest = Manifest(
            inputs_hash=sha256(b"checks"),
            context_hash=sha256(b"failing"),
            delivered_hash=sha256(b"mend it"),
            prior_manifest_hashes=tuple(earlier),
            agent="command",
            fix_round=number,
        )
        contents = {INPUTS: b"checks", CONTEXT: b"failing", PROMPT: b"mend it"}
        contents[MANIFEST] = manifest.canonical()
        files |= {(meta.number, of_round(name, number)): said for name, said in contents.items()}
        fixes.append(FixRound(number=number, manifest_hash=manifest.digest()))
        earlier.append(manifest.digest())
    return meta.model_copy(update={"fix_rounds": tuple(fixes)})


def test_what_fix_rounds_were_told_holds_too(files: Files) -> None:
    history = [mended(told(1, (), files), 2, files)]
    assert prove(history, files) == (ManifestCheck(1),)
    files[1, "prompt-fix-2.md"] = b"something else"
    (proof,) = prove(history, files)
    assert proof.broken == ("prompt-fix-2.md was changed: its hash is not the recorded one.",)


def test_a_fix_round_that_was_taken_out_shows_in_the_next(files: Files) -> None:
    meta = mended(told(1, (), files), 2, files)
    kept = tuple(fix for fix in meta.fix_rounds if fix.number != 1)
    (proof,) = prove([meta.model_copy(update={"fix_rounds": kept})], files)
    assert proof.broken == ("manifest-fix-2.json names other earlier attempts than the ledger.",)
