"""docs/configuration.md is generated from the settings, and its examples are valid."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, JsonValue, TypeAdapter

from mulligan.config.load import load_operator, load_policy
from mulligan.config.operator import Operator
from mulligan.config.policy import Policy
from mulligan.config.schema import model_in

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
SECTION = re.compile(r"^### `([^`]+)`\n\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
OPERATOR_PART, POLICY_PART = PAGE.read_text().split("\n## ")[1:]


def sections(part: str) -> list[tuple[str, str]]:
    return [(key, text) for key, text in SECTION.findall(part)]


@pytest.mark.parametrize(("part", "model"), [(OPERATOR_PART, Operator), (POLICY_PART, Policy)])
def test_every_key_has_a_section(part: str, model: type[BaseModel]) -> None:
    documented = {re.sub(r"(?:\[\]|\.NAME)", "", key) for key, _ in sections(part)}
    assert {key for key in keys(model, "") if key not in documented} == set()


def keys(model: type[BaseModel], prefix: str) -> set[str]:
    """List the keys of a model; settings that occur again are documented at their first place."""
    found, seen = set[str](), set[type[BaseModel]]()

    def walk(inside: type[BaseModel], at: str) -> None:
        for name, field in inside.model_fields.items():
            found.add(f"{at}{name}")
            inner = model_in(field)
            if inner and inner not in seen:
                seen.add(inner)
                walk(inner, f"{at}{name}.")

    walk(model, prefix)
    return found


def test_every_section_has_meaning_default_and_example() -> None:
    leaves = [each for each in sections(PAGE.read_text()) if "```yaml" in each[1]]
    assert len(leaves) > 100
    assert [key for key, text in leaves if not re.match(r"\w|`rebuild`", text)] == []
    assert [
        key for key, text in leaves if not re.search(r"^Required|Default", text, re.MULTILINE)
    ] == []


Content = dict[str, JsonValue]
CONTENT: TypeAdapter[Content] = TypeAdapter(Content)

BASE: Content = {"repositories": [{"name": "o/r"}], "agent": {"kind": "claude"}}
PARTNERS: dict[str, Content] = {
    "github.app.id": {"private_key": "x"},
    "github.app.private_key": {"id": 1},
    "github.app.private_key_file": {"id": 1},
    "repositories[]": {"name": "o/r"},
    "agent": {"kind": "claude"},
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

OPERATOR_EXAMPLES = [
    pytest.param(key, text, id=key) for key, text in sections(OPERATOR_PART) if "```" in text
]
POLICY_EXAMPLES = [
    pytest.param(key, text, id=key) for key, text in sections(POLICY_PART) if "```" in text
]


def completed(key: str, text: str) -> Content:
    """Read the example of a section, and add what it needs beside it."""
    (example,) = BLOCK.findall(text)
    written = re.sub(r"\$[A-Z_]+", "https://value.example", example)
    content = CONTENT.validate_python(yaml.safe_load(written))
    for place, partner in PARTNERS.items():
        if key.startswith(f"{place}."):
            content = with_partner(content, place.split("."), partner)
        elif key == place and "." in place:
            content = with_partner(content, place.split(".")[:-1], partner)
    return content


def with_partner(content: Content, path: list[str], partner: Content) -> Content:
    if not path:
        return partner | content
    name = next(iter(content)) if path[0] == "NAME" else path[0].removesuffix("[]")
    value = content[name]
    first = CONTENT.validate_python(value[0] if isinstance(value, list) else value)
    made = with_partner(first, path[1:], partner)
    whole: JsonValue = [made] if isinstance(value, list) else made
    return {**content, name: whole}


@pytest.mark.parametrize(("key", "text"), OPERATOR_EXAMPLES)
def test_each_example_of_the_operator_is_valid(key: str, text: str) -> None:
    content = BASE | completed(key, text)
    names = re.findall(r"fallback: \[(\w+)\]", text)
    content |= {"agents": {name: {"kind": "claude"} for name in names}} if names else {}
    Operator.model_validate(content)


@pytest.mark.parametrize(("key", "text"), POLICY_EXAMPLES)
def test_each_example_of_the_policy_is_valid(key: str, text: str) -> None:
    Policy.model_validate(completed(key, text))


def test_the_opening_examples_are_valid(tmp_path: Path) -> None:
    (operator, *_), (policy, *_) = BLOCK.findall(OPERATOR_PART), BLOCK.findall(POLICY_PART)
    path = tmp_path / "mulligan.yml"
    path.write_text(operator)
    assert load_operator(path, {"GITHUB_TOKEN": "x"}).repositories
    assert load_policy(policy.encode(), {}, "page").checks
    assert yaml.safe_load(policy)["max_issue_attempts"] == 3
