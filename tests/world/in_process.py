"""A simulated GitHub that this process asks by a call: nothing passes through a socket.

While it is there, whatever the library requests sends to its address is answered by the function
that answers over HTTP as well (github_simulator/app.py). Other addresses are asked as ever.
"""

import http.client
import io
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from itertools import count
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from starlette.routing import compile_path
from urllib3 import HTTPResponse

from github_simulator.app import (
    REPOSITORY_BY_ID,
    Answer,
    answer_request,
    unknown_path,
)
from github_simulator.request import ApiCall, Handler
from github_simulator.routes import ROUTES
from github_simulator.world import Fault
from world.simulated_github import World

NUMBERS = count(1)
WORLDS = dict[str, World]()
Send = Callable[..., requests.Response]
OVER_HTTP: Send = HTTPAdapter.send


class CutOff(io.BytesIO):
    """The first half of an answer whose connection ends there."""

    def read1(self, size: int | None = -1, /) -> bytes:
        found = super().read1(-1 if size is None else size)
        if found:
            return found
        raise http.client.IncompleteRead(found)

    read = read1


@contextmanager
def in_process(world: World) -> Generator[str]:
    """Give the address of a world, without a slash at the end."""
    host = f"github-{next(NUMBERS)}.test"
    WORLDS[host] = world
    try:
        with patch.object(HTTPAdapter, "send", _send):
            yield f"http://{host}"
    finally:
        del WORLDS[host]


def _send(
    adapter: HTTPAdapter, request: requests.PreparedRequest, **settings: object
) -> requests.Response:
    parts = urlsplit(request.url or "")
    world = WORLDS.get(parts.hostname or "")
    if world is None:
        return OVER_HTTP(adapter, request, **settings)
    method, path, body = request.method or "", _by_name(world, parts.path), request.body or b""
    assert isinstance(body, str | bytes)
    handler, named = _route(method, path)
    call = ApiCall(
        world,
        method,
        path,
        named,
        dict(parse_qsl(parts.query, keep_blank_values=True)),
        {name.lower(): _text(value) for name, value in request.headers.items()},
        body.encode() if isinstance(body, str) else body,
        f"{parts.scheme}://{parts.hostname}",
    )
    fault = world.faults(method, path) if world.faults else None
    if fault:
        time.sleep(fault.delay)
    return _received(adapter, request, answer_request(handler, call, fault), fault)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def _by_name(world: World, path: str) -> str:
    """Name a repository that is named by its id, as the server does."""
    found = REPOSITORY_BY_ID.fullmatch(unquote(path))
    if not found:
        return unquote(path)
    names = {str(one.id): one.full_name for one in world.repositories.values()}
    return f"/repos/{names.get(found[1], found[1])}{found[2] or ''}"


@cache
def _routes() -> list[tuple[str, re.Pattern[str], Handler]]:
    return [(method, compile_path(path)[0], handler) for method, path, handler in ROUTES]


def _route(method: str, path: str) -> tuple[Handler, dict[str, str]]:
    for wanted, pattern, handler in _routes():
        found = pattern.match(path) if wanted == method else None
        if found:
            return handler, found.groupdict()
    return unknown_path, {}


def _received(
    adapter: HTTPAdapter, request: requests.PreparedRequest, answer: Answer, fault: Fault | None
) -> requests.Response:
    cut = fault and fault.cut
    half = answer.body[: len(answer.body) // 2]
    raw = HTTPResponse(
        CutOff(half) if cut else io.BytesIO(answer.body),
        headers={**answer.headers, "server": "GitHub.com"},
        status=answer.status,
        reason=http.client.responses.get(answer.status, ""),
        preload_content=False,
        request_method=request.method,
    )
    return adapter.build_response(request, raw)
