"""What a person is asked, and what may help, by how the last attempt ended (SPEC H2). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import WorkerResultMeta


@dataclass(frozen=True, slots=True)
class Advice:
    """`ask` is what is wanted; `actions` are things to do, the likeliest to help first.

    `{issue}` in an action stands for the issue's name.
    """

    ask: str
    actions: tuple[str, ...]


UNPUBLISHED = Advice(
    "The work is done and verified, but it could not be published. Please mend what is in the way.",
    ("Give Mulligan's token the right that is named, or change the rule that stands against it.",),
)
NO_ATTEMPT = Advice("Please look at why no attempt could be made.", ("Mend what is named above.",))

RED = Advice(
    "The attempts did not pass the checks. Please look at what failed and decide how to go on.",
    (
        "Read the last failure: is it about the change, or does the check fail without it too?",
        "Check whether the tests expect what this issue asks for; if not, say here which is right.",
        "Say more in the issue: where to change what, an example, what must not change.",
        "Split it, if it asks for several things at once.",
    ),
)
NOTHING_CHANGED = Advice(
    "The agent changed nothing. Please check that there is something to do, and that the text says "
    "what.",
    (
        "Is it done already? Then close the issue.",
        "Is the text clear? Say what should be different afterwards, and in which file.",
        "Is it a question rather than a change? Then answer it yourself.",
    ),
)
KILLED = Advice(
    "The agent was killed, and had changed nothing by then. Please see what killed it.",
    (
        "Look at the log of the machine that runs it: was it out of memory?",
        "See what it did last: `mulligan inspect {issue} --log`.",
    ),
)
QUESTION = Advice(
    "The agent asked a question instead of changing anything. Please answer it.",
    (
        "Answer in a comment here, or write it into the issue.",
        "If it only waits for permission, let its program work without asking for it.",
    ),
)
ONLY_IGNORED = Advice(
    "The agent wrote only files that git ignores. Please say which ones are to be changed.",
    (
        "Say in the issue which files should be different afterwards.",
        "If one that is ignored belongs into the repository, take it out of `.gitignore`.",
    ),
)
OUT_OF_SCOPE = Advice(
    "The agent changed what it must not. Please decide whether the scope or the task is to change.",
    (
        "If it is wanted there, widen `scope` in `.github/mulligan.yml` on the base branch.",
        "If it is not, say in the issue which files are to be changed instead.",
    ),
)
REJECTED = Advice(
    "The reviewer command rejected the work. Please decide who is right.",
    (
        "Read its words below: if they are right, say in the issue what they ask for.",
        "If they are wrong, mend or switch off `reviewer` in `.github/mulligan.yml`.",
    ),
)
OUT_OF_TIME = Advice(
    "The agent ran out of time. Please make the task smaller, or give it more time.",
    (
        "Split the issue, or say where to look, so that there is less to find out.",
        "Give it more time: `agent.timeout` and `agent.stall_timeout` in `mulligan.yml`.",
        "See in the log whether it waited for something: `mulligan inspect {issue} --log`.",
    ),
)
CRASHED = Advice(
    "The agent's program failed. Please see that it runs.",
    (
        "Run the agent by hand on the machine that runs Mulligan: is it logged in and up to date?",
        "Read its log: `mulligan inspect {issue} --log`.",
    ),
)
BLOCKED = Advice(
    "The agent cannot go on without you. Please answer what it asks.",
    (
        "Answer in a comment here, or write it into the issue.",
        "If it lacks access or a tool, give it that, or do this step yourself.",
    ),
)
DONE_ALREADY = Advice(
    "The agent says that there is nothing to do. Please say whether it is right.",
    (
        "If it is right, close the issue.",
        "If it is not, say in the issue how to see that something is missing.",
    ),
)
AROUND = Advice(
    "Something around the agent is in the way; the issue may be fine. Please mend it.",
    (
        "Mend what the failure names: it is about the machine, the network or a server.",
        "Run `mulligan status` there to see whether other issues meet the same.",
    ),
)
SET_UP = Advice(
    "Mulligan's set-up is not complete; the issue may be fine. Please mend it.",
    ("Mend what the failure names, in `mulligan.yml` or `.github/mulligan.yml`.",),
)
ACCESS = Advice(
    "Access was refused; the issue may be fine. Please give the right that is missing.",
    ("Renew the credential that the failure names, or give it the right that is missing.",),
)
CUT_OFF = Advice(
    "Mulligan itself was cut off again and again during this issue. Please see why.",
    (
        "Look at the log of the machine that runs it: was it out of memory, or restarted?",
        "Check whether this issue makes the agent use up the machine.",
    ),
)
UP_TO_YOU = Advice("Please decide how to go on.", ("Read what happened, above.",))


ADVICE: Mapping[Outcome, Advice] = {
    Outcome.SUCCEEDED: UNPUBLISHED,
    Outcome.CHECKS_FAILED: RED,
    Outcome.ZERO_COMMIT: NOTHING_CHANGED,
    Outcome.ZERO_DIFF: NOTHING_CHANGED,
    Outcome.SCOPE_VIOLATION: OUT_OF_SCOPE,
    Outcome.REJECTED: REJECTED,
    Outcome.AGENT_TIMED_OUT: OUT_OF_TIME,
    Outcome.AGENT_CRASHED: CRASHED,
    Outcome.BLOCKED: BLOCKED,
    Outcome.NOTHING_TO_DO: DONE_ALREADY,
    Outcome.INFRASTRUCTURE: AROUND,
    Outcome.MISCONFIGURED: SET_UP,
    Outcome.DENIED: ACCESS,
    Outcome.INTERRUPTED: CUT_OFF,
    Outcome.OVER_BUDGET: UP_TO_YOU,
    Outcome.CANCELLED: UP_TO_YOU,
}
"""By how the last attempt ended; a test sees that none is left out."""

ON_NO_CHANGE: Mapping[ZeroKind, Advice] = {
    ZeroKind.CUT_OFF: KILLED,
    ZeroKind.ASKED: QUESTION,
    ZeroKind.ONLY_IGNORED: ONLY_IGNORED,
}
"""By how the last attempt came to leave no change, where that says more than its outcome."""


def advice_on(last: WorkerResultMeta) -> Advice:
    """Find what may help after an attempt."""
    general = ADVICE[last.outcome]
    if last.zero_kind is None or last.outcome is Outcome.AGENT_TIMED_OUT:
        return general
    return ON_NO_CHANGE.get(last.zero_kind, general)
