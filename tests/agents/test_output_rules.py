"""An agent's output is read by rules, whatever comes in whatever pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.output import (
    MAX_LINE_BYTES,
    MAX_REFUSED,
    Reader,
    StreamFacts,
    number_in,
    values,
)
from mulligan.config.adapters import Fact, Meaning, Rule

pytestmark = pytest.mark.pure


def heard(*lines: object, rules: tuple[Rule, ...]) -> StreamFacts:
    reader = Reader(rules)
    for line in lines:
        text = line if isinstance(line, str) else json.dumps(line)
        reader.feed(f"{text}\n".encode())
    return reader.close()


USED = Rule(
    where={"type": "step"},
    once="id",
    add={Fact.INPUT: ("used.in", "used.cache"), Fact.COST: ("cost",)},
)


def step(number: int | None, **more: object) -> dict[str, object]:
    return {"type": "step", "id": number, "used": {"in": 10, "cache": 5}, "cost": 0.1, **more}


def test_numbers_are_added_up_over_lines_and_paths() -> None:
    told = heard(step(1), step(2), rules=(USED,))
    assert (told.count(Fact.INPUT), round(told.numbers[Fact.COST], 6)) == (30, 0.2)


def test_lines_with_the_same_id_count_once() -> None:
    assert heard(step(1), step(1), step(2), rules=(USED,)).count(Fact.INPUT) == 30


def test_only_the_latest_ids_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mulligan.agents.output.MAX_SEEN", 2)
    steps = [step(1), step(2), step(2), step(3), step(1)]
    assert heard(*steps, rules=(USED,)).count(Fact.INPUT) == 60


def test_a_later_line_replaces_what_was_added_up() -> None:
    end = Rule(where={"type": "end"}, take={Fact.INPUT: ("all",)})
    told = heard(step(1), {"type": "end", "all": 7}, rules=(USED, end))
    assert told.count(Fact.INPUT) == 7


def test_what_is_not_told_is_not_known() -> None:
    told = heard({"type": "step", "id": 1}, {"type": "step", "used": 3}, rules=(USED,))
    assert (told.count(Fact.INPUT), told.numbers, told.ended) == (None, {}, None)


@pytest.mark.parametrize(
    ("where", "line", "fits"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {}, False),
        ({"a": True}, {"a": True}, True),
        ({"a.b": "x"}, {"a": {"b": "x"}}, True),
        ({"a.b": "x"}, {"a": "x"}, False),
        ({"a": ["x", "y"]}, {"a": "y"}, True),
        ({"a": ["x", "y"]}, {"a": "z"}, False),
        ({"a": 1, "b": None}, {"a": 1}, True),
        ({"a": 1, "b": None}, {"a": 1, "b": ""}, True),
        ({"a": 1, "b": None}, {"a": 1, "b": "c"}, False),
        ({"a.*.b": 2}, {"a": [{"b": 1}, {"b": 2}]}, True),
        ({}, {"a": 1}, False),
    ],
)
def test_a_rule_reads_the_lines_that_it_names(
    where: dict[str, JsonValue],
    line: object,
    fits: bool,  # noqa: FBT001 - a column of the table
) -> None:
    rule = Rule(where=where, means=Meaning.RESULT)
    assert (heard(line, rules=(rule,)).ended is Meaning.RESULT) is fits


def test_a_value_may_be_matched_by_a_pattern() -> None:
    rule = Rule(matching={"error": "(?i)permission"}, means=Meaning.REFUSED)
    assert heard({"error": "Permission denied"}, rules=(rule,)).refused == ["a tool"]
    assert heard({"error": {"why": "permission"}}, rules=(rule,)).refused == ["a tool"]
    assert heard({"error": "no"}, {}, rules=(rule,)).refused == []


def test_refused_tools_are_named_once() -> None:
    rule = Rule(where={"r": 1}, means=Meaning.REFUSED, take={Fact.REFUSED: ("t.*.name",)})
    line = {"r": 1, "t": [{"name": "Bash"}, {"name": "Edit"}, {"name": "Bash"}]}
    assert heard(line, line, rules=(rule,)).refused == ["Bash", "Edit"]
    many = [{"r": 1, "t": [{"name": f"tool-{at}"}]} for at in range(200)]
    assert len(heard(*many, rules=(rule,)).refused) == MAX_REFUSED


COST = Rule(
    line=r"Tokens: (?P<sent>\S+) sent.* \$(?P<cost>[\d.]+)",
    add={Fact.INPUT: ("sent",), Fact.COST: ("cost",)},
    put={Fact.STOP: "said"},
)


def test_a_line_of_text_is_read_by_its_groups() -> None:
    told = heard("Tokens: 1.2k sent for $0.25", "Tokens: 30 sent for $0.5", rules=(COST,))
    assert (told.count(Fact.INPUT), told.numbers[Fact.COST]) == (1230, 0.75)
    assert told.texts == {Fact.STOP: "said"}


def test_a_pattern_for_text_does_not_read_json() -> None:
    assert heard({"said": "Tokens: 1 sent for $1"}, rules=(COST,)) == StreamFacts()


def test_a_call_that_is_tried_again_is_past_when_the_model_answers() -> None:
    rules = (
        Rule(where={"t": "retry"}, means=Meaning.WAITING, take={Fact.STATUS: ("status",)}),
        Rule(where={"t": "said"}, means=Meaning.PROGRESS),
    )
    retry = {"t": "retry", "status": 429}
    assert (told := heard(retry, rules=rules)).waiting
    assert told.status == 429
    assert not (told := heard(retry, {"t": "said"}, rules=rules)).waiting
    assert told.status is None


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (401, 401),
        ("unexpected status 401 Unauthorized", 401),
        ('{"error":{"code":503}}', 503),
        ("port 127.0.0.1:443, 4290 tokens", None),
        ("all is well", None),
    ],
)
def test_a_status_is_found_in_what_is_said(said: object, status: int | None) -> None:
    rule = Rule(where={"e": 1}, take={Fact.STATUS: ("s",)})
    assert heard({"e": 1, "s": said}, rules=(rule,)).status == status


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3),
        (0.5, 0.5),
        ("1,234", 1234),
        ("1.5k", 1500),
        ("2M", 2_000_000),
        ("$0.01", 0.01),
        (True, None),
        ("many", None),
        (None, None),
        (-1, None),
        (1e300, None),
        (float("nan"), None),
        ([1], None),
    ],
)
def test_a_number_is_read_as_it_is_written(value: JsonValue, number: float | None) -> None:
    assert number_in(value) == number


def test_a_path_may_go_through_lists_and_objects() -> None:
    line: dict[str, JsonValue] = {"a": [{"b": 1}, {"b": 2}, 3], "c": {"x": 4, "y": 5}}
    assert [*values(line, "a.*.b")] == [1, 2]
    assert [*values(line, "c.*")] == [4, 5]
    assert [*values(line, "a.b=2")] == []
    assert [*values(line, "a.c=2.b")] == []
    people: dict[str, JsonValue] = {"all": [{"is": "x", "n": 1}, {"is": "y", "n": 2}, "is=y"]}
    assert [*values(people, "all.is=y.n")] == [2]
    assert [*values(line, "a.b")] == []
    assert [*values({"d": 1}, "")] == [{"d": 1}]


@given(st.lists(st.integers(min_value=1, max_value=40), max_size=60))
def test_the_pieces_in_which_output_comes_make_no_difference(sizes: list[int]) -> None:
    output = "\n".join(json.dumps(step(number)) for number in range(9)).encode()
    reader = Reader((USED,))
    for size in sizes:
        reader.feed(output[:size])
        output = output[size:]
    reader.feed(output)
    assert reader.close().count(Fact.INPUT) == 135


def test_a_file_with_a_record_is_read_like_a_line() -> None:
    reader = Reader((USED,))
    reader.read_record(json.dumps(step(1), indent=2).encode())
    reader.read_record(b"[not a record]")
    assert reader.close().count(Fact.INPUT) == 15


def test_a_number_or_a_text_that_is_none_is_not_known() -> None:
    rule = Rule(where={"type": "step"}, take={Fact.TURNS: ("turns",), Fact.SAID: ("words",)})
    told = heard({"type": "step", "turns": "many", "words": ""}, rules=(rule,))
    assert (told.numbers, told.texts) == ({}, {})


def test_a_line_that_is_far_too_long_is_passed_over() -> None:
    reader = Reader((USED,))
    reader.feed(b"{" + b" " * MAX_LINE_BYTES)
    reader.feed(b"}\n" + json.dumps(step(1)).encode())
    assert reader.close().count(Fact.INPUT) == 15


@given(st.binary())
def test_no_output_breaks_a_reader(output: bytes) -> None:
    for adapter in BUILT_IN.values():
        reader = Reader(adapter.reads)
        reader.feed(output)
        reader.read_record(output)
        reader.close()


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"'\(' is refused; write a regular expression"):
        Rule(line="(")
    with pytest.raises(ValidationError, match=r"'\(\?=a\)' is refused; write a regular expression"):
        Rule(matching={"a": "(?=a)"})


@pytest.mark.parametrize(
    ("value", "is_read"), [(None, False), ("", False), ([], False), ("n", True), (0, True)]
)
def test_a_pattern_is_searched_in_values_that_are_not_empty(
    value: JsonValue, *, is_read: bool
) -> None:
    reader = Reader([Rule(matching={"a": "."}, means=Meaning.RESULT)])
    reader.feed(json.dumps({"a": value}).encode())
    assert (reader.close().ended is Meaning.RESULT) is is_read
