"""Build the comment that asks for human review, with the advice for each outcome. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mulligan.config.policy import Escalation
from mulligan.domain.attempt import TimeLimit
from mulligan.domain.events import Remark
from mulligan.domain.feedback import describe_failed_checks
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext, PatternKind
from mulligan.domain.outcome import Escalate, Outcome, ZeroKind
from mulligan.domain.recorded_effects import WorkPushed
from mulligan.domain.result import CheckResult, GuardKind, OnBase, WorkerResultMeta
from mulligan.github.answered import REQUEST, WAITING
from mulligan.github.markdown_parts import (
    USAGE,
    attempts_list,
    attempts_used,
    baseline_and_flaky_notes,
    body,
    failure_text,
    file_line,
    missed_line,
    spending_line,
    verification,
)
from mulligan.github.marks import enclosed, marker
from mulligan.implement.prompt.outcome_text import (
    broken,
    explain,
    failing,
    named_failures,
    pluralize,
    verdict,
)
from mulligan.implement.prompt.patterns import drift
from mulligan.text.escape import code_block, one_line, visible
from mulligan.text.foreign import address, code, output, phrase, quoted, sentence

MAX_NAMED = 3

WIDEN = "To allow changes of {}, widen `scope` in `.github/mulligan.yml` on the base branch."

ON_GUARDS: Mapping[GuardKind, str] = {
    GuardKind.SCOPE: WIDEN,
    GuardKind.PROTECTED: (
        "To change {}, change it yourself, or remove its kind from `scope.protect` in "
        "`.github/mulligan.yml`. Such files control what runs in this repository."
    ),
    GuardKind.SIZE: (
        "To allow a change of this size ({}), raise the limit under `scope` in "
        "`.github/mulligan.yml`. Otherwise split the issue."
    ),
    GuardKind.LINK: "To add the link {}, create it yourself: an agent's link could lead anywhere.",
    GuardKind.SUBMODULE: "To change {}, change the submodule yourself; agents must not.",
    GuardKind.LFS: "To add or change {}, use `git lfs` yourself: Mulligan cannot upload to it.",
    GuardKind.SET_UP: (
        "To track {}, commit it yourself: the setup commands make it, and checks rely on that."
    ),
    GuardKind.DELETED_TEST: (
        "To allow deleted tests in {}, set `scope.allow_deleted_tests` in `.github/mulligan.yml`."
    ),
    GuardKind.SKIPPED_TEST: (
        "To allow skipped tests in {}, set `scope.allow_skipped_tests` in `.github/mulligan.yml`."
    ),
    GuardKind.SECRET: (
        "Check {}: if it contains a real secret, find out how the agent got it, and renew it. If "
        "it does not, add the file to `scope.allow_secrets`."
    ),
}
"""The maintainer's choices, by broken rule; `{}` stands for the files."""

ON_TIME: Mapping[str, str] = {
    TimeLimit.TIMEOUT: (
        "It reached `agent.timeout` in `mulligan.yml`. Split the issue, or raise the limit."
    ),
    TimeLimit.STALL_TIMEOUT: (
        "It printed nothing for `agent.stall_timeout` in `mulligan.yml`. It may have waited for "
        "an answer, a download or a long test run."
    ),
    TimeLimit.BUDGET: (
        "It used up `budget.attempt` in `mulligan.yml`. Split the issue, or raise the budget."
    ),
    TimeLimit.DISK: (
        "It filled the disk of Mulligan's machine with its own files. If the work needs so much, "
        "give `workspace.root` a larger disk."
    ),
}
"""The limit that stopped an agent, by recorded reason; any other reason is the agent's own."""

OWN_LIMIT = (
    "The agent reached its own limit of turns or cost. Raise it in `agent.arguments` in "
    "`mulligan.yml`, or split the issue."
)

NO_CHECKS = (
    "No checks are configured, so the agent cannot tell whether it is done. Add `checks` to "
    "`.github/mulligan.yml`."
)

FIX_FIRST = "First fix the check that cannot run on the base branch either: {}."

WHOLE_SET_UP = (
    "The setup commands fail on this change, so no check ran. For their whole output, run "
    "`mulligan inspect {} --log setup` where Mulligan runs."
)

OR_ANOTHER = "If you cannot do that, ask the operator of Mulligan."

ON_CHECKS = frozenset({Outcome.CHECKS_FAILED, Outcome.MISCONFIGURED})
"""Outcomes that a check may have caused."""

MAX_ACTIONS = 3
"""Limit of suggested actions; those from the attempts are all shown, and at least one other."""

SHOWN_CHECKS = 3

SHOWN_FILES = 20

SHOWN_REMARKS = 5

MAX_FOLDED = 40_000
"""Characters of the folded part; the rest of the comment needs up to 20,000."""

WORDS_CHARS = 600

LINE_CHARS = 300

DIGEST_CHARS = 6000

REASON_CHARS = 1000

TO_BE_FIXED = frozenset(
    {
        Outcome.DENIED,
        Outcome.MISCONFIGURED,
        Outcome.INFRASTRUCTURE,
        Outcome.INTERRUPTED,
        Outcome.OVER_BUDGET,
        Outcome.AGENT_CRASHED,
    }
)
"""Outcomes that need no new instruction for the agent once their cause is fixed."""


def attempt_actions(case: IssueContext) -> Iterator[str]:
    """Yield suggestions from the attempts, the most useful first (ESCALATION-2)."""
    last = case.epoch_history[-1] if case.epoch_history else None
    if last is None:
        return
    yield from _on_guards(last)
    yield from _on_the_ending(last)
    yield from _on_repetition(case, last)
    if drift(case.epoch_history):
        yield (
            "The last two attempts changed entirely different files, so the task may be unclear. "
            "Say where the change belongs."
        )
    if not case.verifies:
        yield NO_CHECKS


def _on_guards(last: WorkerResultMeta) -> Iterator[str]:
    """Yield the choice to make for each broken rule, with the files."""
    for kind, words in ON_GUARDS.items():
        broken = [each for each in last.guard_violations if each.kind is kind]
        wanted = [each.path or each.message.rstrip(".") for each in broken]
        if wanted:
            yield words.format(_named(list(dict.fromkeys(wanted))))


def _on_the_ending(last: WorkerResultMeta) -> Iterator[str]:
    """Yield the limit or the setup command that ended the attempt."""
    agent = last.agent
    if last.outcome is Outcome.AGENT_TIMED_OUT and agent:
        yield ON_TIME.get(agent.stop_reason or "", OWN_LIMIT)
        if agent.last_activity:
            yield f"Its last activity: {code(agent.last_activity, 150)}."
    stuck = broken(last.checks)
    if stuck and last.outcome is Outcome.CHECKS_FAILED:
        yield FIX_FIRST.format(_named([check.name for check in stuck]))
    late = [check.name for check in (*stuck, *failing(last.checks)) if check.timed_out]
    if late:
        slow = "is slow, raise its" if len(late) == 1 else "are slow, raise their"
        yield f"If {_named(late)} {slow} `timeout` in `.github/mulligan.yml`."
    if any(check.is_set_up for check in failing(last.checks)):
        yield WHOLE_SET_UP.format(last.issue)
    if agent and agent.refused_hosts:
        hosts, it = _named(agent.refused_hosts), "it" if len(agent.refused_hosts) == 1 else "them"
        yield f"The sandbox blocked {hosts}. To allow access, add {it} to `sandbox.hosts`."


def _on_repetition(case: IssueContext, last: WorkerResultMeta) -> Iterator[str]:
    observed = {each.kind for each in case.observed}
    if PatternKind.SAME_FAILURE in observed and (what := _failed(last)):
        yield (
            f"The same failure occurred again. Check {what} itself: it may expect something other "
            "than this issue asks for."
        )
    if PatternKind.SAME_CHANGE in observed:
        yield (
            "Two attempts made nearly the same change. Say in `/mulligan fix:` what to do "
            "differently."
        )


def _failed(last: WorkerResultMeta) -> str:
    return _named(_tests(last) or [check.name for check in failing(last.checks)])


def _tests(last: WorkerResultMeta) -> list[str]:
    """Return the names of the failing tests, each once."""
    found = [each for check in failing(last.checks) for each in check.findings if each.test_id]
    return list(dict.fromkeys(finding.name for finding in found))


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - MAX_NAMED
    shown = [code(name) for name in names[:MAX_NAMED]]
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)


@dataclass(frozen=True, slots=True)
class Advice:
    """The request to the maintainer, and the suggested actions, most helpful first.

    `{issue}` in an action stands for the issue's name. `fix` is what an instruction should say.
    """

    ask: str
    actions: tuple[str, ...]
    fix: str = "what to do"


ANSWER_HERE = "Answer in a comment: `/mulligan fix: <your answer>`. A plain comment starts nothing."

UNPUBLISHED = Advice(
    "The work is finished, but Mulligan could not publish it. Please remove the obstacle.",
    ("Fix what is named above, for example a missing permission or a rule that forbids it.",),
)

NO_ATTEMPT = Advice("Mulligan could not make an attempt.", ("Fix the problem above.",))

AFTER_REVIEWS = Advice(
    "The review asks for more changes, but no review round is left. Please say what is missing.",
    (
        "Say it in one `/mulligan fix:` comment. The next prompt begins with it.",
        "Finish it on the pull request's branch yourself. Mulligan keeps your commits.",
        "For more rounds, raise `review.rounds` in `.github/mulligan.yml`.",
    ),
)

CI_FAILED_ADVICE = Advice(
    "Checks of the pull request fail on GitHub, and no attempt is left. Please review them.",
    (
        (
            "If a check fails without this change too, fix it or run it again, then continue the "
            "review."
        ),
        "If the change causes the failure, say in `/mulligan fix:` what to do differently.",
    ),
)

READ_FAILURE = "Read the last failure: does the check also fail without the change?"

DISAGREE = "If the tests and the issue disagree, say which one is right."

CI_CHANGED_NOTHING = Advice(
    "The agent changed nothing for the checks that fail on GitHub. Please review them.",
    CI_FAILED_ADVICE.actions,
)

CHECKS_FAILED_ADVICE = Advice(
    "The change does not pass the checks. Please decide how to continue.",
    (
        READ_FAILURE,
        DISAGREE,
        "Otherwise add details: where to change what, an example, what must not change.",
    ),
    fix="what to do differently",
)

NOTHING_CHANGED = Advice(
    "The agent changed nothing. Please check that the issue says what to change.",
    (
        "If the work is already done, or the issue is a question, close the issue.",
        "If the text is unclear, say what should change, and where.",
    ),
    fix="what to change, and where",
)

NO_DIFFERENCE = Advice(
    "The agent's commits change no file. Please check that the issue says what to change.",
    NOTHING_CHANGED.actions,
    NOTHING_CHANGED.fix,
)

REVIEW_CHANGED_NOTHING = Advice(
    "The agent changed nothing for the review. Please decide how to continue.",
    (
        "If the pull request is good as it is, merge it.",
        "If the review is right, say what should change, and where.",
    ),
    fix="what to change, and where",
)

AGENT_KILLED_ADVICE = Advice(
    "The agent was killed before its first change. Please find the cause.",
    (
        "Check the log of the machine that runs it: was it out of memory?",
        "See its last output: `mulligan inspect {issue} --log`.",
        OR_ANOTHER,
    ),
)

QUESTION = Advice(
    "The agent asked a question and changed nothing. Please answer it.",
    (
        ANSWER_HERE,
        "If the agent only waited for permission, configure it to work without asking.",
    ),
    fix="your answer",
)

ONLY_IGNORED = Advice(
    "The agent wrote only files that git ignores or tools leave. Please say what to change.",
    (
        "Say in the issue which files should be different afterwards.",
        "If an ignored file belongs in the repository, remove it from `.gitignore`.",
    ),
)

NESTED = Advice(
    "The agent worked in a copy of the repository. Please tell it to work in place.",
    (
        "If a file such as `AGENTS.md` asks for a worktree or a clone, remove that from it.",
        "If the files belong in the repository, ask in `/mulligan fix:` to delete their `.git`.",
    ),
)

NOT_CHECKED_OUT = Advice(
    "The agent left its work on another branch or in a stash. Please tell it to work in place.",
    ("If a file such as `AGENTS.md` asks for a new branch, remove that from it.", OR_ANOTHER),
)

OUT_OF_SCOPE = Advice(
    "The agent changed files that it must not change. Please change the rule or the task.",
    ("If the rule is right, say which files to change instead.",),
    fix="which files to change",
)

REJECTED = Advice(
    "The reviewer command rejected the change. Please decide who is right.",
    (
        "If the feedback above is right, say how to follow it.",
        "If it is wrong, fix or switch off `reviewer` in `.github/mulligan.yml`.",
    ),
)

OUT_OF_TIME = Advice(
    "The agent reached a limit. Please make the task smaller, or raise the limit.",
    (
        "Say where to look, so that the agent has less to search.",
        "Check in the log whether it waited for something: `mulligan inspect {issue} --log`.",
    ),
    fix="where to look",
)

CRASHED = Advice(
    "The agent's program failed. Please check that it runs.",
    (
        "Run the agent by hand on the machine that runs Mulligan: is it logged in and up to date?",
        "Read its log: `mulligan inspect {issue} --log`.",
        OR_ANOTHER,
    ),
)

BLOCKED = Advice(
    "The agent cannot continue without you. Please answer it.",
    (
        ANSWER_HERE,
        "If it lacks access or a tool, provide it, then write `/mulligan retry`.",
    ),
    fix="your answer",
)

DONE_ALREADY = Advice(
    "The agent reports that there is nothing to do. Please check whether it is right.",
    (
        "If it is right, close the issue.",
        "If it is wrong, say how to see what is missing.",
    ),
    fix="how to see what is missing",
)

INFRASTRUCTURE_ADVICE = Advice(
    "The environment failed, not the agent. Please fix it.",
    (
        "If the problem is over, for example a server is back, write `/mulligan retry`.",
        "Otherwise ask the operator of Mulligan to run `mulligan doctor`.",
    ),
)

SET_UP = Advice(
    "Mulligan's setup is incomplete. Please fix it.",
    (
        "Fix it as described above. The repository's settings are in `.github/mulligan.yml`.",
        f"{OR_ANOTHER} `mulligan doctor` shows whether it is fixed.",
    ),
)

BROKEN_CHECK = Advice(
    "Please fix the check.",
    (
        "Run the checks as an attempt does, in a clone of the base branch: `mulligan check`.",
        (
            "If a program is missing, install it in `setup` in `.github/mulligan.yml`, or change "
            "the check's `run`."
        ),
    ),
)

NO_VERDICT = Advice(
    "The reviewer command gave no verdict, so nobody has reviewed the change. Please fix it.",
    (
        "Fix `reviewer` in `.github/mulligan.yml`. The repository's checks accept the change.",
        "It runs on the base branch; the changed files are in the directory `$MULLIGAN_CHANGE`.",
        "If it needs a host, list that in `reviewer.hosts`.",
    ),
)

SET_UP_COMMAND = Advice(
    "A setup command failed, not the agent. Please fix it.",
    (
        "Read the end of its output below, under *Last failure*.",
        "If the command is wrong, change `setup` in `.github/mulligan.yml` on the base branch.",
        "If the problem is over, for example a server is back, write `/mulligan retry`.",
        "If the machine lacks something that the command needs, ask the operator of Mulligan.",
    ),
)

ACCESS = Advice(
    "A server refused access. Please give the missing permission.",
    (
        "Renew the credential that is named above, or give it the missing permission.",
        OR_ANOTHER,
    ),
)

INTERRUPTED_ADVICE = Advice(
    "Mulligan crashed repeatedly during this issue. Please find the cause.",
    (
        "Check the log of the machine that runs it: was it out of memory, or restarted?",
        "Check whether this issue makes the agent use up the machine.",
        OR_ANOTHER,
    ),
)

OVER_BUDGET_ADVICE = Advice(
    "This issue has used up a budget. Please decide whether it is worth more.",
    (
        "If it is, ask the operator of Mulligan to raise the budget.",
        "If it is not, split the issue, or do it yourself.",
    ),
)

DEFAULT_ADVICE = Advice("Please decide how to continue.", ("Read the summary above.",))

ADVICE: Mapping[Outcome, Advice] = {
    Outcome.SUCCEEDED: UNPUBLISHED,
    Outcome.CHECKS_FAILED: CHECKS_FAILED_ADVICE,
    Outcome.ZERO_COMMIT: NOTHING_CHANGED,
    Outcome.ZERO_DIFF: NO_DIFFERENCE,
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
"""Advice by outcome of the last attempt; a test checks that every outcome has an entry."""

ON_NO_CHANGE: Mapping[ZeroKind, Advice] = {
    ZeroKind.KILLED: AGENT_KILLED_ADVICE,
    ZeroKind.ASKED: QUESTION,
    ZeroKind.NESTED: NESTED,
    ZeroKind.NOT_CHECKED_OUT: NOT_CHECKED_OUT,
    ZeroKind.ONLY_IGNORED: ONLY_IGNORED,
}
"""Advice by cause of an empty change, if the cause says more than the outcome."""


def advice_on(last: WorkerResultMeta) -> Advice:
    """Return the advice for an attempt."""
    if last.set_up:
        return SET_UP_COMMAND
    if last.outcome is Outcome.MISCONFIGURED and broken(last.checks):
        return BROKEN_CHECK
    if last.unreviewed:
        return NO_VERDICT
    general = ADVICE[last.outcome]
    if last.zero_kind is None or last.outcome is Outcome.AGENT_TIMED_OUT:
        return general
    return ON_NO_CHANGE.get(last.zero_kind, general)


def escalation_marker(ref: IssueRef, epoch: int) -> str:
    """Return the marker of the one escalation comment of an epoch."""
    return marker("hitl", ref, f"epoch={epoch}")


def escalation_comment(case: IssueContext, escalation: Escalation) -> str:
    """Build the escalation comment: cause, suggestions, options, folded history (ESCALATION-2).

    Omit parts without content.
    """
    last = case.epoch_history[-1] if case.epoch_history else None
    advice = _advice(case, last)
    mentions = " ".join(f"@{name.removeprefix('@')}" for name in escalation.mention)
    request = f"{mentions} **This issue needs human review.** {_stuck(last)}{advice.ask}".lstrip()
    return body(
        escalation_marker(case.issue.ref, case.status.epochs),
        enclosed(REQUEST, case.issue.ref, request),
        "### Failure summary",
        _summary(case, last),
        "### Suggested actions",
        _items(_actions(case, advice)),
        "### Your options",
        "Begin a comment with one of these commands. Other comments start nothing.",
        _items(_options(case, last, advice)),
        _by_hand(case),
        _folded(case, last),
    )


def _stuck(last: WorkerResultMeta | None) -> str:
    """Name the checks that cannot run on the base branch either."""
    checks = broken(last.checks) if last and last.outcome in ON_CHECKS else ()
    return "".join(f"{phrase(verdict(check), REASON_CHARS)} " for check in checks)


def _summary(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Return the cause, the failing tests, and what the agent, reviewer or review said."""
    reason = phrase(case.status.reason, REASON_CHARS) or "It is unknown."
    return body(
        f"**Cause:** {reason}",
        _failing_tests(last),
        _on_base(last),
        verification(last) if _is_unpublished(case) else "",
        _failed_on_github(case),
        _last_words(case, last),
        _last_line_said(last),
        _feedback_of_reviewer(last),
        _review(case),
        missed_line(case),
        _shared_work(case, last),
        f"Attempts used: {attempts_used(case)} · spent: {spending_line(case)}{_pull_request(case)}",
    )


def _failing_tests(last: WorkerResultMeta | None) -> str:
    """Name what failed in the last attempt: one test with its message, or several tests."""
    tests = _tests(last) if last and last.outcome is Outcome.CHECKS_FAILED else []
    if len(tests) > 1:
        return f"Failing tests: {_named(tests)}"
    failures = named_failures(last) if last else ()
    shown = "; ".join(map(failure_text, failures))
    return f"Failing test: {shown}" if tests else f"First failure: {shown}" if shown else ""


def _on_base(last: WorkerResultMeta | None) -> str:
    """Name the failing checks that fail on the base branch too, and their failures there."""
    if last is None or last.outcome is not Outcome.CHECKS_FAILED:
        return ""
    names = [check.name for check in failing(last.checks) if check.on_base is OnBase.FAILS]
    checks = f"check {_named(names)} fails" if len(names) == 1 else f"checks {_named(names)} fail"
    counted = "A failure counts unless Mulligan finds the same one there."
    text = f"The {checks} on the base branch too. {counted}" if names else ""
    return body(text, baseline_and_flaky_notes(last))


def _failed_on_github(case: IssueContext) -> str:
    """Name the checks that the work was for, unless the reason names them."""
    back = case.status.feedback
    is_named = back and all(check.name in case.status.reason for check in back.checks)
    return "" if is_named else sentence(describe_failed_checks(back))


def _last_words(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Quote the agent's last message if it changed nothing and the cause does not include it."""
    silent = {Outcome.ZERO_COMMIT, Outcome.ZERO_DIFF, Outcome.AGENT_CRASHED}
    if last is None or last.outcome not in silent or last.zero_kind is ZeroKind.ASKED:
        return ""
    words = visible(last.agent_summary).strip()
    if not words or one_line(words, REASON_CHARS) in case.status.reason:
        return ""
    shown = words if len(words) <= WORDS_CHARS else f"{words[:WORDS_CHARS].rstrip()}…"
    return f"The agent's last message:\n\n{quoted(shown)}"


HAS_CHANGED = frozenset({Outcome.CHECKS_FAILED, Outcome.REJECTED, Outcome.SCOPE_VIOLATION})
"""Outcomes of a change that was refused; the agent's last line may give the reason for it."""


def _last_line_said(last: WorkerResultMeta | None) -> str:
    """Quote the last line of an agent whose change was refused."""
    line = _last_line(last) if last and last.outcome in HAS_CHANGED else ""
    return f"The agent ended with:\n\n{quoted(one_line(line, LINE_CHARS))}" if line else ""


def _last_line(last: WorkerResultMeta) -> str:
    """Return the last line of the agent's last message."""
    return visible(last.agent_summary).strip().rpartition("\n")[2].strip()


def _asks(last: WorkerResultMeta) -> bool:
    """Return whether the agent's last message ends with a question."""
    return _last_line(last).rstrip("*_`\"') ").endswith("?")


def _feedback_of_reviewer(last: WorkerResultMeta | None) -> str:
    if last is None or last.outcome is not Outcome.REJECTED or not last.verifier_feedback:
        return ""
    return f"The reviewer's feedback:\n\n{quoted(last.verifier_feedback)}"


def _review(case: IssueContext) -> str:
    """Quote the review that is still open."""
    back = case.status.feedback
    remarks = back.remarks if back else ()
    shown = [_remark(each) for each in remarks[:SHOWN_REMARKS]]
    more = len(remarks) - SHOWN_REMARKS
    return body(*shown, f"(+ {pluralize(more, 'comment')} in the review)" if more > 0 else "")


def _remark(remark: Remark) -> str:
    line = f":{remark.line}" if remark.line else ""
    place = f" on {code(f'{remark.path}{line}', 150)}" if remark.path else ""
    words = quoted(one_line(remark.body, WORDS_CHARS))
    return f"The review by {code(remark.author, 50)}{place}:\n\n{words}" if words else ""


def _pull_request(case: IssueContext) -> str:
    number = case.status.pull.number
    return f" · pull request #{number}" if number else ""


def _advice(case: IssueContext, last: WorkerResultMeta | None) -> Advice:
    """Return advice on an open pull request or unpublished work, else by the last attempt."""
    if last is None:
        return NO_ATTEMPT
    back = case.status.feedback
    if last.outcome is not Outcome.SUCCEEDED:
        advice = advice_on(last)
        if back is None or advice not in (NOTHING_CHANGED, NO_DIFFERENCE):
            return advice
        on_checks = CI_CHANGED_NOTHING if back.checks else advice
        return REVIEW_CHANGED_NOTHING if back.remarks else on_checks
    if _is_unpublished(case):
        return UNPUBLISHED
    return CI_FAILED_ADVICE if back and back.checks else AFTER_REVIEWS


def _is_unpublished(case: IssueContext) -> bool:
    return case.status.is_kept or case.status.outcome is Outcome.SUCCEEDED


# The folded part.


def _folded(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Return the history, the output and the changed files in a folded section."""
    known = {PatternKind.SAME_FAILURE, PatternKind.SAME_OUTCOME}
    patterns = [phrase(each.text, 300) for each in case.observed if each.kind not in known]
    sections = (
        ("All commands", USAGE),
        ("Attempt history", attempts_list(case) or "Mulligan made no attempt."),
        ("Last failure", failure_output(case, last)),
        ("Files changed by the last attempt", _files(case, last)),
        ("Observed patterns", _items(patterns)),
    )
    shown, size = list[str](), 0
    for heading, content in sections:
        size += len(content)
        if content and size <= MAX_FOLDED:
            shown.append(f"### {heading}\n\n{content}")
    summary = "<summary>All commands, attempts, output and files</summary>"
    return body(f"<details>\n{summary}", *shown, "</details>")


def failure_output(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Return the output of the failing checks, here or on GitHub; empty if no check failed."""
    if last is None or last.outcome is Outcome.SUCCEEDED:
        return body(*_failed_ci(case))
    if last.set_up:
        return set_up_output(last.set_up)
    red = (*broken(last.checks), *failing(last.checks)) if last.outcome in ON_CHECKS else ()
    more = len(red) - SHOWN_CHECKS
    shown = [_digest(check) for check in red[:SHOWN_CHECKS]]
    left = f"(+ {pluralize(more, 'failing check')})" if more > 0 else ""
    return body(*shown, left, *_failed_ci(case))


def set_up_output(failed: CheckResult) -> str:
    """Return the end of the output of a failed setup command."""
    return body(f"The end of the output of {code(failed.command, 80)}:", _block(failed))


def last_failure(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Return the output of the failing checks, or else the recorded reason, for the draft."""
    if shown := failure_output(case, last):
        return shown
    text = explain(last.outcome, last.failure_reason or last.error) if last else case.status.reason
    if last and last.outcome is Outcome.REJECTED and last.verifier_feedback:
        text = f"{text}\n\n{last.verifier_feedback}"
    return output(_shortened(text))


def _failed_ci(case: IssueContext) -> Sequence[str]:
    """Return the output of the checks that failed on GitHub, if they are the feedback."""
    back = case.status.feedback
    if back is None or _is_unpublished(case):
        return ()
    return tuple(
        body(
            f"Output of {code(check.name, 100)} on GitHub:",
            output(_shortened(check.digest) or "(output unknown)"),
        )
        for check in back.checks[:SHOWN_CHECKS]
    )


def _digest(check: CheckResult) -> str:
    return body(f"Output of {code(check.name, 100)}:", _block(check))


def _block(check: CheckResult) -> str:
    return output(_shortened(check.digest) or "(no output)")


def _shortened(text: str) -> str:
    shown = visible(text).strip()
    if len(shown) <= DIGEST_CHARS:
        return shown
    return f"{shown[:DIGEST_CHARS]}\n[... {len(shown) - DIGEST_CHARS} characters omitted]"


def _files(case: IssueContext, last: WorkerResultMeta | None) -> str:
    files = last.files_modified if last else ()
    if not files:
        return ""
    more = len(files) - SHOWN_FILES
    lines = [file_line(file) for file in files[:SHOWN_FILES]]
    listed = "\n".join([*lines, f"- (+ {more} more)"] if more > 0 else lines)
    return body(
        listed, f"The whole diff, where Mulligan runs: `mulligan inspect {case.issue.ref} --diff`"
    )


def _shared_work(case: IssueContext, last: WorkerResultMeta | None) -> str:
    return body(_drafted(case, last), _fetching(case, last))


def _drafted(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Return a link to the draft of the work, or the reason why there is none (ESCALATION-3)."""
    if case.no_draft:
        why = phrase(case.no_draft, REASON_CHARS)
        return f"Mulligan could not open a draft pull request: {why}"
    shown, url = case.status.pull.draft_of, case.status.pull.url
    if not shown or not url:
        return ""
    whose = "The work" if last and shown == last.number else "The work of an earlier attempt"
    return f"{whose} is in a draft pull request, **not verified**: {address(url)}"


def _fetching(case: IssueContext, last: WorkerResultMeta | None) -> str:
    """Return the command that fetches the pushed work (ESCALATION-3)."""
    pushed = {each.attempt: each.git_ref for each in case.status.effects.all(WorkPushed)}
    if last is None or last.number not in pushed:
        return ""
    commands = f"git fetch origin {pushed[last.number]}\ngit switch --detach FETCH_HEAD"
    return body("To get the work of the last attempt:", code_block(commands))


# Suggested actions and options.


ANSWER_IT = "The agent's last message ends with a question. Please answer it."


def _actions(case: IssueContext, advice: Advice) -> Sequence[str]:
    """Return the fix from the decision, then suggestions from the attempts, then general advice."""
    decision = case.status.decision
    named = decision.fix if isinstance(decision, Escalate) else ""
    failed = failing(case.last.checks) if case.last else ()
    known = {READ_FAILURE} if failed and all(check.on_base for check in failed) else set[str]()
    known |= {DISAGREE} if any(check.is_set_up for check in failed) else set()
    issue = str(case.issue.ref)
    general = [each.replace("{issue}", issue) for each in advice.actions if each not in known]
    first = [
        *([phrase(named, REASON_CHARS)] if named else []),
        *([ANSWER_IT] if _has_question(case) else []),
        *attempt_actions(case),
    ]
    return [*first, *general[: max(1, MAX_ACTIONS - len(first))]]


def _has_question(case: IssueContext) -> bool:
    """Return whether the last attempt failed, and its agent's last line is a question."""
    last = case.epoch_history[-1] if case.epoch_history else None
    return last is not None and last.outcome in HAS_CHANGED and _asks(last)


def _options(case: IssueContext, last: WorkerResultMeta | None, advice: Advice) -> Sequence[str]:
    """Return the commands that fit the cause, the most likely first (ESCALATION-2)."""
    attempts = pluralize(case.max_attempts, "new attempt")
    follow = "follows" if case.max_attempts == 1 else "follow"
    fix = "your answer" if _has_question(case) else advice.fix
    guided = f"`/mulligan fix: <{fix}>` starts {attempts} that {follow} your instruction."
    same = f"Adding the label {code(case.ready_label)} again does the same."
    skip = "`/mulligan skip [reason]` stops the work. Closing the issue does the same."
    ends = _pull_request_option(case)
    if _is_unpublished(case):
        return f"`/mulligan retry` publishes the work, once the obstacle is removed. {same}", skip
    if last is None or last.outcome in TO_BE_FIXED:
        again = f"`/mulligan retry` starts {attempts}, once the problem is fixed. {same}"
        return again, *ends, skip
    if last.outcome is Outcome.NOTHING_TO_DO:
        return skip, *ends, guided
    if ends or _repeats(case):
        return guided, *ends, skip
    again = f"`/mulligan retry` starts {attempts} without a new instruction. {same}"
    return guided, again, skip


def _repeats(case: IssueContext) -> bool:
    """Return whether more of the same attempts would likely fail in the same way."""
    kinds = {each.kind for each in case.observed}
    return not kinds.isdisjoint({PatternKind.SAME_FAILURE, PatternKind.SAME_CHANGE})


def _pull_request_option(case: IssueContext) -> tuple[str, ...]:
    """Offer to merge or close the open pull request, unless it is a draft."""
    number = case.status.pull.number
    if not number or case.status.pull.draft_of:
        return ()
    return (f"Merge pull request #{number} as it is, or close it. Both end the work.",)


def _by_hand(case: IssueContext) -> str:
    if not case.status.pull.draft_of:
        waits = "Mulligan does nothing more until you choose one of these."
        return enclosed(WAITING, case.issue.ref, waits)
    return (
        f"Or finish it yourself: commit to {code(case.issue.ref.branch)}, and mark the draft as "
        "ready for review. To stop the work, close the draft."
    )


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
