"""What an agent printed and reported is read, whatever it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from mulligan.agents.output import (
    Usage,
    closing_question,
    facts_of,
    priced,
    read_learned,
    read_output,
    read_report,
    read_title,
    shortened,
)
from mulligan.config.settings import Price
from mulligan.domain.attempt import AgentReport, ReportedStatus, TimeLimit

pytestmark = pytest.mark.pure
NOISE = "\n".join(f"warning {number}" for number in range(19))


@pytest.mark.parametrize(
    ("output", "usage"),
    [
        ("", {}),
        ("no JSON at all", {}),
        ('{"turns": 3}', {"turns": 3}),
        ('text\n{"turns": 3}\n\n', {"turns": 3}),
        ('{"turns": 3}\r\n', {"turns": 3}),
        ('  {"turns": 3}  ', {"turns": 3}),
        ('{"turns": 1}\n{"turns": 2}', {"turns": 2}),
        (f'{{"turns": 3}}\n{NOISE}', {"turns": 3}),
        (f'{{"turns": 3}}\n{NOISE}\none more', {}),
        ('{"turns": 3}\n{"level": "warn"}', {"turns": 3}),
        ('{"turns": 3}\n{"turns": ', {"turns": 3}),
        ('{"turns": 3}\n["turns"]', {"turns": 3}),
        ('{"turns": 3, "other": [1, {"a": null}]}', {"turns": 3}),
        ('{"turns": "3"}', {}),
        ('{"turns": true}', {}),
        ('{"turns": -1}', {}),
        ('{"turns": 9223372036854775808}', {}),
        ('{"turns": 2.5, "model": "m"}', {"model": "m"}),
        ('{"cost_usd": 1}', {"cost_usd": 1.0}),
        ('{"cost_usd": 0.25}', {"cost_usd": 0.25}),
        ('{"cost_usd": NaN}', {}),
        ('{"cost_usd": 1e999}', {}),
        ('{"cost_usd": "free"}', {}),
        ('{"model": ["m"]}', {}),
        ('{"input_tokens": 1, "output_tokens": 2}', {"input_tokens": 1, "output_tokens": 2}),
        ('{"session_id": "a", "stop_reason": "b"}', {"session_id": "a", "stop_reason": "b"}),
        ('{"result": "x", "summary": "y"}', {"result": "x", "summary": "y"}),
        ("{" * 100_000, {}),
    ],
)
def test_the_last_record_of_usage_is_read(output: str, usage: dict[str, object]) -> None:
    assert read_output(output.encode()).usage.model_dump(exclude_none=True) == usage


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        ("", ""),
        ("one\n\ntwo\n", "one\ntwo"),
        ('text\n{}\n{"a": 1}\nmore', "text\nmore"),
        ("[1/2] built\n{not JSON}", "[1/2] built\n{not JSON}"),
        ('words\n{"result": "Did it."}', "Did it."),
        ('words\n{"summary": "Did it."}', "Did it."),
        ('words\n{"result": "r", "summary": "s"}', "r"),
        ('words\n{"result": "", "summary": "s"}', "s"),
        ('words\n{"result": "  "}', "words"),
        ('words\n{"result": 7}', "words"),
        ("\x1b[31mred\x1b[0m\x1b]0;title\x07 and \u202eplain", "red and plain"),
        ("10%\r90%\rdone", "10%\n90%\ndone"),
        ("\x1b[0m\n\x1b[2K", ""),
        ('{"result": "' + "é" * 3000 + '"}', "é" * 1999 + "…"),
        ("a" * 3000, "a" * 1999 + "…"),
        ("a" * 1500 + "\n" + "b" * 499, "a" * 1500 + "\n" + "b" * 499),
        ("a" * 1500 + "\n" + "b" * 500, "b" * 500),
        ("first\n" + "x" * 2500, "x" * 1999 + "…"),
    ],
)
def test_the_summary_is_the_agents_or_its_closing_words(output: str, summary: str) -> None:
    assert read_output(output.encode()).summary == summary


@pytest.mark.parametrize(
    ("output", "last"),
    [
        ("", None),
        (" \n\t\n", None),
        ("one\ntwo\n\n", "two"),
        ('one\n{"turns": 1}', "one"),
        ('one\n{"type": "tool"}', '{"type": "tool"}'),
        ("one\n\x1b[0m\n", "one"),
        ("a \x1b[1m  b", "a b"),
        ("x" * 300, "x" * 199 + "…"),
    ],
)
def test_the_last_activity_is_the_last_line_that_says_something(
    output: str, last: str | None
) -> None:
    assert read_output(output.encode()).last_activity == last


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("", ""),
        ("Done.", ""),
        ("Shall I go ahead?", "Shall I go ahead?"),
        ("I looked at it.\n\nShall I go ahead?\n\n", "Shall I go ahead?"),
        ("I would change add(). **Shall I go ahead?**", "Shall I go ahead?"),
        ("It is 3. Is that so! Which one (a or b?)", "Which one (a or b?)"),
        ("Which one?\n\n1. Rounding\n2) Fractions\n- neither", "Which one?"),
        ("Options:\n1. Rounding?\n2. Fractions?", "Fractions?"),
        ("- one\n- two", ""),
        ("Why? Because it is red.", ""),
        ("What was it?\nThe rounding. Mended.", ""),
        ("どれですか\uff1f", "どれですか\uff1f"),
        ("أي واحد\u061f", "أي واحد\u061f"),
        ("x" * 300 + "?", "x" * 199 + "…"),
    ],
)
def test_the_question_is_what_the_agent_ended_with(said: str, question: str) -> None:
    assert closing_question(said) == question
    assert read_output(said.encode()).question == question
    assert read_output(json.dumps({"result": said}).encode()).question == question


@given(st.binary())
def test_output_of_any_kind_is_read(output: bytes) -> None:
    said = read_output(output)
    assert len(said.summary) <= 2000
    assert len(said.last_activity or "") <= 200


def test_the_facts_are_those_of_the_record() -> None:
    record = {
        "version": "2",
        "model": "m\n1",
        "session_id": " ",
        "stop_reason": "end",
        "turns": 4,
        "cost_usd": 2,
    }
    facts = facts_of(read_output(json.dumps(record).encode()), "command", 1, None)
    assert facts.model_dump(exclude_defaults=True) == {
        "kind": "command",
        "version": "2",
        "model": "m 1",
        "exit_code": 1,
        "turns": 4,
        "cost_usd": 2.0,
        "stop_reason": "end",
    }


PRICE = {"m": Price(input=10, output=50)}


@pytest.mark.parametrize(
    ("record", "model", "usd"),
    [
        ({"model": "openai/m-2026-02-11", "input_tokens": 10**6, "output_tokens": 10**5}, "", 15.0),
        ({"output_tokens": 10**5}, "m", 5.0),
        ({"model": "m", "input_tokens": 10**6, "cost_usd": 0.5}, "", 0.5),
        ({"model": "m", "input_tokens": 10**6, "cost_usd": 0}, "", 0.0),
        ({"model": "other-model", "input_tokens": 10**6}, "m", None),
        ({"model": "m"}, "m", None),
    ],
)
def test_tokens_without_a_cost_get_the_price_of_their_model(
    record: dict[str, JsonValue], model: str, usd: float | None
) -> None:
    facts = facts_of(read_output(json.dumps(record).encode()), "command", 0, None)
    assert priced(facts, model, PRICE).cost_usd == usd


def test_a_closing_text_is_cut_to_what_a_pull_request_shows() -> None:
    assert shortened(" Did it.\u202e\n") == "Did it."
    assert shortened("x" * 2001) == "x" * 1999 + "…"


def test_a_limit_is_the_reason_why_it_stopped() -> None:
    said = read_output(b'{"stop_reason": "end"}')
    assert facts_of(said, "command", -15, TimeLimit.TIMEOUT).stop_reason == "timeout"


def test_usage_is_nothing_by_default() -> None:
    assert set(Usage().model_dump().values()) == {None}


BLOCKED = AgentReport(ReportedStatus.BLOCKED, "why")


@pytest.mark.parametrize(
    ("content", "report"),
    [
        ({"status": "blocked", "reason": "why"}, BLOCKED),
        ({"status": "BLOCKED", "reason": " why\n"}, BLOCKED),
        ({"status": "blocked", "reason": "\x1b[1mwhy", "more": 1}, BLOCKED),
        ({"status": "blocked", "reason": "why", "evidence": None}, BLOCKED),
        (
            {"status": "Nothing-To-Do", "reason": "r", "evidence": "e"},
            AgentReport(ReportedStatus.NOTHING_TO_DO, "r", "e"),
        ),
        (
            {"status": "blocked", "reason": "why", "evidence": ["ä", 1]},
            AgentReport(ReportedStatus.BLOCKED, "why", '["ä", 1]'),
        ),
        (
            {"status": "blocked", "reason": "r" * 3000, "evidence": "e" * 5000},
            AgentReport(ReportedStatus.BLOCKED, "r" * 1999 + "…", "e" * 3999 + "…"),
        ),
    ],
)
def test_a_report_is_read(content: object, report: AgentReport) -> None:
    assert read_report(json.dumps(content).encode()) == report


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it: Invalid JSON"),
        (b"all is well", "it: Invalid JSON"),
        (b"\xff", "it: Invalid JSON"),
        (b"[" * 60_000, "it: Invalid JSON"),
        (b"[]", "it: Input should be an object"),
        (b"null", "it: Input should be an object"),
        (b'{"reason": "r"}', "status: Field required"),
        (b'{"status": "done", "reason": "r"}', "status: Input should be 'blocked' or 'nothing_to"),
        (b'{"status": 1, "reason": "r"}', "status: Input should be 'blocked' or 'nothing_to"),
        (b'{"status": "blocked"}', "reason: Field required"),
        (b'{"status": "blocked", "reason": ""}', "reason: String should have at least 1"),
        (b'{"status": "blocked", "reason": 5}', "reason: Input should be a valid string"),
    ],
)
def test_what_is_wrong_with_a_report_is_said(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_report(content)


@pytest.mark.parametrize(
    ("content", "learned"),
    [
        (b'{"learned": ["A fact."]}', ("A fact.",)),
        (b'{"status": "blocked", "reason": "why", "learned": ["A fact.", 1]}', ("A fact.",)),
        (b'{"learned": "A fact."}', ()),
        (b'{"learned": null}', ()),
        (b"{}", ()),
        (b"[]", ()),
        (b"\xff", ()),
    ],
)
def test_noted_facts_are_read(content: bytes, learned: tuple[str, ...]) -> None:
    assert read_learned(content) == learned


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (b'{"title": "Add it up"}', "Add it up"),
        (b'{"title": "Add it up", "learned": [], "status": "blocked"}', "Add it up"),
        (b'{"title": ["Add it up"]}', ""),
        (b'{"title": "%s"}' % (b"x" * 301), ""),
        (b"Title: Add it up", ""),
        (b"[]", ""),
    ],
)
def test_a_proposed_title_is_read(content: bytes, title: str) -> None:
    assert read_title(content) == title


def test_a_file_that_only_notes_facts_or_a_title_reports_nothing() -> None:
    assert read_report(b'{"learned": ["A fact."]}') is None
    assert read_report(b'{"title": "Add it up"}') is None
    with pytest.raises(ValueError, match="status: Field required"):
        read_report(b'{"learned": ["A fact."], "reason": "r"}')


@given(st.binary())
def test_a_report_of_any_kind_is_read_or_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=":"):
        read_report(content)
