"""What an agent's output told decides who is to blame for how its run ended."""

from datetime import timedelta

import pytest

from mulligan.agents.output import (
    StreamFacts,
    cost_from_stream,
    facts_from_stream,
    is_cut_off,
    refusal,
    refusing_service,
    reported_error,
    service_fault,
    silent_service,
)
from mulligan.config.adapters import Adapter, Fact, Meaning
from mulligan.config.operator import AgentSettings
from mulligan.config.settings import Price
from mulligan.domain.attempt import Fault, TimeLimit
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import RestKind

pytestmark = pytest.mark.pure
SETTINGS = AgentSettings(kind="claude", model="m")


def failed(
    message: str = "", status: str = "", ended: Meaning | None = Meaning.FAILED
) -> StreamFacts:
    texts = {Fact.MESSAGE: message, Fact.STATUS: status}
    return StreamFacts(texts={fact: text for fact, text in texts.items() if text}, ended=ended)


@pytest.mark.parametrize(
    ("heard", "outcome"),
    [
        (failed("bad key", "401"), Outcome.DENIED),
        (failed("pay first", "402"), Outcome.DENIED),
        (failed("not you", "403"), Outcome.DENIED),
        (failed("Your credit balance is too low", "400"), Outcome.DENIED),
        (failed("You exceeded your current quota", "429"), Outcome.DENIED),
        (failed("API key not valid. Please pass a valid API key.", "400"), Outcome.DENIED),
        (failed("no such model", "404"), Outcome.MISCONFIGURED),
        (failed("slow down", "429"), Outcome.INFRASTRUCTURE),
        (failed("oops", "500"), Outcome.INFRASTRUCTURE),
        (failed("Overloaded", "529"), Outcome.INFRASTRUCTURE),
        (failed("took too long", "408"), Outcome.INFRASTRUCTURE),
        (failed("stream disconnected"), Outcome.INFRASTRUCTURE),
        (failed(), Outcome.INFRASTRUCTURE),
        (failed("prompt is too long", "400"), None),
        (failed("slow down", "429", Meaning.RESULT), None),
        (failed("slow down", "429", None), None),
        (StreamFacts(), None),
    ],
)
def test_the_status_says_who_has_to_act(heard: StreamFacts, outcome: Outcome | None) -> None:
    fault = service_fault(heard)
    assert (fault.outcome if fault else None) is outcome


def test_a_run_that_ended_while_it_tried_again_ended_by_the_service() -> None:
    heard = failed("slow down.", "429", None)
    heard.waiting = True
    fault = service_fault(heard)
    assert fault
    assert fault.reason == "The agent's account has reached a limit: slow down (HTTP 429)."


def test_a_service_that_says_nothing_gave_no_answer() -> None:
    fault = service_fault(failed())
    assert fault
    assert fault.reason == "The model's service failed: it gave no answer."


def test_a_service_that_was_silent_for_long_is_to_blame_for_a_time_out() -> None:
    fault = silent_service(timedelta(seconds=600.4), timedelta(minutes=10))
    assert fault
    assert fault.outcome is Outcome.INFRASTRUCTURE
    assert "sent nothing for 10m, until the time limit" in fault.reason
    assert silent_service(timedelta(seconds=599), timedelta(minutes=10)) is None


FAILED = "The model's service failed: "


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        (503, Fault(Outcome.INFRASTRUCTURE, f"{FAILED}its last answer was HTTP 503.")),
        (
            529,
            Fault(
                Outcome.INFRASTRUCTURE,
                "The model's service is overloaded: its last answer was HTTP 529.",
                rest=RestKind.LIMITED,
            ),
        ),
        (
            0,
            Fault(
                Outcome.INFRASTRUCTURE,
                f"{FAILED}it could not be reached.",
                rest=RestKind.UNREACHABLE,
            ),
        ),
        (
            429,
            Fault(
                Outcome.INFRASTRUCTURE,
                "The agent's account has reached a limit: its last answer was HTTP 429.",
                rest=RestKind.LIMITED,
            ),
        ),
        (
            401,
            Fault(
                Outcome.DENIED,
                "The model's service refused: its last answer was HTTP 401; check the agent's key"
                " and its credit.",
                rest=RestKind.REFUSED,
            ),
        ),
    ],
)
def test_a_service_whose_last_answer_was_a_failure_is_to_blame(status: int, fault: Fault) -> None:
    assert refusing_service(status) == fault


def test_a_service_that_a_person_must_make_reachable_is_named_with_the_fix() -> None:
    fault = refusing_service(
        0, "its certificate has expired; the server's operator must replace it"
    )
    assert fault == Fault(
        Outcome.MISCONFIGURED,
        "The model's service could not be reached: its certificate has expired; the server's"
        " operator must replace it.",
        rest=RestKind.UNREACHABLE,
    )


def test_refused_tools_are_told_with_their_fix() -> None:
    heard = StreamFacts(refused=["Bash", "Edit"])
    assert refusal(heard, Adapter(program="x", fix="allow them")) == (
        "The agent was refused Bash, Edit; allow them."
    )
    assert refusal(heard, Adapter(program="x")).endswith("; allow it in its settings.")
    assert refusal(StreamFacts(), Adapter(program="x")) == ""


@pytest.mark.parametrize(
    ("needs", "ended", "code", "cut_off"),
    [
        (True, None, 0, True),
        (True, Meaning.RESULT, 0, False),
        (True, Meaning.RESULT, -9, False),
        (True, Meaning.LIMIT, 0, False),
        (True, Meaning.FAILED, 0, True),
        (False, Meaning.CRASHED, 0, True),
        (False, None, 0, False),
        (False, None, 1, False),
        (False, None, -9, True),
        (False, None, 137, True),
    ],
)
def test_a_run_without_the_record_it_needs_was_cut_off(
    needs: bool,  # noqa: FBT001 - a column of the table
    ended: Meaning | None,
    code: int,
    cut_off: bool,  # noqa: FBT001 - a column of the table
) -> None:
    adapter = Adapter(program="x", needs_result=needs)
    assert is_cut_off(StreamFacts(ended=ended), adapter, code) is cut_off


def test_the_facts_are_those_that_were_heard() -> None:
    heard = StreamFacts(
        texts={Fact.VERSION: "2", Fact.STOP: "end", Fact.ACTIVITY: "ls\n-l", Fact.STATUS: "529"},
        numbers={Fact.INPUT: 10.0, Fact.COST: 0.1 + 0.2, Fact.TURNS: 2},
        refused=["Bash"],
    )
    facts = facts_from_stream(heard, SETTINGS, {}, 1, None)
    assert facts.model_dump(exclude_none=True, exclude_defaults=True) == {
        "kind": "claude",
        "version": "2",
        "model": "m",
        "exit_code": 1,
        "turns": 2,
        "input_tokens": 10,
        "cost_usd": 0.3,
        "stop_reason": "end",
        "last_activity": "ls -l",
        "api_status": 529,
        "refused": ("Bash",),
    }


@pytest.mark.parametrize(
    ("stopped_by", "reason"),
    [(None, "end"), (TimeLimit.TIMEOUT, "timeout"), (TimeLimit.OWN_LIMIT, "end")],
)
def test_a_limit_of_mulligans_goes_before_the_agents_words(
    stopped_by: TimeLimit | None, reason: str
) -> None:
    heard = StreamFacts(texts={Fact.STOP: "end"})
    assert facts_from_stream(heard, SETTINGS, {}, 0, stopped_by).stop_reason == reason
    assert facts_from_stream(StreamFacts(), SETTINGS, {}, 0, None).stop_reason is None


USED = {Fact.INPUT: 1_000_000.0, Fact.CACHED: 600_000.0, Fact.OUTPUT: 100_000.0}
OWN = {"mine": Price(input=1, output=10)}


@pytest.mark.parametrize(
    ("numbers", "model", "cost"),
    [
        (USED, "gpt-5", 0.4 * 1.25 + 0.6 * 0.125 + 0.1 * 10),
        (USED, "mine", 1 + 1),
        (USED, "nobody-knows", None),
        (USED | {Fact.COST: 7.0}, "gpt-5", 7.0),
        ({Fact.COST: 0.0}, "gpt-5", 0.0),
        ({}, "gpt-5", None),
        ({Fact.OUTPUT: 100.0}, "gpt-5", 0.001),
    ],
)
def test_the_cost_is_what_was_told_or_what_the_tokens_cost(
    numbers: dict[Fact, float], model: str, cost: float | None
) -> None:
    assert cost_from_stream(StreamFacts(numbers=numbers), model, OWN) == cost
    named = StreamFacts(numbers=numbers, texts={Fact.MODEL: model})
    assert cost_from_stream(named, "gpt-4o", OWN) == cost


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (StreamFacts(ended=Meaning.RESULT, texts={Fact.MESSAGE: "no"}), ""),
        (StreamFacts(ended=Meaning.CRASHED), "without a reason"),
        (StreamFacts(ended=Meaning.CRASHED, texts={Fact.STOP: "error_x"}), "error_x"),
    ],
)
def test_the_error_that_an_agent_reports_is_named(facts: StreamFacts, said: str) -> None:
    assert reported_error(facts) == said
