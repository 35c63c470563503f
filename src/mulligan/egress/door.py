"""Open the way out of one sandbox, a socket with a proxy behind it, while a command runs."""

import asyncio
import os
import socket
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from mulligan.egress.journal import Journal
from mulligan.egress.proxy import Proxy
from mulligan.egress.rules import Allowed
from mulligan.errors import UnavailableError

NAME = "door"


@contextmanager
def open_door(allowed: Allowed, journal: Journal) -> Generator[Path]:
    """Give the socket; when the block ends, so does every connection through it.

    Raises UnavailableError where there is no room for it.
    """
    with TemporaryDirectory(prefix="mulligan-door-", ignore_cleanup_errors=True) as directory:
        runner, ended = asyncio.Runner(), asyncio.Event()
        loop = runner.get_loop()
        serving = _serve(_listener(Path(directory)), Proxy(allowed, journal), ended)
        thread = threading.Thread(target=_run, args=(runner, serving), name="egress")
        thread.start()
        try:
            yield Path(directory, NAME)
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join()


def _run(runner: asyncio.Runner, serving: Coroutine[None, None, None]) -> None:
    with runner:
        runner.run(serving)


async def _serve(listener: socket.socket, proxy: Proxy, ended: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def accept() -> None:
        with suppress(BlockingIOError, ConnectionError):
            proxy.take(listener.accept()[0])

    with listener:
        loop.add_reader(listener, accept)
        await ended.wait()
        loop.remove_reader(listener)
        await proxy.close()


def _listener(directory: Path) -> socket.socket:
    """Make the socket; its whole path may be longer than an address can be (unix(7): 107)."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{place}/{NAME}")
        listener.listen()
        listener.settimeout(0)
    except OSError as error:
        listener.close()
        raise _no_room(error) from error
    finally:
        os.close(place)
    return listener


def _no_room(error: OSError) -> UnavailableError:
    why = error.strerror
    return UnavailableError(f"The agent's way out cannot be opened in /tmp: {why}; make room.")
