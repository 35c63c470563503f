"""The real outputs of `bench/outputs`, and how much of what has to be named a text names."""

import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mulligan.checks.digest import Digest, digest
from mulligan.domain.result import Finding

CASES = Path(__file__).parents[1] / "bench" / "outputs" / "cases"
MAX_DIGEST_CHARS = 2000
IN_FULL = 5
"""Findings that a digest tells in full (DIGEST-5): of more, any five have to be named."""
ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
SPEAKS = re.compile("error|fail", re.IGNORECASE)

Wanted = Sequence[Sequence[Sequence[str]]]


@dataclass(frozen=True)
class CorpusCase:
    """An output of a failed check, and the facts that a digest must name."""

    name: str
    command: str
    exit_code: int
    wanted: Wanted
    output: bytes
    again: bytes | None
    """What the same failure printed in another directory."""
    report: bytes | None
    total: int
    """How many failures there are; 0 if that is not known."""

    @property
    def is_long(self) -> bool:
        return len(self.output.decode(errors="replace")) > MAX_DIGEST_CHARS

    def digest(self) -> Digest:
        return digest(self.output, command=self.command, exit_code=self.exit_code)


def cases() -> list[CorpusCase]:
    return [_read(file) for file in sorted(CASES.glob("*.json"))]


def _read(file: Path) -> CorpusCase:
    told = json.loads(file.read_text())
    output = _unpacked(file, "out")
    assert output is not None
    return CorpusCase(
        name=file.stem,
        command=told["command"],
        exit_code=told["exit_code"],
        wanted=told["wanted"],
        output=output,
        again=_unpacked(file, "again"),
        report=_unpacked(file, "report"),
        total=told.get("total", 0),
    )


def _unpacked(file: Path, what: str) -> bytes | None:
    packed = file.with_name(f"{file.stem}.{what}.gz")
    return gzip.decompress(packed.read_bytes()) if packed.exists() else None


def recall(case: CorpusCase, text: str) -> float:
    """Give the share of the facts that are named, of the findings that are named best."""
    plain = " ".join(text.split())
    shares = sorted((_share(facts, plain) for facts in case.wanted), reverse=True)
    needed = min(IN_FULL, len(shares))
    return sum(shares[:needed]) / needed


def _share(facts: Sequence[Sequence[str]], plain: str) -> float:
    return sum(_is_named(fact, plain) for fact in facts) / len(facts)


def _is_named(spellings: Sequence[str], plain: str) -> bool:
    return any(" ".join(words.split()) in plain for words in spellings)


def wrong(case: CorpusCase) -> list[Finding] | None:
    """List the findings that hold no fact of a failure; None if the facts are not of tests.

    The facts of a linter name some of its complaints only, so that other findings may be right.
    """
    facts = [" ".join(words.split()) for each in case.wanted for fact in each for words in fact]
    long = [fact for fact in facts if len(fact) > LEAST_FACT]
    found = case.digest().findings
    right = [each for each in found if any(fact in _told(each) for fact in long)]
    if not any(each.test_id for each in right):
        return None
    return [each for each in found if each not in right]


LEAST_FACT = 2
"""The most characters of a fact that says too little to recognise a failure by."""


def _told(found: Finding) -> str:
    place = f"{found.file}:{found.line}"
    return " ".join(f"{place} {found.test_id} {found.message} {found.code} {found.summary}".split())


def missing(case: CorpusCase, text: str) -> list[list[str]]:
    """List the facts that are not named, for a closer look at a case."""
    plain = " ".join(text.split())
    return [
        [fact[0] for fact in facts if not _is_named(fact, plain)] for facts in case.wanted[:IN_FULL]
    ]


def _plain(output: bytes) -> str:
    return ESCAPES.sub("", output.decode(errors="replace"))


def _lines_that_speak(output: bytes) -> str:
    return "\n".join(filter(SPEAKS.search, _plain(output).splitlines()))[:MAX_DIGEST_CHARS]


BASELINES: Mapping[str, Callable[[bytes], str]] = {
    "first 2,000": lambda output: _plain(output)[:MAX_DIGEST_CHARS],
    "last 2,000": lambda output: _plain(output)[-MAX_DIGEST_CHARS:],
    "1,000 + 1,000": lambda output: (
        _plain(output)[: MAX_DIGEST_CHARS // 2] + "\n" + _plain(output)[-MAX_DIGEST_CHARS // 2 :]
    ),
    "last 12,000": lambda output: _plain(output)[-6 * MAX_DIGEST_CHARS :],
    "error|fail": _lines_that_speak,
}
