"""Its own process: for each line on standard input, fork a worker that makes one pass, and wait.

A line names the configuration and the directory of the crash points; the answer is the worker's
exit code, negative for a signal. Everything is imported before the first fork, so that a pass costs little.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import git.cmd  # noqa: F401 - imported late by what needs it

from mulligan.config.load import load_operator
from mulligan.engine.once import once
from mulligan.wiring.bench import build
from mulligan.wiring.records import lock_state
from world.crash_points import CountedLedger, Points


def work(config: Path, points: Points) -> int:
    """Make one pass as `mulligan once` does."""
    said = os.open(points.directory / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    points.enlist(os.getpid())
    environment = {"PATH": points.path, "GITHUB_TOKEN": os.environ["GITHUB_TOKEN"]}
    operator = load_operator(config, environment)
    with lock_state(operator, "once"), build(operator, environment, lambda *_: None) as bench:
        tools = replace(bench.tools, ledger=CountedLedger(bench.tools.ledger, points))
        done = once(bench.repositories, tools)
    print(*done.problems, sep="\n", flush=True)  # noqa: T201 - for whom a test fails
    return 1 if done.problems else 0


def main() -> None:
    for line in sys.stdin:
        config, points = map(Path, line.rstrip("\n").split("\t"))
        worker = os.fork()
        if worker == 0:
            os._exit(work(config, Points(points)))
        _, status = os.waitpid(worker, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
