"""Its own process: run `mulligan` as often as asked, each time in a fork of its own.

All is loaded before the first fork (world/loading.py). On the socket whose descriptor is the first
argument, each message is the arguments, the directory and the environment as JSON, with the
descriptors for the three standard streams; the answer is the exit code, negative for a signal.
"""

import os
import socket
import sys
import traceback
from collections.abc import Sequence

from pydantic import BaseModel

from mulligan.interfaces.cli.app import app
from world.loading import load_everything

LONGEST = 1 << 20


class Message(BaseModel):
    """What is asked for."""

    program: str
    arguments: tuple[str, ...]
    directory: str
    environment: dict[str, str]


def run_mulligan(asked: Message, streams: Sequence[int]) -> None:
    """Be `mulligan` with these arguments, in this directory and environment; never returns."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(streams) + 1)
    os.chdir(asked.directory)
    os.environ.clear()
    os.environ.update(asked.environment)
    sys.argv = [asked.program, *asked.arguments]
    code: object = 1
    try:
        app()
    except SystemExit as ended:
        code = ended.code
    except Exception:  # noqa: BLE001 - a command that fails so must not go on as the starter
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def main() -> None:
    load_everything()
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        while True:
            body, descriptors, _, _ = socket.recv_fds(asked, LONGEST, 3)
            if not body:
                return
            child = os.fork()
            if child == 0:
                run_mulligan(Message.model_validate_json(body), descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            _, status = os.waitpid(child, 0)
            asked.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    main()
