"""The wire of Gemini's generateContent."""

from collections.abc import Iterator
from dataclasses import replace

from pydantic import JsonValue

from world.model_script import Fault, Json, ModelRequest, Tool, Turn, find_tool, objects

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
}

BLIND = Tool("run_shell_command", {"command": {}}, ("command",))
"""Models call tools that they remember, offered or not."""


def read(body: Json, path: str) -> ModelRequest:
    parts = [part for each in objects(body.get("contents")) for part in objects(each.get("parts"))]
    declared = [
        each
        for tool in objects(body.get("tools"))
        for each in objects(tool.get("functionDeclarations"))
    ]
    return ModelRequest(
        model=path.rpartition("/")[2].partition(":")[0],
        text=str(body),
        turns=sum("functionResponse" in part for part in parts),
        streaming=path.endswith(":streamGenerateContent"),
        tool=find_tool(declared, "parametersJsonSchema") or (BLIND if declared else None),
    )


def whole(turn: Turn, asked: ModelRequest) -> Json:
    """Give the answer as one object."""
    parts: list[JsonValue] = [{"text": turn.text}] if turn.text else []
    if turn.shell and asked.tool:
        arguments = asked.tool.arguments(turn.shell)
        parts.append({"functionCall": {"name": asked.tool.name, "args": arguments}})
    content: Json = {"role": "model", "parts": parts}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": turn.input_tokens,
            "cachedContentTokenCount": turn.cached_tokens,
            "candidatesTokenCount": turn.output_tokens,
            "totalTokenCount": turn.input_tokens + turn.output_tokens,
        },
        "modelVersion": asked.model,
    }


def stream(turn: Turn, asked: ModelRequest) -> Iterator[Json]:
    """Give the chunks of a streamed answer: the words, then the whole."""
    if turn.text and turn.shell:
        words: Json = {"role": "model", "parts": [{"text": turn.text}]}
        yield {"candidates": [{"content": words, "index": 0}], "modelVersion": asked.model}
        turn = replace(turn, text="")
    yield whole(turn, asked)


def refusal(fault: Fault) -> Json:
    status = STATUSES.get(fault.status, "INTERNAL")
    return {"error": {"code": fault.status, "message": fault.message, "status": status}}
