"""Runs the simulator on loopback: in the foreground, or in a thread while a block lasts."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import uvicorn

from mulligan.errors import UnavailableError
from mulligan.simulator.app import build_app
from mulligan.simulator.world import World

HOST = "127.0.0.1"


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
    # Named, for asyncio sends without delay only on sockets that say that they are TCP.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        # From here on clients are kept waiting, not refused.
        listening.listen()
    except OSError as error:
        listening.close()
        message = f"The simulator cannot listen on port {port} ({error.strerror}); "
        message += "name a free one with --port."
        raise UnavailableError(message) from error
    return listening
