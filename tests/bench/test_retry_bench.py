"""What a retry is worth (CONTEXT-1): real tools run again after each attempt, on many faults.

An agent fixes a fault only if its prompt names it: every fact of the fault, or the fixed line in a
diff that the prompt shows. Each attempt starts from the base, as Mulligan's do, so a fix of an
earlier attempt has to be found in the prompt again. The first attempt knows nothing, and only adds
a file. An arm makes the context of the next attempt from the outputs and diffs so far.

Sizes are bytes of that context. The repositories are in retry_repositories.py; none of their
outputs is in the benchmark of the digests. A third is held out by the checksum of its name.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

import pytest

from bench.retry_repositories import BULK, Fault, Repository, repositories
from mulligan.checks.digest import digest
from mulligan.config.policy import ContextLimits
from mulligan.domain.issue import Issue
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckKind, CheckResult, FileChange, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.context_sections import assemble
from mulligan.implement.prompt.patterns import sketch_of
from world.ledgers import ISSUES, completed

MOST = 10
"""Attempts of a repository, the first included."""

LIMITS = ContextLimits()
ISSUE = Issue(ISSUES[0], "Make the checks pass", "Some checks of this repository fail. Fix them.")
COMMITTED_SHARE = 0.95
PROGRAMS = (
    *("make", "cc", "node", "prove", "cargo", "javac", "java", "tclsh"),
    *("go", "cmake", "ctest", "npm", "rspec", "php", "rake", "awk"),
)
NODE_PACKAGES = ("jest@29.7.0", "mocha@10.8.2", "eslint@9.39.1", "@eslint/js@9.39.1")


@dataclass(frozen=True)
class Tried:
    """What one attempt left: its fixes, its diff, and what the check printed."""

    fixed: frozenset[Fault]
    diff: str
    output: bytes
    exit_code: int


@dataclass
class Runner:
    """Runs a repository's check in a directory of its own below `place`, once for each state."""

    repository: Repository
    place: Path
    known: dict[frozenset[Fault], tuple[bytes, int]] = field(
        default_factory=dict[frozenset[Fault], tuple[bytes, int]]
    )

    def attempt(self, fixed: frozenset[Fault]) -> Tried:
        if fixed not in self.known:
            self.known[fixed] = self._run(fixed)
        output, exit_code = self.known[fixed]
        return Tried(fixed, self._diff(fixed), output, exit_code)

    def _run(self, fixed: frozenset[Fault]) -> tuple[bytes, int]:
        with tempfile.TemporaryDirectory(dir=self.place) as directory:
            for name, text in self.repository.files(fixed).items():
                file = Path(directory, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            own = (Path(sys.executable).parent, self.place / "node_modules" / ".bin")
            path = os.pathsep.join([*map(str, own), os.environ["PATH"]])
            done = subprocess.run(  # noqa: S602 - a check is a shell line
                f"exec 2>&1; {self.repository.project.run}",
                shell=True,
                check=False,
                cwd=directory,
                env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"},
                stdout=subprocess.PIPE,
                timeout=300,
            )
            return done.stdout.replace(f"{directory}/".encode(), b""), done.returncode

    def _diff(self, fixed: frozenset[Fault]) -> str:
        before, after = self.repository.files(frozenset()), self.repository.files(fixed)
        bulk = BULK if self.repository.adds_bulk else 1
        parts = [
            _new_file("aaa_rows.txt", [f"row {number} of the new table" for number in range(bulk)])
        ]
        for name in sorted(before):
            if before[name] != after[name]:
                old, new = before[name].splitlines(), after[name].splitlines()
                hunks = unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="")
                parts.append("\n".join([f"diff --git a/{name} b/{name}", *hunks]))
        return "\n".join(parts) + "\n"


def _new_file(name: str, lines: Sequence[str]) -> str:
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}"
    return "\n".join([head, f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])


# The arms

Arm = Callable[[Repository, Sequence[Tried]], str]


def blind(_repository: Repository, _tried: Sequence[Tried]) -> str:
    return ""


def tail(characters: int, *, with_diff: bool) -> Arm:
    """Give the end of the last output, and the whole diff of the last attempt."""

    def arm(_repository: Repository, tried: Sequence[Tried]) -> str:
        output = tried[-1].output.decode(errors="replace")[-characters:]
        return f"{output}\n{tried[-1].diff}" if with_diff else output

    return arm


def mulligan(repository: Repository, tried: Sequence[Tried]) -> str:
    history = [_record(repository, number, each) for number, each in enumerate(tried, start=1)]
    status = IssueStatus(ISSUE.ref, epoch=1, attempt=len(history) + 1)
    known = IssueContext(ISSUE, status, tuple(history), MOST, counted=len(history))
    return assemble(known, LIMITS, tried[-1].diff.encode()).text


def _record(repository: Repository, number: int, tried: Tried) -> WorkerResultMeta:
    command = repository.project.run
    found = digest(tried.output, command=command, exit_code=tried.exit_code)
    check = CheckResult(
        name="checks",
        kind=CheckKind.TEST,
        command=command,
        passed=False,
        exit_code=tried.exit_code,
        digest=found.short,
        long_digest=found.text,
        findings=found.findings,
        count=found.count,
        fingerprint=found.fingerprint,
    )
    files = ["aaa_rows.txt", *{fault.file for fault in tried.fixed}]
    meta = completed(ISSUE.ref, number, Outcome.CHECKS_FAILED).meta
    changed = {
        "checks": (check,),
        "commits": 1,
        "error": "Check 'checks' failed with exit code 1.",
        "sketch": sketch_of(tried.diff.encode()),
        "files_modified": tuple(FileChange(path=file, status="M") for file in sorted(files)),
    }
    return meta.model_copy(update=changed)


ARMS: dict[str, Arm] = {
    "blind retry": blind,
    "last 2,000 characters": tail(2000, with_diff=False),
    "last 12,000 characters": tail(12_000, with_diff=False),
    "last 15,800 characters": tail(15_800, with_diff=False),
    "last 2,000 and the diff": tail(2000, with_diff=True),
    "last 12,000 and the diff": tail(12_000, with_diff=True),
    "last 15,800 and the diff": tail(15_800, with_diff=True),
    "Mulligan": mulligan,
}


# The agent


def fixes(repository: Repository, prompt: str) -> frozenset[Fault]:
    """Give the faults that a prompt names, or whose fix its diff shows."""
    plain = " ".join(prompt.split())
    return frozenset(fault for fault in repository.faults if _is_known(fault, prompt, plain))


def _is_known(fault: Fault, prompt: str, plain: str) -> bool:
    added = {line[1:] for line in prompt.splitlines() if line.startswith("+")}
    right = [line for line in fault.right.splitlines() if line not in fault.wrong.splitlines()]
    shown = any(all(part in line for part in right[:1]) for line in added)
    return shown or all(any(" ".join(f.split()) in plain for f in fact) for fact in fault.facts)


@dataclass(frozen=True)
class Lived:
    """How a repository ended: the attempt that was green, if any, and the bytes of each retry."""

    green_at: int | None
    told: tuple[int, ...]


def live(runner: Runner, arm: Arm) -> Lived:
    repository, told = runner.repository, list[int]()
    tried = [runner.attempt(frozenset())]
    while len(tried) < MOST:
        prompt = arm(repository, tried)
        told.append(len(prompt.encode()))
        fixed = fixes(repository, prompt)
        if fixed == frozenset(repository.faults):
            return Lived(len(tried) + 1, tuple(told))
        if len(tried) > 1 and fixed == tried[-1].fixed and arm is not mulligan:
            break  # A prompt without a memory says the same from here on.
        tried.append(runner.attempt(fixed))
    return Lived(None, tuple(told))


def install_node_packages(place: Path) -> None:
    """Install what comes from npm; every directory below `place` finds it."""
    options = ("--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    npm = ("npm", "install", "--prefix", str(place), *options, *NODE_PACKAGES)
    subprocess.run(npm, check=True, cwd=place, timeout=600)


@pytest.mark.timeout(3000)
def test_a_retry_that_knows_what_failed_fixes_it(tmp_path: Path) -> None:
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    assert not missing, f"Install {', '.join(missing)} to run this benchmark."
    install_node_packages(tmp_path)
    runners = [Runner(repository, tmp_path) for repository in repositories()]
    for runner in runners:
        assert runner.attempt(frozenset(runner.repository.faults)).exit_code == 0
        assert runner.attempt(frozenset()).exit_code != 0
    shares, sizes = dict[str, float](), dict[str, float]()
    for name, arm in ARMS.items():
        lives = [live(runner, arm) for runner in runners]
        green = [each.green_at for each in lives if each.green_at]
        held = [
            each.green_at is not None
            for each, runner in zip(lives, runners, strict=True)
            if runner.repository.held_out
        ]
        shares[name] = len(green) / len(lives)
        sizes[name] = statistics.fmean(size for each in lives for size in each.told)
        report(
            f"{name:<26}",
            f"green {len(green)} of {len(lives)}",
            f"held out {sum(held)} of {len(held)}",
            f"attempts to green {statistics.fmean(green) if green else 0:.1f}",
            f"{sizes[name]:,.0f} bytes per retry",
        )
        if name == "Mulligan":
            for each, runner in zip(lives, runners, strict=True):
                if each.green_at is None:
                    report("not green", runner.repository.name)
    assert len(runners) >= 50
    assert shares["Mulligan"] >= COMMITTED_SHARE
    assert sizes["Mulligan"] < sizes["last 12,000 and the diff"]


def report(*cells: str) -> None:
    print("retry |", " | ".join(cells))  # noqa: T201 - what a benchmark is for
