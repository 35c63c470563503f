"""Its own process: for each line on standard input, fork a worker that makes one pass.

A line holds the configuration, the desk's directory, the most attempts for an issue (0: no limit)
and whether the points are watched (`watched` or not), with tabs between. Two lines come back:
`worker PID`, and when it has ended `ended CODE`, negative for a signal.
"""

import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from mulligan.config.load import load_operator
from mulligan.daemon.once import PassLimits, run_once
from mulligan.domain.events import Event
from mulligan.domain.status import IssueStatus
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.container import build
from mulligan.interfaces.bootstrap.stores import lock_state
from world.crash_points import CountedLedger, CrashPointPipe
from world.loading import load_everything


class HurriedClock(SystemClock):
    """The port Clock, with the true time, and no waits between attempts."""

    def backoff(self, step: int) -> timedelta:
        del step
        return timedelta(0)


def say_nothing(_status: IssueStatus, _event: Event) -> None:
    """Listen, as the terminal does, and keep still."""


def make_pass(config: Path, desk: CrashPointPipe, attempts: int | None, *, watched: bool) -> int:
    """Do what `mulligan once` does; what it has to say goes to a file."""
    said = os.open(desk.directory / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    path = desk.path if watched else os.environ["PATH"]
    environment = {"PATH": path, "GITHUB_TOKEN": os.environ["GITHUB_TOKEN"]}
    operator = load_operator(config, environment)
    with lock_state(operator, "once"), build(operator, environment, say_nothing) as bench:
        ledger = bench.context.ledger
        counted = CountedLedger(ledger, desk) if watched else ledger
        context = replace(bench.context, ledger=counted, clock=HurriedClock())
        done = run_once(bench.repositories, context, PassLimits(attempts))
    os.write(1, "".join(f"{problem}\n" for problem in done.problems).encode())
    return 1 if done.problems else 0


def main() -> None:
    load_everything()
    for line in sys.stdin:
        config, directory, attempts, watched = line.rstrip("\n").split("\t")
        worker = os.fork()
        if worker == 0:
            desk, most = CrashPointPipe(Path(directory)), int(attempts) or None
            os._exit(make_pass(Path(config), desk, most, watched=watched == "watched"))
        os.write(1, f"worker {worker}\n".encode())
        _, status = os.waitpid(worker, 0)
        os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main()
