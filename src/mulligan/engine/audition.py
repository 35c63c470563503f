"""Try an agent out: whether it can write, tells its usage, is refused nothing, and stops."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from mulligan.domain.attempt import AgentRun, TimeLimit
from mulligan.domain.diagnosis import TRY_AGAIN, Diagnosis, failed, fault, fine, note, warning
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts
from mulligan.domain.spending import spent_in
from mulligan.errors import MulliganError
from mulligan.text.escape import one_line

FILE, WORD = "mulligan-doctor.txt", "mended"
WRITES = (
    f"Create the file {FILE} in the current directory, with the one word {WORD} in it. Do nothing"
    " else, and do not commit."
)
WAITS = "Run the shell command `sleep 120` and wait for its end. Do nothing else."
PATIENCE = timedelta(minutes=5)
"""How long an agent may take to write one word."""
UNTIL_STOPPED = timedelta(seconds=10)
"""How long it waits before it is asked to stop."""
GRACE = timedelta(seconds=5)
"""After which whoever did not stop is killed (see process.Command)."""
WORDS_CHARS = 200


@dataclass(frozen=True, slots=True)
class Stage:
    """A throw-away repository: `play` runs the agent there, for so long at most.

    `written` tells what is in the file that it was to write, None where there is none.
    """

    agent: str
    play: Callable[[str, timedelta], AgentRun]
    written: Callable[[], str | None]


def audition(stage: Stage) -> Iterator[Diagnosis]:
    """Run an agent twice, and say what it showed; the second time only where the first worked."""
    try:
        first = stage.play(WRITES, PATIENCE)
        yield from _first(stage, first)
        if stage.written() is None or first.fault:
            return
        second = stage.play(WAITS, UNTIL_STOPPED)
        yield _stops(stage, second)
        yield _cost(stage, first.facts, second.facts)
    except MulliganError as error:
        yield failed(stage.agent, error, TRY_AGAIN)


def _first(stage: Stage, run: AgentRun) -> Iterator[Diagnosis]:
    if run.fault:
        said, fix = run.fault.reason, TRY_AGAIN
        is_passing = run.fault.outcome is Outcome.INFRASTRUCTURE
        yield fault(stage.agent, said, "Try again later." if is_passing else fix)
        return
    yield _writes(stage, run)
    if run.refusal and stage.written() is not None:
        yield _refused(stage, run, warning)
    elif not run.refusal:
        yield fine(stage.agent, "Nothing was refused to it.")
    yield _reports(stage, run.facts)


def _writes(stage: Stage, run: AgentRun) -> Diagnosis:
    written = stage.written()
    if written is not None and WORD in written:
        return fine(stage.agent, "It can write in its worktree.")
    if written is not None:
        fix = "See whether the model is the one that was meant."
        return warning(stage.agent, f"It wrote {FILE}, but not the word that was asked for.", fix)
    if run.refusal:
        return _refused(stage, run, fault)
    if run.stopped_by is TimeLimit.TIMEOUT:
        said = f"It wrote nothing in {PATIENCE.total_seconds() / 60:g} minutes, and was stopped."
        return fault(stage.agent, said, "See whether it waits for an answer, or for its model.")
    words = one_line(run.summary, WORDS_CHARS)
    told = f' Its last words: "{words}"' if words else " It said nothing."
    said = f"It wrote nothing, and ended with {run.exit_code}.{told}"
    return fault(stage.agent, said, "See to what it says; agent.arguments are added to its own.")


def _refused(stage: Stage, run: AgentRun, kind: Callable[[str, str, str], Diagnosis]) -> Diagnosis:
    said, _, fix = run.refusal.rpartition("; ")
    return kind(stage.agent, f"{said}.", f"{fix[:1].upper()}{fix[1:]}")


def _reports(stage: Stage, facts: AgentFacts) -> Diagnosis:
    spent = spent_in(facts)
    if facts.cost_usd is not None:
        said = f"It says what it uses: ${spent.usd:.4f} and {spent.tokens} tokens."
        return fine(stage.agent, said)
    if spent.tokens:
        said = f"It says that it used {spent.tokens} tokens, and no price is known for its model."
        return warning(stage.agent, said, "Name its price under prices, or hold it to tokens.")
    said = "It does not say what it uses, so that no budget holds it."
    return warning(stage.agent, said, "Have it report its usage; docs/agents.md says how.")


def _stops(stage: Stage, run: AgentRun) -> Diagnosis:
    if run.stopped_by is not TimeLimit.TIMEOUT:
        fix = "Nothing is to be done; it is killed if need be."
        said = "Whether it stops when it is asked to was not seen: it ended before that."
        return note(stage.agent, said, fix)
    if run.duration < UNTIL_STOPPED + GRACE:
        return fine(stage.agent, "It stops when it is asked to (TERM), and nothing of it is left.")
    fix = "Nothing is to be done, but what it has not reported by then is not known."
    said = f"It does not stop when it is asked to (TERM); it was killed {GRACE.seconds} s later."
    return warning(stage.agent, said, fix)


def _cost(stage: Stage, *runs: AgentFacts) -> Diagnosis:
    usd = sum(spent_in(each).usd for each in runs)
    tokens = sum(spent_in(each).tokens for each in runs)
    return fine(stage.agent, f"These two runs cost ${usd:.4f} and {tokens} tokens.")
