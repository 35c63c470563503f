"""Its own process: for each line on standard input, fork a writer that appends until it is killed.

A writer prints the number of every event after the ledger has acknowledged it.
"""

import os
import sys
from itertools import count
from pathlib import Path

from mulligan.domain.events import AttemptStarted
from mulligan.domain.issue import IssueRef
from mulligan.domain.recorded_effects import WorkPushed
from mulligan.storage.database import open_database
from mulligan.storage.ledger import SqlLedger
from world.ledgers import TickingClock, url_of


def write(path: Path, life: int) -> None:
    with open_database(url_of(path)) as database:
        ledger = SqlLedger(database, TickingClock())
        ref = IssueRef("octo/kill", 1)
        ledger.append(ref, AttemptStarted(attempt=life, number=life, worker="x"))
        for turn in count(1):
            done = WorkPushed(attempt=life, git_ref=str(turn))
            ledger.append(ref, done)
            os.write(1, f"{turn}\n".encode())


def main() -> None:
    for line in sys.stdin:
        writer = os.fork()
        if writer == 0:
            write(Path(sys.argv[1]), int(line))
        os.write(1, f"writer {writer}\n".encode())
        os.waitpid(writer, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main()
