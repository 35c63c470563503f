"""Every outcome, every kind of no change and every fault, as people and agents read of them.

What is agreed stands in golden/outcomes.md. Where words change on purpose, write it anew with
`python tests/implement/test_outcome_golden_text.py`, and read the difference.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.config.policy import ContextLimits
from mulligan.domain.attempt import (
    NO_TEXT,
    AgentReport,
    AgentRun,
    AttemptState,
    Change,
    Fault,
    ReportedStatus,
    ReviewerResult,
    TimeLimit,
    classify,
    fault_of,
)
from mulligan.domain.errors import (
    DeniedError,
    GoneError,
    MisconfiguredError,
    ShutdownError,
    UnavailableError,
    WithdrawnError,
    WorldError,
)
from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import AgentFacts, FileChange, VerifierOutcome
from mulligan.domain.set_up import SetUpError
from mulligan.implement.prompt.context_sections import assemble
from mulligan.implement.prompt.outcome_text import TITLES, zero_advice
from mulligan.implement.result import attempt_record
from world.attempts import NINE, broken_rules, case, check, failing_test

pytestmark = pytest.mark.pure

SET_UP = check("setup").model_copy(update={"is_set_up": True, "command": "x"})
GOLDEN = Path(__file__).parent / "golden" / "outcomes.md"
FACTS = AgentFacts(kind="command", input_tokens=900, output_tokens=100, cost_usd=0.5)
DOING = FACTS.model_copy(update={"last_activity": "Running: npm test -- --watch"})
RUN = AgentRun(0, timedelta(seconds=60), FACTS)
NOTHING = Change("base", None, 0)
CHANGED = Change("base", "head", 1, (FileChange(path="a.py", status="M"),))
STOPPED = replace(RUN, exit_code=-15, facts=DOING, limit=timedelta(minutes=5))


def said(status: ReportedStatus) -> AgentRun:
    return replace(RUN, report=AgentReport(status, "It needs a key.", "config.py:3"))


def faulted(error: WorldError | WithdrawnError | ShutdownError) -> AttemptState:
    return AttemptState(run=RUN, change=CHANGED, fault=fault_of(error))


def left(run: AgentRun, change: Change = NOTHING) -> AttemptState:
    return AttemptState(run=run, change=change)


ENDS = {
    "the agent crashed": left(replace(RUN, exit_code=3, facts=DOING)),
    "the agent was cut off": left(replace(RUN, is_cut_off=True)),
    "the agent was cut off in its change": left(replace(RUN, is_cut_off=True), CHANGED),
    "the agent failed in its change": left(replace(RUN, exit_code=1, is_cut_off=True), CHANGED),
    "the agent was killed": left(replace(RUN, exit_code=-9)),
    **{f"stopped by {limit}": left(replace(STOPPED, stopped_by=limit)) for limit in TimeLimit},
    **{f"reported {status}": left(said(status)) for status in ReportedStatus},
    "nothing at all": left(RUN),
    "asked a question": left(replace(RUN, question="Which rounding?")),
    "only ignored files": left(RUN, replace(NOTHING, ignored_files=("a.log", "b.log"))),
    "a copy": left(RUN, replace(NOTHING, commits=1, nested=("copy", "b", "c", "d"))),
    "a stash": left(RUN, replace(NOTHING, not_checked_out=("stash",))),
    "refused tools": left(replace(RUN, refusal="The tool Bash was refused; allow it.")),
    "commits without a change": left(RUN, replace(NOTHING, commits=2)),
    "out of scope": replace(left(RUN, CHANGED), violations=broken_rules("ci.yml is out of scope.")),
    "a check failed": replace(left(RUN, CHANGED), checks=(failing_test(),)),
    "rejected": replace(
        left(RUN, CHANGED),
        review=ReviewerResult(VerifierOutcome.HARD_FAIL, "Too clever.", vetoes=True),
    ),
    "it holds": left(RUN, CHANGED),
    "withdrawn": faulted(WithdrawnError("The issue was closed.")),
    "shut down": faulted(ShutdownError()),
    "denied": faulted(DeniedError("GitHub refused the token (401); renew it.")),
    "gone": faulted(GoneError("acme/tools#1 is gone.")),
    "misconfigured": faulted(MisconfiguredError("The program 'codex' is missing; install it.")),
    "unavailable": faulted(UnavailableError("GitHub is away.")),
    "setup failed": faulted(SetUpError("The setup command 'x' failed with exit code 1.", SET_UP)),
    "over budget": AttemptState(fault=Fault(Outcome.OVER_BUDGET, "The budget is used up.")),
    "no text": AttemptState(fault=NO_TEXT),
}
"""How an attempt may end, every kind of fault and of limit among them."""


def words() -> str:
    return "\n".join([*_ends(), *_zero_kinds()])


def _ends() -> Iterator[str]:
    for name, known in ENDS.items():
        meta = attempt_record(case(), known, {}, "one", NINE + timedelta(minutes=2))
        yield f"# {name}: {meta.outcome}, {TITLES[meta.outcome]}\n"
        yield f"error: {meta.error or '-'}\nreason: {meta.failure_reason or '-'}\n"
        yield f"{assemble(case(meta), ContextLimits(), b'').text}\n"


def _zero_kinds() -> Iterator[str]:
    for kind in ZeroKind:
        yield f"# no change, {kind}\n\n{zero_advice(kind)}\n"


def test_every_end_is_worded_as_agreed() -> None:
    assert words() == GOLDEN.read_text("utf-8")


def test_no_outcome_and_no_limit_is_left_out() -> None:
    assert {classify(known) for known in ENDS.values()} == set(Outcome)
    assert set(TITLES) == set(Outcome)


if __name__ == "__main__":
    GOLDEN.write_text(words(), "utf-8")
