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


OR_ANOTHER = "If that is not in your hands, pass this on to whoever runs Mulligan here."

UNPUBLISHED = Advice(
    "The work is done and verified, but it could not be published. Please mend what is in the way.",
    ("Give Mulligan's token the right that is named, or change the rule that stands against it.",),
)
NO_ATTEMPT = Advice("Please look at why no attempt could be made.", ("Mend what is named above.",))
AFTER_REVIEWS = Advice(
    "Changes are requested once more, and the rounds of review are used up. Please say what is "
    "still missing.",
    (
        "Say it in one `/mulligan fix:`; the agent is given that before everything else.",
        "Or finish it on the pull request's branch yourself: commits of others are kept.",
        "For more rounds, raise `review.rounds` in `.github/mulligan.yml`.",
    ),
)
RED_ON_GITHUB = Advice(
    "The pull request fails checks on GitHub, and the attempts at them are used up. Please look at "
    "these checks.",
    (
        "If it fails without this change too, run it again, or mend it; then go on reviewing.",
        "If the change is to blame, say in `/mulligan fix:` what it has to do differently.",
    ),
)

RED = Advice(
    "The attempts did not pass the checks. Please look at what failed and decide how to go on.",
    (
        "Read the last failure: is it about the change, or does the check fail without it too?",
        "If the tests expect something else than the issue, say in `/mulligan fix:` which holds.",
        "Else say more there: where to change what, an example, what must not change.",
        "Split the issue, if it asks for several things at once.",
    ),
)
NOTHING_CHANGED = Advice(
    "The agent changed nothing. Please check that there is something to do, and that the text says "
    "what.",
    (
        "Is it done already? Then close the issue.",
        "Is the text clear? Say in `/mulligan fix:` what should be different, and where.",
        "Is it a question rather than a change? Then answer it yourself.",
    ),
)
KILLED = Advice(
    "The agent was killed, and had changed nothing by then. Please see what killed it.",
    (
        "Look at the log of the machine that runs it: was it out of memory?",
        "See what it did last: `mulligan inspect {issue} --log`.",
        OR_ANOTHER,
    ),
)
QUESTION = Advice(
    "The agent asked a question instead of changing anything. Please answer it.",
    (
        "Answer with `/mulligan fix:` and your answer; a plain comment starts nothing.",
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
    "The agent changed what it must not. Please decide whether the rule or the task is to change.",
    ("If not, say in `/mulligan fix:` which files are to be changed instead.",),
)
REJECTED = Advice(
    "The reviewer command rejected the work. Please decide who is right.",
    (
        "Read its words above: if they are right, say in `/mulligan fix:` what they ask for.",
        "If they are wrong, mend or switch off `reviewer` in `.github/mulligan.yml`.",
    ),
)
OUT_OF_TIME = Advice(
    "The agent met a limit before it was done. Please make the task smaller, or raise the limit.",
    (
        "Say in `/mulligan fix:` where to look, so that there is less to find out.",
        "See in the log whether it waited for something: `mulligan inspect {issue} --log`.",
    ),
)
CRASHED = Advice(
    "The agent's program failed. Please see that it runs.",
    (
        "Run the agent by hand on the machine that runs Mulligan: is it logged in and up to date?",
        "Read its log: `mulligan inspect {issue} --log`.",
        OR_ANOTHER,
    ),
)
BLOCKED = Advice(
    "The agent cannot go on without you. Please answer what it asks.",
    (
        "Answer with `/mulligan fix:` and your answer; a plain comment starts nothing.",
        "If it lacks access or a tool, give it that, and write `/mulligan retry`.",
    ),
)
DONE_ALREADY = Advice(
    "The agent says that there is nothing to do. Please say whether it is right.",
    (
        "If it is right, close the issue.",
        "If it is not, say in `/mulligan fix:` how to see that something is missing.",
    ),
)
AROUND = Advice(
    "Something around the agent is in the way; the issue may be fine. Please mend it.",
    (
        "Has it passed by itself, as a server that is back? Then write `/mulligan retry`.",
        "Else pass this on to whoever runs Mulligan here: `mulligan doctor` looks at everything.",
    ),
)
SET_UP = Advice(
    "Mulligan's set-up is not complete; the issue may be fine. Please mend it.",
    (
        "Mend it as the failure says; what is set by a repository is in `.github/mulligan.yml`.",
        f"{OR_ANOTHER} `mulligan doctor` shows there whether it is mended.",
    ),
)
ACCESS = Advice(
    "Access was refused; the issue may be fine. Please give the right that is missing.",
    (
        "Renew the credential that the failure names, or give it the right that is missing.",
        OR_ANOTHER,
    ),
)
CUT_OFF = Advice(
    "Mulligan itself was cut off again and again during this issue. Please see why.",
    (
        "Look at the log of the machine that runs it: was it out of memory, or restarted?",
        "Check whether this issue makes the agent use up the machine.",
        OR_ANOTHER,
    ),
)
TOO_DEAR = Advice(
    "A budget is used up by this issue. Please decide whether it is worth more.",
    (
        "If it is worth more, have whoever runs Mulligan here raise the budget that is named.",
        "If it is not worth more, split it, or do it yourself.",
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
    Outcome.OVER_BUDGET: TOO_DEAR,
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
