"""Runs the simulator on loopback: in the foreground, or in a thread while a block lasts."""

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import uvicorn

from mulligan.errors import UnavailableError
from mulligan.simulator.app import build_app
from mulligan.simulator.world import World

HOST = "127.0.0.1"
START_SECONDS = 10.0
GLANCE = 0.005


@contextmanager
def running(world: World, port: int = 0) -> Generator[str]:
    """Serve a world in a thread; give its address, without a slash at the end.

    Port 0 is any free port. Afterwards neither the thread nor a socket is left.
    UnavailableError where the port is taken.
    """
    listening = _listen(port)
    config = uvicorn.Config(
        build_app(world),
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        headers=[("server", "GitHub.com")],
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="simulator")
    address = f"http://{HOST}:{listening.getsockname()[1]}"
    thread.start()
    try:
        _wait_for(server, thread)
        yield address
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def serve(
    world: World,
    *,
    port: int = 0,
    announce: Callable[[str], None],
    stop: threading.Event | None = None,
) -> None:
    """Serve a world until `stop` is set or the user interrupts; `announce` gets the address."""
    with running(world, port) as address, suppress(KeyboardInterrupt):
        announce(address)
        (stop or threading.Event()).wait()


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        message = f"The simulator cannot listen on port {port}: {error}; name a free port."
        raise UnavailableError(message) from error
    return listening


def _wait_for(server: uvicorn.Server, thread: threading.Thread) -> None:
    patience = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > patience:
            message = "The simulator did not start; run it again."
            raise UnavailableError(message)
        time.sleep(GLANCE)
