"""A scripted language model on loopback, in the four protocols that coding agents speak."""

import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from world import model_anthropic, model_gemini
from world.model_openai import Chat, Responses
from world.model_openai import refusal as openai_refusal
from world.model_script import OBJECT, Fault, Json, Model, ModelRequest, Turn

HOST = "127.0.0.1"


@dataclass(frozen=True)
class ModelProtocol:
    """One protocol, as four pure functions."""

    read: Callable[[Json, str], ModelRequest]
    whole: Callable[[Turn, ModelRequest], Json]
    stream: Callable[[Turn, ModelRequest], Iterator[Json]]
    refusal: Callable[[Fault], Json]


ANTHROPIC = ModelProtocol(
    model_anthropic.read, model_anthropic.whole, model_anthropic.stream, model_anthropic.refusal
)
RESPONSES = ModelProtocol(Responses.read, Responses.whole, Responses.stream, openai_refusal)
CHAT = ModelProtocol(Chat.read, Chat.whole, Chat.stream, openai_refusal)
GEMINI = ModelProtocol(
    model_gemini.read, model_gemini.whole, model_gemini.stream, model_gemini.refusal
)


class BrokenOffError(Exception):
    """Ends a connection in the middle of an answer."""


@dataclass
class ScriptedModel:
    """A scripted model service, and its requests: path, body and headers of each."""

    model: Model
    address: str = ""
    requests: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def answer(self, wire: ModelProtocol, request: Request) -> Response:
        body, path = OBJECT.validate_json(await request.body()), request.url.path
        self.requests.append((path, body))
        self.headers.append(dict(request.headers))
        asked = wire.read(body, path)
        step = self.model(asked)
        if isinstance(step, Turn):
            if not asked.streaming:
                return JSONResponse(wire.whole(step, asked))
            return _streamed(wire, [*wire.stream(step, asked)])
        if step.hang:
            return await _never(request)
        if step.cut:
            events = [*wire.stream(Turn("I shall"), asked)]
            return _streamed(wire, events[: len(events) // 2], broken_off=True)
        waiting = {} if step.retry_after is None else {"retry-after": str(step.retry_after)}
        return JSONResponse(wire.refusal(step), step.status, waiting)


def build_app(scripted: ScriptedModel) -> Starlette:
    """Serve the four protocols, and the small questions that agents ask beside."""

    def of(wire: ModelProtocol) -> Callable[[Request], object]:
        async def endpoint(request: Request) -> Response:
            return await scripted.answer(wire, request)

        return endpoint

    async def count(request: Request) -> Response:
        return JSONResponse({"input_tokens": 10, "totalTokens": 10})

    async def gemini(request: Request) -> Response:
        if request.url.path.endswith(":countTokens"):
            return await count(request)
        return await scripted.answer(GEMINI, request)

    async def models(request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [], "models": []})

    post = ["POST"]
    return Starlette(
        routes=[
            Route("/v1/messages", of(ANTHROPIC), methods=post),
            Route("/v1/messages/count_tokens", count, methods=post),
            Route("/v1/responses", of(RESPONSES), methods=post),
            Route("/v1/chat/completions", of(CHAT), methods=post),
            Route("/v1beta/models/{name:path}", gemini, methods=post),
            Route("/v1/models", models),
        ]
    )


@contextmanager
def serve_model(model: Model) -> Generator[ScriptedModel]:
    """Serve a model in a thread while the block lasts, on any free port of loopback."""
    scripted = ScriptedModel(model)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind((HOST, 0))
    listening.listen()
    scripted.address = f"http://{HOST}:{listening.getsockname()[1]}"
    config = uvicorn.Config(
        build_app(scripted),
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), name="model")
    thread.start()
    try:
        yield scripted
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def _streamed(wire: ModelProtocol, events: list[Json], *, broken_off: bool = False) -> Response:
    async def lines() -> AsyncIterator[str]:
        for event in events:
            name = event.get("type")
            yield f"event: {name}\n" if isinstance(name, str) else ""
            yield f"data: {json.dumps(event)}\n\n"
        if broken_off:
            raise BrokenOffError
        if wire is CHAT:
            yield "data: [DONE]\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


async def _never(request: Request) -> Response:
    await request.receive()
    return Response(status_code=499)
