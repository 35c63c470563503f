"""The wires of OpenAI: responses, and chat completions."""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from world.model_script import Fault, Json, ModelRequest, Turn, find_tool, objects

CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
KINDS = {429: "requests", 403: "permission_error"}


def refusal(fault: Fault) -> Json:
    kind = "server_error" if fault.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": fault.message,
            "type": fault.code or KINDS.get(fault.status, kind),
            "param": None,
            "code": fault.code or CODES.get(fault.status),
        }
    }


class Responses:
    """`POST /v1/responses`."""

    @staticmethod
    def read(body: Json, path: str) -> ModelRequest:
        items = objects(body.get("input"))
        return ModelRequest(
            model=str(body.get("model")),
            text=str(body),
            turns=sum(each.get("type") == "function_call_output" for each in items),
            streaming=body.get("stream") is True,
            tool=find_tool(objects(body.get("tools")), "parameters"),
        )

    @staticmethod
    def whole(turn: Turn, asked: ModelRequest) -> Json:
        items = list[JsonValue]()
        if turn.text:
            said: Json = {"type": "output_text", "text": turn.text, "annotations": []}
            items.append({"type": "message", "id": "m", "role": "assistant", "content": [said]})
        if turn.shell and asked.tool:
            call: Json = {
                "type": "function_call",
                "id": f"fc_{asked.turns}",
                "call_id": f"call_{asked.turns}",
                "name": asked.tool.name,
                "arguments": json.dumps(asked.tool.arguments(turn.shell)),
            }
            items.append(call)
        return {
            "id": f"resp_{asked.turns}",
            "object": "response",
            "model": asked.model,
            "status": "completed",
            "output": items,
            "usage": {
                "input_tokens": turn.input_tokens,
                "input_tokens_details": {"cached_tokens": turn.cached_tokens},
                "output_tokens": turn.output_tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": turn.input_tokens + turn.output_tokens,
            },
        }

    @staticmethod
    def stream(turn: Turn, asked: ModelRequest) -> Iterator[Json]:
        """Give the events; the type of each is its name too."""
        response = Responses.whole(turn, asked)
        opening: Json = {**response, "output": [], "status": "in_progress", "usage": None}
        yield {"type": "response.created", "response": opening}
        for index, item in enumerate(objects(response["output"])):
            yield {"type": "response.output_item.added", "output_index": index, "item": item}
            if item["type"] == "message":
                yield {
                    "type": "response.output_text.delta",
                    "item_id": "m",
                    "output_index": index,
                    "content_index": 0,
                    "delta": turn.text,
                }
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        yield {"type": "response.completed", "response": response}


class Chat:
    """`POST /v1/chat/completions`."""

    @staticmethod
    def read(body: Json, path: str) -> ModelRequest:
        functions = [tool.get("function") for tool in objects(body.get("tools"))]
        return ModelRequest(
            model=str(body.get("model")),
            text=str(body),
            turns=sum(each.get("role") == "tool" for each in objects(body.get("messages"))),
            streaming=body.get("stream") is True,
            tool=find_tool(objects(functions), "parameters"),
        )

    @staticmethod
    def whole(turn: Turn, asked: ModelRequest) -> Json:
        message: Json = {"role": "assistant", "content": turn.text}
        calls = Chat._calls(turn, asked)
        if calls:
            message["tool_calls"] = calls
        choice: Json = {"index": 0, "message": message, "finish_reason": Chat._reason(turn, asked)}
        return {**Chat._frame(asked, "chat.completion"), "choices": [choice], **Chat._usage(turn)}

    @staticmethod
    def stream(turn: Turn, asked: ModelRequest) -> Iterator[Json]:
        """Give the chunks; usage comes in the last."""
        frame = Chat._frame(asked, "chat.completion.chunk")
        deltas: list[Json] = [{"role": "assistant", "content": turn.text}]
        if calls := Chat._calls(turn, asked):
            deltas.append({"tool_calls": calls})
        for delta in deltas:
            yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        end: Json = {"index": 0, "delta": {}, "finish_reason": Chat._reason(turn, asked)}
        yield {**frame, "choices": [end]}
        yield {**frame, "choices": [], **Chat._usage(turn)}

    @staticmethod
    def _calls(turn: Turn, asked: ModelRequest) -> list[JsonValue]:
        if not turn.shell or asked.tool is None:
            return []
        arguments = json.dumps(asked.tool.arguments(turn.shell))
        function: Json = {"name": asked.tool.name, "arguments": arguments}
        number = f"call_{asked.turns}"
        return [{"index": 0, "id": number, "type": "function", "function": function}]

    @staticmethod
    def _reason(turn: Turn, asked: ModelRequest) -> str:
        return "tool_calls" if turn.shell and asked.tool else "stop"

    @staticmethod
    def _frame(asked: ModelRequest, kind: str) -> Json:
        return {"id": f"chat_{asked.turns}", "object": kind, "created": 0, "model": asked.model}

    @staticmethod
    def _usage(turn: Turn) -> Json:
        return {
            "usage": {
                "prompt_tokens": turn.input_tokens,
                "completion_tokens": turn.output_tokens,
                "total_tokens": turn.input_tokens + turn.output_tokens,
                "prompt_tokens_details": {"cached_tokens": turn.cached_tokens},
            }
        }
