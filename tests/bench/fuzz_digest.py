"""Throw a million shredded outputs and reports at the digest.

    PYTHONPATH=tests python tests/bench/fuzz_digest.py [COUNT SEED]

What comes out is short, valid UTF-8 and free of control characters, whatever goes in; and nothing
is raised within, where the digest would only fall back on a plain window.
"""

import random
import sys
import time
from collections.abc import Sequence

from mulligan.checks import digest as package
from mulligan.checks.digest import Digest
from mulligan.checks.digest.clean import CleanLog
from world.digest_corpus import cases

SHREDS = 4000
LONGEST = 40
ODD = (
    *("\x1b[31m", "\x1b[2K\r", "\x1b[1A", "\x1b]8;;x\x07", "\b", "\0", "\r", "\x85", "\u2028"),
    *("\u202e", "\ud800", "💥", "{", "}", "[", "]", '"', "\\", '{"message": ', '"line": 1e99'),
    *("<testsuites>", "<testcase name='x'><failure/>", "</testsuites>", "<?xml version='1.0'?>"),
    *('{"Action":"fail","Test":"T"}', "9" * 30, "(?P<file>"),
    '[{"file":"a","line":-1,"message":"m","severity":"error"}]',
)  # fmt: skip
PATTERNS = ((), ("(",), (r"(?P<file>\w+):(?P<line>\d+)", "(?P<message>.+)"))
PRINT_EVERY = 100_000


def shreds(chance: random.Random) -> list[str]:
    """Give lines of outputs of all tools, and oddities."""
    lines = [
        line
        for case in cases()
        for part in (case.output, case.report or b"")
        for line in part.decode(errors="replace").split("\n")
    ]
    return [*chance.sample(lines, SHREDS), *ODD * 10]


def shredded(chance: random.Random, parts: Sequence[str]) -> str | bytes:
    """Make an output: some lines, some of them torn, glued in several ways."""
    chosen = chance.choices(parts, k=int(chance.expovariate(0.25)) % LONGEST)
    torn = [
        line[: chance.randrange(len(line) + 1)] if chance.random() < 0.2 else line
        for line in chosen
    ]
    text = chance.choice(("\n", "\n", "\n", "\r\n", "", "\r")).join(torn)
    match chance.randrange(8):
        case 0:
            return text.encode("utf-16", errors="replace")
        case 1:
            data = bytearray(text.encode(errors="replace"))
            for _ in range(min(8, len(data))):
                data[chance.randrange(len(data))] = chance.randrange(256)
            return bytes(data)
        case _:
            return text if chance.random() < 0.5 else text.encode(errors="replace")


def is_sound(found: Digest, limit: int) -> bool:
    """Tell whether a digest keeps its promises."""
    found.text.encode()
    plain = not any(ord(letter) < 32 and letter not in "\n\t" for letter in found.text)
    brief = all(len(told.summary) <= 100 and "\n" not in told.summary for told in found.findings)
    return len(found.text) <= limit and plain and brief and bool(found.fingerprint) != found.passed


def fell_back(log: CleanLog, exit_code: int | None, max_chars: int) -> Digest:
    message = "something was raised within the digest"
    raise AssertionError(message)


def main(count: int, seed: int) -> None:
    # What the fallback would hide is what is looked for.
    setattr(package, "_fallback_digest", fell_back)  # noqa: B010
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    parts, begun, bad = shreds(chance), time.perf_counter(), 0
    for number in range(1, count + 1):
        output, limit = shredded(chance, parts), chance.choice((0, 1, 50, 500, 2000))
        exit_code = chance.choice((None, 0, 1, -9, 139, 255))
        extra = shredded(chance, parts) if chance.random() < 0.1 else b""
        report = extra.encode(errors="replace") if isinstance(extra, str) else extra
        patterns = chance.choice(PATTERNS)
        try:
            found = package.digest(
                output, exit_code=exit_code, max_chars=limit, report=report, patterns=patterns
            )
            sound = is_sound(found, limit)
        except (AssertionError, UnicodeError) as problem:
            sound = False
            print(repr(problem.__context__))  # noqa: T201
        if not sound:
            bad += 1
            print(number, exit_code, limit, repr(output)[:2000], repr(report)[:500])  # noqa: T201
        if number % PRINT_EVERY == 0:
            speed = number / (time.perf_counter() - begun)
            print(f"{number} inputs, {bad} bad, {speed:.0f} a second", flush=True)  # noqa: T201
    sys.exit(bool(bad))


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*numbers) if len(numbers) == 2 else main(1_000_000, 1)
