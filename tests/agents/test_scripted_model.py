"""The scripted model speaks the protocols as the agents expect, and fails as it is told."""

import asyncio
import http.client
import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest
from httpx import ASGITransport, AsyncClient, Response

from world.model import ScriptedModel, build_app, serve_model
from world.model_script import (
    BAD_KEY,
    BROKEN,
    CUT_CONNECTION,
    FORBIDDEN,
    HANG,
    NO_CREDIT,
    OBJECT,
    OVERLOADED,
    RATE_LIMITED,
    Fault,
    Json,
    Model,
    Turn,
    conversation,
)

GEMINI = "/v1beta/models/gemini-2.5-pro"
SCHEMA: Json = {"properties": {"command": {"type": "string"}}, "required": ["command", "why"]}
ASKED: dict[str, Json] = {
    "/v1/messages": {"tools": [{"name": "Bash", "input_schema": SCHEMA}]},
    "/v1/responses": {"tools": [{"type": "function", "name": "shell", "parameters": SCHEMA}]},
    "/v1/chat/completions": {
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]
    },
    GEMINI: {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "run_shell_command", "parametersJsonSchema": SCHEMA}
                ]
            }
        ]
    },
}
ANSWERED: dict[str, Json] = {
    "/v1/messages": {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
    "/v1/responses": {"input": [{"type": "function_call_output"}]},
    "/v1/chat/completions": {"messages": [{"role": "tool"}]},
    GEMINI: {"contents": [{"parts": [{"functionResponse": {}}]}]},
}
"""What a request carries after the first command has run."""

protocols = pytest.mark.parametrize("path", ASKED)
faults = pytest.mark.parametrize(
    "fault", [NO_CREDIT, BAD_KEY, FORBIDDEN, RATE_LIMITED, BROKEN, OVERLOADED]
)


def full_path(path: str, body: Json) -> str:
    if path != GEMINI:
        return path
    return path + (":streamGenerateContent?alt=sse" if body.get("stream") else ":generateContent")


@contextmanager
def ask(
    address: str, path: str, body: Json, timeout: float = 5
) -> Generator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)
    with closing(connection):
        connection.request("POST", full_path(path, body), json.dumps({"model": "m", **body}))
        with connection.getresponse() as response:
            yield response


def ask_directly(scripted: ScriptedModel, path: str, body: Json) -> Response:
    """Ask without a connection."""

    async def asked() -> Response:
        transport = ASGITransport(build_app(scripted))
        async with AsyncClient(transport=transport, base_url="http://model") as client:
            return await client.post(full_path(path, body), json={"model": "m", **body})

    return asyncio.run(asked())


def answer(model: Model, path: str, body: Json) -> str:
    response = ask_directly(ScriptedModel(model), path, body)
    assert response.status_code == 200
    return response.text


@protocols
@pytest.mark.parametrize("stream", [True, False])
def test_a_command_is_asked_for_in_the_agents_own_words(path: str, *, stream: bool) -> None:
    model = conversation(Turn("I shall.", "echo hi"), Turn("Did it."))
    first = answer(model, path, {**ASKED[path], "stream": stream})
    assert "I shall." in first
    assert "echo hi" in first
    assert "why" in first
    assert first.startswith(("data: ", "event: ")) is stream


@protocols
@pytest.mark.parametrize("stream", [True, False])
def test_the_next_step_follows_the_result_of_the_command(path: str, *, stream: bool) -> None:
    model = conversation(Turn("I shall.", "echo hi"), Turn("Did it."))
    second = answer(model, path, {**ASKED[path], **ANSWERED[path], "stream": stream})
    assert "Did it." in second
    assert "echo hi" not in second
    assert "1000" in second


def test_beyond_the_script_the_model_says_that_it_is_done() -> None:
    assert "Done." in answer(conversation(), "/v1/messages", {})


def test_what_is_asked_beside_the_work_takes_nothing_from_the_script() -> None:
    model = conversation(Turn("I shall.", "echo hi"))
    assert "A title" in answer(model, "/v1/chat/completions", {})


@protocols
@faults
def test_a_fault_has_its_status_and_its_words(path: str, fault: Fault) -> None:
    scripted = ScriptedModel(conversation(fault))
    response = ask_directly(scripted, path, ASKED[path])
    assert response.status_code == fault.status
    assert fault.message in str(OBJECT.validate_json(response.content)["error"])
    wait = None if fault.retry_after is None else str(fault.retry_after)
    assert response.headers.get("retry-after") == wait
    assert [where.removesuffix(":generateContent") for where, _ in scripted.requests] == [path]


@protocols
def test_an_answer_breaks_off_half_way(path: str) -> None:
    with (
        serve_model(conversation(CUT_CONNECTION)) as scripted,
        ask(scripted.address, path, {"stream": True}) as response,
        pytest.raises(http.client.IncompleteRead),
    ):
        response.read()


def test_no_answer_comes_from_a_model_that_hangs() -> None:
    with (
        serve_model(conversation(HANG)) as scripted,
        pytest.raises(TimeoutError),
        ask(scripted.address, "/v1/messages", {}, timeout=0.3),
    ):
        pass
