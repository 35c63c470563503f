"""Write the escalation comment, with the advice for each outcome. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mulligan.config.policy import Escalation
from mulligan.domain.attempt import TimeLimit
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Escalate, Outcome, ZeroKind
from mulligan.domain.result import CheckResult, GuardKind, WorkerResultMeta
from mulligan.domain.status import PUSHED_WORK
from mulligan.github.markdown_parts import (
    attempts_table,
    attempts_used,
    body,
    code,
    file_line,
    marker,
    spending_line,
)
from mulligan.implement.prompt.outcome_text import explain, failing, pluralize, verdict
from mulligan.implement.prompt.patterns import SAME_FAILURE, drift, is_same_change, without_advice
from mulligan.text.escape import code_block, defuse, one_line, visible

MAX_NAMED = 3

WIDEN = "If {} should change, widen `scope` in `.github/mulligan.yml` on the base branch."

ON_GUARDS: Mapping[GuardKind, str] = {
    GuardKind.SCOPE: WIDEN,
    GuardKind.PROTECTED: (
        "If {} should change, change it yourself, or take its kind out of `scope.protect` in "
        "`.github/mulligan.yml`: such files steer what runs here."
    ),
    GuardKind.SIZE: (
        "If a change of {} is wanted, raise the limit that is named, under `scope` in "
        "`.github/mulligan.yml`; else split the issue."
    ),
    GuardKind.LINK: "If the link {} is wanted, make it yourself; an agent's may lead anywhere.",
    GuardKind.SUBMODULE: "If {} is to move, move the submodule yourself; agents must not.",
    GuardKind.DELETED_TEST: (
        "If tests in {} may go, allow it by `scope.allow_deleted_tests` in `.github/mulligan.yml`."
    ),
    GuardKind.SKIPPED_TEST: (
        "If tests in {} may be skipped, allow it by `scope.allow_skipped_tests` in "
        "`.github/mulligan.yml`."
    ),
    GuardKind.SECRET: (
        "Look at {}: if it is a real secret, find out how the agent came to it, and renew it; if "
        "it only looks like one, name the file under `scope.allow_secrets`."
    ),
}
"""What a person may decide, by the rule that was broken; `{}` names the files."""

ON_TIME: Mapping[str, str] = {
    TimeLimit.TIMEOUT: (
        "It worked until `agent.timeout` in `mulligan.yml`. Split the issue, or raise that."
    ),
    TimeLimit.STALL_TIMEOUT: (
        "It printed nothing for `agent.stall_timeout` in `mulligan.yml`: it may have waited for an "
        "answer, a download or a long test run."
    ),
    TimeLimit.BUDGET: (
        "It used up `budget.attempt` in `mulligan.yml`. Split the issue, or raise that."
    ),
}
"""What stopped an agent, by the recorded reason; any other is a limit of the agent's own."""

OWN_LIMIT = (
    "It stopped at a limit of its own, of turns or cost: raise that in `agent.arguments` in "
    "`mulligan.yml`, or split the issue."
)

MODELS_KEY = (
    "Renew the key of the agent's model, or its credit, where Mulligan runs; then write `/mulligan "
    "retry`. It is tried within the hour."
)

NO_CHECKS = (
    "No checks are configured, so nothing tells the agent whether it is done: name some under "
    "`checks` in `.github/mulligan.yml`."
)

OR_ANOTHER = "If that is not in your hands, pass this on to whoever runs Mulligan here."

SHOWN_CHECKS = 3

SHOWN_FILES = 20

DIGEST_CHARS = 6000

REASON_CHARS = 1000

TO_BE_MENDED = frozenset(
    {
        Outcome.DENIED,
        Outcome.MISCONFIGURED,
        Outcome.INFRASTRUCTURE,
        Outcome.INTERRUPTED,
        Outcome.OVER_BUDGET,
        Outcome.AGENT_CRASHED,
    }
)
"""Outcomes after which nothing has to be said to the agent, once their cause is gone."""


def attempt_actions(case: IssueContext) -> Iterator[str]:
    """Give what the attempts show, the most telling first (SPEC H2)."""
    last = case.epoch_history[-1] if case.epoch_history else None
    if last is None:
        return
    yield from _on_guards(last)
    yield from _on_the_ending(last)
    yield from _on_repetition(case, last)
    if drift(case.epoch_history):
        yield (
            "The last two attempts changed different files altogether: the task may be unclear. "
            "Say where the change belongs."
        )
    if not case.verifies:
        yield NO_CHECKS


def _on_guards(last: WorkerResultMeta) -> Iterator[str]:
    """Say what is to be decided about each broken rule, with the files that broke it."""
    for kind, words in ON_GUARDS.items():
        broken = [each for each in last.guard_violations if each.kind is kind]
        wanted = [each.path or each.message.rstrip(".") for each in broken]
        if wanted:
            yield words.format(_named(list(dict.fromkeys(wanted))))


def _on_the_ending(last: WorkerResultMeta) -> Iterator[str]:
    """Name the limit or the set-up that ended the attempt."""
    agent = last.agent
    if last.outcome is Outcome.AGENT_TIMED_OUT and agent:
        yield ON_TIME.get(agent.stop_reason or "", OWN_LIMIT)
        if agent.last_activity:
            yield f"The last thing that it did: {code(agent.last_activity, 150)}."
    if last.outcome is Outcome.DENIED and agent and agent.denied:
        yield MODELS_KEY
    late = [check.name for check in failing(last.checks) if check.timed_out]
    if late:
        yield f"Give {_named(late)} a longer `timeout` in `.github/mulligan.yml`, if it is slow."
    if agent and agent.refused_hosts:
        hosts = _named(agent.refused_hosts)
        yield f"The sandbox did not let the agent reach {hosts}; `sandbox.hosts` lets it."


def _on_repetition(case: IssueContext, last: WorkerResultMeta) -> Iterator[str]:
    if SAME_FAILURE in case.observed and (what := _failed(last)):
        yield (
            f"The same failure came back. Look at {what} itself: it may expect something else than "
            "this issue asks for."
        )
    if any(map(is_same_change, case.observed)):
        yield (
            "Nearly the same change was made again; say in `/mulligan fix:` what to do "
            "differently, or more attempts will end alike."
        )


def _failed(last: WorkerResultMeta) -> str:
    red = failing(last.checks)
    tests = [finding.name for check in red for finding in check.findings if finding.test_id]
    return _named(tests or [check.name for check in red])


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - MAX_NAMED
    shown = [code(name) for name in names[:MAX_NAMED]]
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)


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

AFTER_REVIEWS = Advice(
    "Changes are requested once more, and the rounds of review are used up. Please say what is "
    "still missing.",
    (
        "Say it in one `/mulligan fix:`; the agent is given that before everything else.",
        "Or finish it on the pull request's branch yourself: commits of others are kept.",
        "For more rounds, raise `review.rounds` in `.github/mulligan.yml`.",
    ),
)

CI_FAILED_ADVICE = Advice(
    "The pull request fails checks on GitHub, and the attempts at them are used up. Please look at "
    "these checks.",
    (
        "If it fails without this change too, run it again, or mend it; then go on reviewing.",
        "If the change is to blame, say in `/mulligan fix:` what it has to do differently.",
    ),
)

CHECKS_FAILED_ADVICE = Advice(
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

AGENT_KILLED_ADVICE = Advice(
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

INFRASTRUCTURE_ADVICE = Advice(
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

INTERRUPTED_ADVICE = Advice(
    "Mulligan itself was cut off again and again during this issue. Please see why.",
    (
        "Look at the log of the machine that runs it: was it out of memory, or restarted?",
        "Check whether this issue makes the agent use up the machine.",
        OR_ANOTHER,
    ),
)

OVER_BUDGET_ADVICE = Advice(
    "A budget is used up by this issue. Please decide whether it is worth more.",
    (
        "If it is worth more, have whoever runs Mulligan here raise the budget that is named.",
        "If it is not worth more, split it, or do it yourself.",
    ),
)

DEFAULT_ADVICE = Advice("Please decide how to go on.", ("Read what happened, above.",))

ADVICE: Mapping[Outcome, Advice] = {
    Outcome.SUCCEEDED: UNPUBLISHED,
    Outcome.CHECKS_FAILED: CHECKS_FAILED_ADVICE,
    Outcome.ZERO_COMMIT: NOTHING_CHANGED,
    Outcome.ZERO_DIFF: NOTHING_CHANGED,
    Outcome.SCOPE_VIOLATION: OUT_OF_SCOPE,
    Outcome.REJECTED: REJECTED,
    Outcome.AGENT_TIMED_OUT: OUT_OF_TIME,
    Outcome.AGENT_CRASHED: CRASHED,
    Outcome.BLOCKED: BLOCKED,
    Outcome.NOTHING_TO_DO: DONE_ALREADY,
    Outcome.INFRASTRUCTURE: INFRASTRUCTURE_ADVICE,
    Outcome.MISCONFIGURED: SET_UP,
    Outcome.DENIED: ACCESS,
    Outcome.INTERRUPTED: INTERRUPTED_ADVICE,
    Outcome.OVER_BUDGET: OVER_BUDGET_ADVICE,
    Outcome.CANCELLED: DEFAULT_ADVICE,
}
"""By how the last attempt ended; a test sees that none is left out."""

ON_NO_CHANGE: Mapping[ZeroKind, Advice] = {
    ZeroKind.CUT_OFF: AGENT_KILLED_ADVICE,
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


def escalation_marker(ref: IssueRef, epoch: int) -> str:
    """Write the invisible line of the one escalation comment of an epoch."""
    return marker("hitl", ref, f"epoch={epoch}")


def escalation_comment(case: IssueContext, escalation: Escalation) -> str:
    """Ask for help, in the order of SPEC H2."""
    ref, last = case.issue.ref, case.epoch_history[-1] if case.epoch_history else None
    advice = _advice(case, last)
    mentions = " ".join(f"@{name.removeprefix('@')}" for name in escalation.mention)
    return body(
        escalation_marker(ref, case.status.epochs),
        f"{mentions} **Mulligan needs a person here.** {advice.ask}".lstrip(),
        f"Issue #{ref.number} · attempts used: {attempts_used(case)} · spent: {spending_line(case)}"
        f"{_pull_request(case)}",
        "### Failure summary",
        _summary(case),
        "### Attempt history",
        attempts_table(case) or "No attempt was made.",
        "### Last failure",
        last_failure(case, last),
        "### Files touched by the last attempt",
        _files(case, last),
        "### Observed patterns",
        _items([defuse(one_line(without_advice(seen), 300)) for seen in case.observed]) or "None.",
        "### Suggested actions",
        _items(_actions(case, advice)),
        "### Your options",
        "A comment that begins with one of these is obeyed; any other starts nothing.",
        _items(_options(case, last)),
        _by_hand(case),
    )


def _pull_request(case: IssueContext) -> str:
    number = case.status.pull_number
    return f" · pull request #{number}" if number else ""


def _advice(case: IssueContext, last: WorkerResultMeta | None) -> Advice:
    """Tell verified work that could not be published from a pull request that came back."""
    if last is None:
        return NO_ATTEMPT
    if last.outcome is not Outcome.SUCCEEDED:
        return advice_on(last)
    if _is_unpublished(case):
        return UNPUBLISHED
    back = case.status.feedback
    return CI_FAILED_ADVICE if back and back.checks else AFTER_REVIEWS


def _is_unpublished(case: IssueContext) -> bool:
    return case.status.is_kept or case.status.outcome is Outcome.SUCCEEDED


def _summary(case: IssueContext) -> str:
    return defuse(one_line(case.status.reason, REASON_CHARS)) or "Nothing is known."


def last_failure(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Show what failed, word for word: red checks, broken rules, or the reason as recorded."""
    if last is None or last.outcome is Outcome.SUCCEEDED:
        return body(*_failed_ci(case)) or code_block(_shortened(case.status.reason))
    red = failing(last.checks)
    if last.outcome is Outcome.CHECKS_FAILED and red:
        more = len(red) - SHOWN_CHECKS
        shown = [_digest(check) for check in red[:SHOWN_CHECKS]]
        return body(*shown, f"(+ {pluralize(more, 'failing check')})" if more > 0 else "")
    if last.guard_violations:
        return code_block(_shortened("\n".join(broken.message for broken in last.guard_violations)))
    text = explain(last.outcome, last.failure_reason or last.error)
    if last.outcome is Outcome.REJECTED and last.verifier_feedback:
        text = f"{text}\n\n{last.verifier_feedback}"
    return code_block(_shortened(text))


def _failed_ci(case: IssueContext) -> Sequence[str]:
    """Show what the checks printed that failed on GitHub, where that is what came back."""
    back = case.status.feedback
    if back is None or _is_unpublished(case):
        return ()
    return tuple(
        body(
            f"{code(check.name, 100)} failed on GitHub.",
            code_block(_shortened(check.digest) or "(it is not known what it printed)"),
        )
        for check in back.checks[:SHOWN_CHECKS]
    )


def _digest(check: CheckResult) -> str:
    shown = _shortened(check.digest) or "(it printed nothing)"
    return body(defuse(verdict(check)), code_block(shown))


def _shortened(text: str) -> str:
    shown = visible(text).strip()
    if len(shown) <= DIGEST_CHARS:
        return shown
    return f"{shown[:DIGEST_CHARS]}\n[... {len(shown) - DIGEST_CHARS} characters omitted]"


def _files(case: IssueContext, last: WorkerResultMeta | None) -> str:
    files = last.files_modified if last else ()
    if not files:
        return body("None.", _drafted(case, last))
    more = len(files) - SHOWN_FILES
    lines = [file_line(file) for file in files[:SHOWN_FILES]]
    listed = "\n".join([*lines, f"- (+ {more} more)"] if more > 0 else lines)
    whole = f"The whole diff: `mulligan inspect {case.issue.ref} --diff`"
    return body(listed, whole, _drafted(case, last), _fetching(case, last))


def _drafted(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Say where the work is shown as a draft, or why it is not (SPEC H3)."""
    if case.no_draft:
        why = defuse(one_line(case.no_draft, REASON_CHARS))
        return f"It could not be shown as a draft pull request: {why}"
    shown, url = case.status.draft_of, case.status.pull_request
    if not shown or not url:
        return ""
    where = f"and **is not verified**: {one_line(url, 300)}"
    if last and shown == last.number:
        return f"This work is shown as a draft pull request, {where}"
    return f"The work of an earlier attempt stands in the pull request, {where}"


def _fetching(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Say how to get the work, where it was pushed (SPEC H3)."""
    pushed = case.status.effect(PUSHED_WORK, str(last.number)) if last else None
    if not pushed:
        return ""
    commands = f"git fetch origin {pushed}\ngit switch --detach FETCH_HEAD"
    return body("To look at the work:", code_block(commands))


def _actions(case: IssueContext, advice: Advice) -> Sequence[str]:
    """Give the fix that the decision names, what the attempts show, and what helps in general."""
    decision = case.status.decision
    named = decision.fix if isinstance(decision, Escalate) else ""
    general = [action.replace("{issue}", str(case.issue.ref)) for action in advice.actions]
    first = [defuse(one_line(named, REASON_CHARS))] if named else []
    return [*first, *attempt_actions(case), *general]


def _options(case: IssueContext, last: WorkerResultMeta | None) -> Sequence[str]:
    """Give the commands, the likeliest first."""
    label = code(case.ready_label)
    more = f"that gives {pluralize(case.max_attempts, 'new attempt')}"
    guided = f"`/mulligan fix: <what to do>` tries again, and follows your words; {more}."
    same = f"The label {label} does the same."
    left = "`/mulligan skip [reason]` leaves the issue alone; so does closing it."
    if _is_unpublished(case):
        again = "`/mulligan retry`, once what is in the way is mended, publishes the work."
        return f"{again} {same}", guided, left
    if last and last.outcome in TO_BE_MENDED:
        return f"`/mulligan retry`, once it is mended, tries again; {more}. {same}", guided, left
    return guided, f"`/mulligan retry` tries again as it stands; {more}. {same}", left


def _by_hand(case: IssueContext) -> str:
    if not case.status.draft_of:
        return "Or do it yourself: nothing more happens here until somebody asks for it."
    return (
        f"Or finish it yourself: commit to {code(case.issue.ref.branch)}, and mark the draft as "
        "ready for review. Closing the draft leaves the issue alone."
    )


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
