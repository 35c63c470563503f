"""Its own process: run `mulligan` as often as asked, each time in a fork of its own.

All is loaded before the first fork (world/loading.py). On the socket whose descriptor is the first
argument, each message is the arguments, the directory and the environment as JSON, with the
descriptors for the three standard streams and for a socket, which gets the process's id, and at
its end the exit code, negative for a signal.
"""

import os
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

import typer
from pydantic import BaseModel

from mulligan.interfaces.cli.app import app
from world.loading import load_everything

COMMANDS = typer.main.get_command(app)
"""Built once: this takes 40 ms, half of the time of a short command."""
LONGEST = 1 << 20
OWN_DESCRIPTORS = Path("/proc/self/fd")


class Message(BaseModel):
    """A request."""

    program: str
    arguments: tuple[str, ...]
    directory: str
    environment: dict[str, str]
    umask: int


def run_mulligan(asked: Message, streams: Sequence[int]) -> None:
    """Be `mulligan` with these arguments, in this directory and environment; never returns."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(int(each.name) for each in OWN_DESCRIPTORS.iterdir()) + 1)
    os.chdir(asked.directory)
    os.umask(asked.umask)
    os.environ.clear()
    os.environ.update(asked.environment)
    sys.argv = [asked.program, *asked.arguments]
    code: object = 1
    try:
        COMMANDS()
    except SystemExit as ended:
        code = ended.code
    except Exception:  # noqa: BLE001 - a command that fails so must not go on as the starter
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def start(body: bytes, streams: Sequence[int]) -> int:
    """Fork a `mulligan`; give its process id."""
    child = os.fork()
    if child == 0:
        run_mulligan(Message.model_validate_json(body), streams)
    for descriptor in streams:
        os.close(descriptor)
    return child


def main() -> None:
    load_everything()
    with socket.socket(fileno=int(sys.argv[1])) as asked, DefaultSelector() as waiting:
        waiting.register(asked, EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd != asked.fileno():
                    waiting.unregister(key.fd)
                    report_end(key.fd, *key.data)
                    continue
                body, descriptors, _, _ = socket.recv_fds(asked, LONGEST, 4)
                if not body:
                    return
                *streams, ended = descriptors
                child, told = start(body, streams), socket.socket(fileno=ended)
                told.send(str(child).encode())
                waiting.register(os.pidfd_open(child), EVENT_READ, (child, told))


def report_end(alive: int, child: int, told: socket.socket) -> None:
    """Send the exit code to whoever waits for it; `alive` is the process's descriptor."""
    os.close(alive)
    _, status = os.waitpid(child, 0)
    with told, suppress(ConnectionError):
        told.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    main()
