"""Run a command of Mulligan in a process that has loaded it already (world/fork_server_main.py)."""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

STARTER = Path(__file__).with_name("fork_server_main.py")
ONE_AT_A_TIME = threading.Lock()


@cache
def _fork_server() -> socket.socket:
    """Start the one process of this test worker; it ends when the worker does."""
    stack = ExitStack()
    atexit.register(stack.close)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        argv = [sys.executable, str(STARTER), str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": str(STARTER.parents[1])}
        starter = subprocess.Popen(argv, env=environment, pass_fds=[theirs.fileno()])
        stack.enter_context(starter)
    return stack.enter_context(ours)


def run_forked(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    program: str = "mulligan",
    said: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `mulligan` with these arguments to its end; `program` is how it was called.

    What is `said` comes on its standard input.
    """
    message = {
        "program": program,
        "arguments": list(arguments),
        "directory": str(directory),
        "environment": dict(environment),
    }
    with ExitStack() as stack:
        stack.enter_context(ONE_AT_A_TIME)
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        into, out, err = files
        into.write(said.encode())
        into.seek(0)
        starter, body = _fork_server(), json.dumps(message).encode()
        socket.send_fds(starter, [body], [each.fileno() for each in files])
        code = int(starter.recv(16))
        out.seek(0)
        err.seek(0)
        told = out.read().decode(), err.read().decode()
    return subprocess.CompletedProcess(["mulligan", *arguments], code, *told)
