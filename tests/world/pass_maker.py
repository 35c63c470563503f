"""Its own process: for each line on standard input, fork a worker that makes one pass.

A line holds the configuration, the desk's directory and the most attempts for an issue (0: no
limit), with tabs between. Two lines come back: the worker's process id, and, when it has ended,
its exit code. All modules are imported before the first fork, so that a pass costs little.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import git.cmd  # noqa: F401 - what imports it late finds it here

from mulligan.config.load import load_operator
from mulligan.engine.once import Extent, once
from mulligan.wiring.bench import build
from mulligan.wiring.records import lock_state
from world.crash_points import CountedLedger, Desk


def make_pass(config: Path, desk: Desk, attempts: int | None) -> int:
    """Do what `mulligan once` does; what it has to say goes to a file."""
    said = os.open(desk.directory / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    environment = {"PATH": desk.path, "GITHUB_TOKEN": os.environ["GITHUB_TOKEN"]}
    operator = load_operator(config, environment)
    with lock_state(operator, "once"), build(operator, environment, lambda *_: None) as bench:
        tools = replace(bench.tools, ledger=CountedLedger(bench.tools.ledger, desk))
        done = once(bench.repositories, tools, Extent(attempts))
    os.write(1, "".join(f"{problem}\n" for problem in done.problems).encode())
    return 1 if done.problems else 0


def main() -> None:
    for line in sys.stdin:
        config, directory, attempts = line.rstrip("\n").split("\t")
        worker = os.fork()
        if worker == 0:
            os._exit(make_pass(Path(config), Desk(Path(directory)), int(attempts) or None))
        os.write(1, f"{worker}\n".encode())
        _, status = os.waitpid(worker, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
