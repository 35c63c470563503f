"""The answers of a scripted language model: turns and faults, in order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue, TypeAdapter

Json = dict[str, JsonValue]
OBJECT: TypeAdapter[Json] = TypeAdapter(Json)
OBJECTS: TypeAdapter[list[Json]] = TypeAdapter(list[Json])
SHELLS = ("bash", "exec_command", "shell", "shell_command", "run_shell_command")
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""The last command of mini-swe-agent, which takes no plain answer for an end."""


@dataclass(frozen=True)
class Turn:
    """One answer: words, and a command for whatever tool of the agent runs commands."""

    text: str = ""
    shell: str = ""
    input_tokens: int = 1000
    cached_tokens: int = 0
    output_tokens: int = 100


@dataclass(frozen=True)
class Fault:
    """A refusal with that status; or no answer at all; or one that breaks off half-way."""

    status: int = 500
    message: str = "Internal server error"
    retry_after: int | None = None
    code: str = ""
    hang: bool = False
    cut: bool = False


Step = Turn | Fault
NO_CREDIT = Fault(400, "Your credit balance is too low to access the Anthropic API.")
NO_QUOTA = Fault(
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    code="insufficient_quota",
)
BAD_KEY = Fault(401, "Incorrect API key provided: k.")
FORBIDDEN = Fault(403, "This key may not use this model.")
RATE_LIMITED = Fault(429, "Rate limit reached.", retry_after=0)
BROKEN = Fault(500)
OVERLOADED = Fault(529, "Overloaded")
HANG = Fault(hang=True)
CUT_CONNECTION = Fault(cut=True)


@dataclass(frozen=True)
class Tool:
    """A tool that runs commands, as the agent described it."""

    name: str
    properties: Json
    required: tuple[str, ...]

    def arguments(self, command: str) -> Json:
        """Fill in the command, and something for whatever else has to be there."""
        given: Json = dict.fromkeys(self.required, "as asked")
        name = "cmd" if "cmd" in self.properties else "command"
        shape = self.properties.get(name)
        is_list = isinstance(shape, dict) and shape.get("type") == "array"
        return {**given, name: ["bash", "-c", command] if is_list else command}


@dataclass(frozen=True)
class ModelRequest:
    """A request of any of the protocols: `turns` counts the results of commands it carries."""

    model: str
    text: str
    turns: int
    streaming: bool
    tool: Tool | None = None


Model = Callable[[ModelRequest], Step]


def conversation(*steps: Step) -> Model:
    """Answer with the step whose turn it is, then with a closing word.

    What an agent asks without offering tools, a title for instance, is answered beside the script
    where the script runs commands.
    """
    runs_commands = any(isinstance(step, Turn) and step.shell for step in steps)

    def answer(asked: ModelRequest) -> Step:
        if runs_commands and asked.tool is None:
            return Turn("A title", input_tokens=0, output_tokens=0)
        step = steps[asked.turns] if asked.turns < len(steps) else Turn("Done.")
        if isinstance(step, Turn) and not step.shell and SUBMIT in asked.text:
            return Turn(step.text, f"echo {SUBMIT}", step.input_tokens)
        return step

    return answer


def find_tool(described: Sequence[Json], schema: str) -> Tool | None:
    """Find the tool that runs commands; `schema` is the key of its parameters."""
    for each in described:
        name, shape = each.get("name"), each.get(schema)
        if isinstance(name, str) and name.lower() in SHELLS and isinstance(shape, dict):
            properties, required = shape.get("properties"), shape.get("required")
            return Tool(
                name,
                properties if isinstance(properties, dict) else {},
                tuple(map(str, required)) if isinstance(required, list) else (),
            )
    return None


def objects(value: JsonValue) -> list[Json]:
    """Give the objects of a list; anything else has none."""
    found = value if isinstance(value, list) else []
    return [each for each in found if isinstance(each, dict)]
