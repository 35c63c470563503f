"""docs/configuration.md is generated from the settings, and its examples are valid."""

import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, JsonValue, TypeAdapter

from mulligan.config.load import load_operator, load_policy
from mulligan.config.operator import Operator
from mulligan.config.policy import Policy
from mulligan.config.schema import model_in, written

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "configuration.md").read_text()
_, OPERATOR_INTRODUCTION, POLICY_INTRODUCTION, OPERATOR_PART, POLICY_PART = PAGE.split("\n## ")
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
HEAD = re.compile(r"### `([^`]+)`")
ITEM = re.compile(
    r'^(?P<indent> *)- <a id="[\w-]+"></a>\*\*`(?P<name>[^`]+)`\*\*: (?P<text>.*)$', re.MULTILINE
)
EXAMPLE = re.compile(r" Example: `(.*)`\.$")


def documented(part: str) -> dict[str, str]:
    """Return the text of each key in a reference; lists are indented by four spaces a level."""
    found = dict[str, str]()
    for section in re.split(r"^(?=### )", part, flags=re.MULTILINE):
        path = list[str]()
        if head := HEAD.match(section):
            found[head[1]] = section
            path = [head[1]]
        top = len(path)
        for item in ITEM.finditer(section):
            path = [*path[: top + len(item["indent"]) // 4], item["name"]]
            found[".".join(path)] = item["text"]
    return found


@pytest.mark.parametrize(("part", "model"), [(OPERATOR_PART, Operator), (POLICY_PART, Policy)])
def test_every_key_is_documented(part: str, model: type[BaseModel]) -> None:
    found = {re.sub(r"(?:\[\]|\.NAME)", "", key): text for key, text in documented(part).items()}
    assert {*found} == {name for name, _, _ in keys(model)}
    for name, inside, key in keys(model):
        meaning, example = written(inside, key)
        assert meaning in found[name]
        assert not example or f"Example: `{example}`." in found[name]


def keys(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel], str]]:
    """Yield the path, the model and the name of each key; settings that occur again only once."""
    seen = set[type[BaseModel]]()

    def walk(inside: type[BaseModel], at: str) -> Iterator[tuple[str, type[BaseModel], str]]:
        for name, field in inside.model_fields.items():
            yield f"{at}{name}", inside, name
            inner = model_in(field)
            if inner and inner not in seen:
                seen.add(inner)
                yield from walk(inner, f"{at}{name}.")

    return walk(model, "")


def test_numbers_have_their_limits() -> None:
    assert "From 1 to 64. Default: `2`." in documented(OPERATOR_PART)["limits.concurrency"]
    assert "At least 16. Default: `4096`." in documented(OPERATOR_PART)["sandbox.limits.processes"]


Content = dict[str, JsonValue]
CONTENT: TypeAdapter[Content] = TypeAdapter(Content)

BASE: Content = {"repositories": [{"name": "o/r"}], "agent": {"kind": "claude"}}
PARTNERS: dict[str, Content] = {
    "github.app.id": {"private_key": "x"},
    "github.app.private_key": {"id": 1},
    "repositories[]": {"name": "o/r"},
    "sandbox.registries[].host": {"password": "x"},
    "sandbox.registries[].user": {"host": "a.example", "password": "x"},
    "sandbox.registries[].password": {"host": "a.example"},
    "sandbox.registries[].token": {"host": "a.example"},
    "adapters.NAME": {"program": "tinker"},
    "adapters.NAME.services.NAME": {"url": "https://api.tinker.example"},
    "prices.NAME": {"input": 1, "output": 1},
    "checks[]": {"name": "x", "run": "x"},
    "reviewer": {"run": "x"},
}
"""What a value needs beside it, by its key or by the settings that it is in."""


def examples(part: str) -> list[Any]:
    return [
        pytest.param(key, found[1], id=key)
        for key, text in documented(part).items()
        if (found := EXAMPLE.search(text))
    ]


def completed(key: str, example: str) -> Content:
    """Put an example at its place, with what it needs beside it."""
    value = yaml.safe_load(re.sub(r"\$[A-Z_]+", "https://value.example", example))
    *above, last = key.split(".")
    content: Content = {last.removesuffix("[]"): value, **PARTNERS.get(key, {})}
    for place in range(len(above), 0, -1):
        content = PARTNERS.get(".".join(above[:place]), {}) | content
        name = above[place - 1]
        content = {name.removesuffix("[]"): [content] if name.endswith("[]") else content}
    return content


@pytest.mark.parametrize(("key", "example"), examples(OPERATOR_PART))
def test_each_example_of_the_operator_is_valid(key: str, example: str) -> None:
    made = completed(key, example)
    agent = CONTENT.validate_python(BASE["agent"]) | CONTENT.validate_python(made.get("agent", {}))
    content = BASE | made | {"agent": agent}
    if key == "agent.fallback":
        content["agents"] = {"strong": {"kind": "claude"}}
    Operator.model_validate(content)


@pytest.mark.parametrize(("key", "example"), examples(POLICY_PART))
def test_each_example_of_the_policy_is_valid(key: str, example: str) -> None:
    Policy.model_validate(completed(key, example))


# The annotated files


def test_the_annotated_files_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "mulligan.yml"
    path.write_text(annotated(OPERATOR_INTRODUCTION))
    environment = {"GITHUB_TOKEN": "x", "SLACK_WEBHOOK": "https://hooks.example"}
    assert load_operator(path, environment).repositories
    policy = load_policy(annotated(POLICY_INTRODUCTION).encode(), {}, "page")
    assert [check.name for check in policy.checks] == ["lint", "tests"]


@pytest.mark.parametrize(
    ("part", "model"), [(OPERATOR_INTRODUCTION, Operator), (POLICY_INTRODUCTION, Policy)]
)
def test_the_annotated_files_give_the_real_defaults(part: str, model: type[BaseModel]) -> None:
    default: Callable[..., str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["_default"]
    real = {
        path: default(field, inside, name).strip("`")
        for path, inside, name in keys(model)
        if not model_in(field := inside.model_fields[name])
    }
    given = {path: text for path, text in defaults(annotated(part)) if path in real}
    assert len(given) > 10
    computed = {"none"}  # by Mulligan, so the comment describes it
    assert {path: text for path, text in given.items() if real[path] not in {text} | computed} == {}


def annotated(part: str) -> str:
    (block,) = BLOCK.findall(part)
    return block


def defaults(text: str) -> Iterator[tuple[str, str]]:
    """Yield the key of each line whose comment ends with its default, and that default."""
    path = list[tuple[int, str]]()
    for line in text.splitlines():
        found = re.match(r"([ -]*)(?:\{)?(\w+):(?:.*#.*default: (.*))?", line)
        if found:
            depth = len(found[1])
            path = [*(each for each in path if each[0] < depth), (depth, found[2])]
            if found[3]:
                yield ".".join(name for _, name in path), found[3]
