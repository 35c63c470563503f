"""The words for every mistake in a configuration file: line, key, what was found, what is right."""

from pathlib import Path

import pytest
from pydantic import BaseModel, TypeAdapter

from mulligan.config.document import MistakesError
from mulligan.config.load import load_policy, read_operator

pytestmark = pytest.mark.pure


class Row(BaseModel):
    """What a file holds, and every mistake that is told of it."""

    file: str
    said: list[str]


TENFOLD = "".join(
    f"{name}: &{name} [{', '.join([alias] * 10)}]\n"
    for name, alias in (("a", "x"), ("b", "*a"), ("c", "*b"), ("d", "*c"), ("e", "*d"))
)
ROWS = TypeAdapter(list[Row]).validate_json(
    (Path(__file__).parent / "golden" / "mistakes.json").read_bytes()
)
OPERATOR: list[tuple[str, list[str]]] = [
    *((row.file, row.said) for row in ROWS),
    (TENFOLD, ["the file has over 20000 values; shorten it."]),
    ("a" * (1024 * 1024 + 1), ["the file has over 1048576 characters; shorten it."]),
    (
        "a: " + "[" * 2000,
        ["the file is nested too deeply, or contains itself; write it without the nesting."],
    ),
]
A_LABEL = "write 1 to 50 characters, without a comma and without spaces around them."
POLICY: list[tuple[bytes, list[str]]] = [
    (
        b"checks:\n  - {name: a, run: a}\n  - {name: a, run: b}\n",
        ["line 1: checks is wrong: two checks are called 'a'; give each its own name."],
    ),
    (
        b"checks: [{name: " + b"a" * 101 + b", run: a}]\n",
        [f"line 1: checks.0.name is '{'a' * 59}…'; write text of 1 to 100 characters."],
    ),
    (b"checks:\n  - {name: a}\n", ["line 2: checks.0.run is missing; write text, not empty."]),
    (
        b"checks:\n  - name: a\n    run: a\n    kind: tests\n    requird: no\n",
        [
            "line 4: checks.0.kind is 'tests'; write test, lint, type, build, format or other.",
            "line 5: checks.0.requird is an unknown key; did you mean required?",
        ],
    ),
    (
        b"max_issue_attempts: 0\n",
        ["line 1: max_issue_attempts is 0; write a whole number from 1 to 10."],
    ),
    (
        b"labels:\n  ready: a,b\n  hitl: ''\n",
        [f"line 2: labels.ready is 'a,b'; {A_LABEL}", f"line 3: labels.hitl is ''; {A_LABEL}"],
    ),
    (b"a: 1\nb: \xff\n", ["line 2: this is not UTF-8 text; save the file as UTF-8."]),
]


@pytest.mark.parametrize(("text", "said"), OPERATOR)
def test_a_mistake_of_the_operator_is_told_so(text: str, said: list[str]) -> None:
    with pytest.raises(MistakesError) as caught:
        read_operator(text.encode(), {}, "mulligan.yml", {})
    assert [str(mistake) for mistake in caught.value.mistakes] == said
    first, *others = str(caught.value).splitlines()
    assert first.startswith("mulligan.yml")
    assert len(others) == (len(said) if len(said) > 1 else 0)


@pytest.mark.parametrize(("text", "said"), POLICY)
def test_a_mistake_in_a_policy_is_told_so(text: bytes, said: list[str]) -> None:
    with pytest.raises(MistakesError) as caught:
        load_policy(text, {}, ".github/mulligan.yml of o/r")
    assert [str(mistake) for mistake in caught.value.mistakes] == said
    assert str(caught.value).startswith(".github/mulligan.yml of o/r")
