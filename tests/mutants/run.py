"""Plant faults in a copy of the repository, and see which the tests notice: `make mutants`.

Two kinds, both in mutants.toml: mutants that mutmut makes of pure modules, and faults by hand in
what touches the world. Each of the latter is planted alone, and one of its own tests has to fail.

    python -m mutants.run                       all of them
    python -m mutants.run hand [WORD...]        those by hand, of whose line a word is part
    python -m mutants.run hand 2/8              every eighth of those by hand, from the second on
    python -m mutants.run pure [MODULE...]      those of mutmut

The exit code is 1 if a fault was not noticed, or stands in code that is no more.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from itertools import count
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

ROOT = Path(__file__).parents[2]
COPY = ROOT / ".mutants"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".mutants", ".agents", ".*_cache", "__pycache__")
PYTEST = ("-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider")
SETTINGS = ("--hypothesis-seed=0", "--timeout=240")
LONGEST_SECONDS = 900
"""Of one mutant's tests; one that takes longer was noticed."""


class Mutant(BaseModel):
    """A fault: `old` stands once in `file`, below src/, and `new` takes its place."""

    model_config = ConfigDict(extra="forbid")

    fault: str
    file: str
    old: str
    new: str
    tests: list[str]


class Module(BaseModel):
    """A pure module, below src/mulligan, and the least percentage of mutants that is killed."""

    model_config = ConfigDict(extra="forbid")

    file: str
    least: int


class Pure(BaseModel):
    """What mutmut mutates, and the tests that it runs."""

    model_config = ConfigDict(extra="forbid")

    modules: list[Module]
    tests: list[str]


class Mutants(BaseModel):
    """The whole of mutants.toml."""

    model_config = ConfigDict(extra="forbid")

    pure: Pure
    mutant: list[Mutant]


class Verdict(StrEnum):
    """What became of a mutant; all but the first are reported as failures."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    STALE = "STALE"
    """Its text is not in the file, or more than once: write the mutant anew."""
    BROKEN = "BROKEN"
    """Its tests could not be run, or the one that failed fails without it as well."""


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; give the exit code."""
    known = Mutants.model_validate(
        tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
    )
    kind, words = (arguments[0], arguments[1:]) if arguments else ("", ())
    with copied():
        fine = kind == "pure" or run_hand(by_hand(known.mutant, words))
        return int(not ((kind == "hand" or run_pure(known.pure, words)) and fine))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def by_hand(mutants: Sequence[Mutant], words: Sequence[str]) -> Sequence[Mutant]:
    match words:
        case [word] if found := re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", word):
            return mutants[int(found[1]) - 1 :: int(found[2])]
        case _:
            return [mutant for mutant in mutants if chosen(mutant.fault, words)]


def chosen(line: str, words: Sequence[str]) -> bool:
    return not words or any(word in line for word in words)


@contextmanager
def copied() -> Generator[None]:
    """Make a copy with a .venv of its own, in which the copy's code is installed."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, ignore=LEFT_OUT, symlinks=True)
    shutil.copytree(ROOT / ".venv", COPY / ".venv", symlinks=True, copy_function=os.link)
    for each in (COPY / ".venv").glob("lib/python3*/site-packages/*.pth"):
        text = each.read_text()
        if str(ROOT / "src") in text:
            # The copy is the same file as the original.
            each.unlink()
            each.write_text(text.replace(str(ROOT / "src"), str(COPY / "src")))
    try:
        yield
    finally:
        shutil.rmtree(COPY)


def python(*arguments: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run the copy's Python, in the copy."""
    return subprocess.run(
        [COPY / ".venv" / "bin" / "python", *arguments],
        cwd=COPY,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


# Faults by hand.


def run_hand(mutants: Sequence[Mutant]) -> bool:
    """Plant each fault; tell whether all were noticed."""
    found = Counter[Verdict]()
    for mutant in mutants:
        began = time.monotonic()
        verdict, said = run_mutant(mutant)
        found[verdict] += 1
        seconds = time.monotonic() - began
        say(f"{verdict:8}  {seconds:5.1f} s  {mutant.fault}  {mutant.file}")
        say(f"{'':19}{said}")
    say(f"By hand: {found[Verdict.KILLED]} of {len(mutants)} killed.")
    return found[Verdict.KILLED] == len(mutants)


TIMES = count(1)


def run_mutant(mutant: Mutant) -> tuple[Verdict, str]:
    """Plant one fault, run its tests, and take it out; give the verdict and how it came about."""
    place = COPY / "src" / mutant.file
    text = place.read_text() if place.exists() else ""
    if (there := text.count(mutant.old)) != 1:
        return Verdict.STALE, f"its text is in the file {there} times; write the mutant anew"
    write(place, text.replace(mutant.old, mutant.new))
    try:
        code, failed = run_tests(mutant.tests)
    except subprocess.TimeoutExpired:
        return Verdict.KILLED, "its tests took too long"
    finally:
        write(place, text)
    if code == 0:
        return Verdict.SURVIVED, " ".join(mutant.tests)
    if code != 1 or not failed or run_tests([failed])[0]:
        return Verdict.BROKEN, f"pytest's exit code is {code}, or this fails anyway: {failed}"
    return Verdict.KILLED, failed


def run_tests(tests: Sequence[str]) -> tuple[int, str]:
    """Run tests up to the first that fails; give pytest's exit code, and the name of that test."""
    done = python(*PYTEST, *SETTINGS, *tests, timeout=LONGEST_SECONDS)
    lines = done.stdout.splitlines()
    failed = (line for line in lines if line.startswith(("FAILED", "ERROR", "SUBFAILED")))
    line = next(failed, "").partition(" - ")[0]
    return done.returncode, line[line.find("tests/") :] if "tests/" in line else ""


def write(place: Path, text: str) -> None:
    """Write code, and date it so that Python compiles it anew: it looks at seconds only."""
    place.write_text(text)
    at = time.time() + next(TIMES)
    os.utime(place, (at, at))


# Mutants of mutmut.

EXIT_CODES: TypeAdapter[dict[str, int | None]] = TypeAdapter(dict[str, int | None])
KILLED = {1, 3, 24, -24, 36, 152, 255}
"""Of mutmut: what failed, and what took too long."""


def run_pure(pure: Pure, words: Sequence[str]) -> bool:
    """Have mutmut mutate the modules; tell whether enough of each one's mutants were noticed."""
    modules = [module for module in pure.modules if chosen(module.file, words)]
    settings = {
        "source_paths": ["src"],
        "only_mutate": [f"src/mulligan/{module.file}" for module in modules],
        "pytest_add_cli_args": ["-n", "0", "-p", "no:cacheprovider", "--hypothesis-seed=0"],
        "pytest_add_cli_args_test_selection": pure.tests,
    }
    with (COPY / "pyproject.toml").open("a") as project:
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        project.write(f"\n[tool.mutmut]\n{''.join(lines)}")
    done = python("-m", "mutmut", "run")
    if done.returncode:
        say(f"{done.stdout[-5000:]}\n{done.stderr}")
        return False
    enough = [is_enough(module) for module in modules]
    return all(enough)


def is_enough(module: Module) -> bool:
    """Count a module's mutants; tell whether enough of them were noticed."""
    place = COPY / "mutants" / "src" / "mulligan" / f"{module.file}.meta"
    codes = EXIT_CODES.validate_python(json.loads(place.read_text())["exit_code_by_key"])
    killed = sum(code in KILLED for code in codes.values())
    share = 100 * killed / max(1, len(codes))
    counted = f"{killed} of {len(codes)} killed, {share:.1f} %"
    say(f"{module.file}: {counted} (least {module.least} %)")
    for name in [name for name, code in codes.items() if code not in KILLED]:
        say(f"    survived: {name}")
    return share >= module.least


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
