"""Poll the repositories of a configuration, pass after pass, and print what each pass took as JSON.

Run as: many_repositories.py CONFIG PASSES. The mirrors are fetched in each pass, as in a pass of a
daemon with so many repositories, which comes after MAX_POLICY_AGE.
"""

import json
import os
import sys
import time
from pathlib import Path

import psutil

from mulligan.config.load import load_operator
from mulligan.daemon.poll import FetchCache, poll, poll_interval
from mulligan.daemon.worker import Worker
from mulligan.implement.ports import ignore_event
from mulligan.interfaces.bootstrap.container import build


def main() -> None:
    """Make the passes; the first one has no ETags."""
    operator = load_operator(Path(sys.argv[1]), os.environ)
    with build(operator, os.environ, ignore_event) as container:
        worker, cache = Worker(container.context), FetchCache()
        passes = list[dict[str, float]]()
        for _ in range(int(sys.argv[2])):
            cache.fetched.clear()
            began, cpu = time.monotonic(), time.process_time()
            found, failed = poll(container.repositories, container.context, worker, cache)
            assert not found, found
            assert not failed, failed
            took, used = time.monotonic() - began, time.process_time() - cpu
            resident = psutil.Process().memory_info().rss / 1e6
            passes.append({"seconds": took, "cpu": used, "megabytes": resident})
    interval = poll_interval(operator.poll.interval, len(container.repositories)).total_seconds()
    print(json.dumps({"interval": interval, "passes": passes}))  # noqa: T201


if __name__ == "__main__":
    main()
