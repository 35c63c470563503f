"""Run a command of Mulligan in a process that has loaded it already (world/starter.py)."""

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

STARTER = Path(__file__).with_name("starter.py")
ONE_AT_A_TIME = threading.Lock()


@cache
def _starter() -> socket.socket:
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


def run_warm(
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    program: str = "mulligan",
) -> subprocess.CompletedProcess[str]:
    """Run `mulligan` with these arguments to its end; `program` is how it was called."""
    message = {
        "program": program,
        "arguments": list(arguments),
        "directory": str(directory),
        "environment": dict(environment),
    }
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, ONE_AT_A_TIME:
        starter = _starter()
        socket.send_fds(starter, [json.dumps(message).encode()], [out.fileno(), err.fileno()])
        code = int(starter.recv(16))
        out.seek(0)
        err.seek(0)
        told = out.read().decode(), err.read().decode()
    return subprocess.CompletedProcess(["mulligan", *arguments], code, *told)
