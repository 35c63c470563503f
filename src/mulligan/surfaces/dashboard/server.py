"""Serve the dashboard in a thread while a block lasts; a port that is taken stops nothing."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from mulligan.errors import UnavailableError

MOST_CONNECTIONS = 64
SECONDS_TO_END = 1


@contextmanager
def serving(app: ASGIApp, address: tuple[str, int], ending: threading.Event) -> Generator[str]:
    """Serve an application; give where it is. Afterwards neither the thread nor a socket is left.

    `ending` is set when it is to end, for answers that have no end of their own. UnavailableError
    where the address cannot be listened at.
    """
    listening = _listen(address)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="dashboard")
    thread.start()
    try:
        yield _where(listening)
    finally:
        ending.set()
        server.should_exit = True
        thread.join()
        listening.close()


def _listen(address: tuple[str, int]) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, for asyncio sends without delay only on sockets that say that they are TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        message = (
            f"The dashboard cannot listen at {host}:{port} ({error.strerror}); free the port, or "
            "name another in dashboard.listen."
        )
        raise UnavailableError(message) from error
    return listening


def _where(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
