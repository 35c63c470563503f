"""The wire of Anthropic's messages."""

import json
from collections.abc import Iterator

from world.model_script import Fault, Json, ModelRequest, Turn, find_tool, objects

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def read(body: Json, path: str) -> ModelRequest:
    messages = objects(body.get("messages"))
    parts = [part for each in messages for part in objects(each.get("content"))]
    return ModelRequest(
        model=str(body.get("model")),
        text=str(body),
        turns=sum(part.get("type") == "tool_result" for part in parts),
        streaming=body.get("stream") is True,
        tool=find_tool(objects(body.get("tools")), "input_schema"),
    )


def whole(turn: Turn, asked: ModelRequest) -> Json:
    """Give the answer as one object."""
    content: list[Json] = [{"type": "text", "text": turn.text}] if turn.text else []
    if turn.shell and asked.tool:
        use: Json = {
            "type": "tool_use",
            "id": f"toolu_{asked.turns}",
            "name": asked.tool.name,
            "input": asked.tool.arguments(turn.shell),
        }
        content.append(use)
    return {
        "id": f"msg_{asked.turns}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [*content],
        "stop_reason": "tool_use" if turn.shell and asked.tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": turn.input_tokens - turn.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": turn.cached_tokens,
            "output_tokens": turn.output_tokens,
        },
    }


def stream(turn: Turn, asked: ModelRequest) -> Iterator[Json]:
    """Give the events of a streamed answer; the type of each is its name too."""
    message = whole(turn, asked)
    blocks, usage = objects(message["content"]), message["usage"]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        empty: Json = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta: Json = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending: Json = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": usage}
    yield {"type": "message_stop"}


def refusal(fault: Fault) -> Json:
    kind = KINDS.get(fault.status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": fault.message}}
