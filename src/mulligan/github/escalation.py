"""The comment that hands an issue to a person, with all that is needed to answer it. Pure."""

from collections.abc import Sequence

from mulligan.config.policy import Escalation
from mulligan.domain.case import Case
from mulligan.domain.decision import Escalate
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import PUSHED_WORK
from mulligan.github.advice import (
    AFTER_REVIEWS,
    NO_ATTEMPT,
    RED_ON_GITHUB,
    UNPUBLISHED,
    Advice,
    advice_on,
)
from mulligan.github.parts import (
    attempts_table,
    attempts_used,
    body,
    code,
    file_line,
    marker,
    spent,
)
from mulligan.github.suggestions import suggestions
from mulligan.retry.patterns import told_to_people
from mulligan.retry.words import counted, explain, failing, verdict
from mulligan.text.escape import defuse, one_line, visible
from mulligan.text.fence import code_block

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


def escalation_marker(ref: IssueRef, epoch: int) -> str:
    """Write the invisible line of the one escalation comment of an epoch."""
    return marker("hitl", ref, f"epoch={epoch}")


def escalation_comment(case: Case, escalation: Escalation) -> str:
    """Ask for help, in the order of SPEC H2."""
    ref, last = case.issue.ref, case.epoch_history[-1] if case.epoch_history else None
    advice = _advice(case, last)
    mentions = " ".join(f"@{name.removeprefix('@')}" for name in escalation.mention)
    return body(
        escalation_marker(ref, case.status.epochs),
        f"{mentions} **Mulligan needs a person here.** {advice.ask}".lstrip(),
        f"Issue #{ref.number} · attempts used: {attempts_used(case)} · spent: {spent(case)}"
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
        _items([defuse(one_line(told_to_people(seen), 300)) for seen in case.observed]) or "None.",
        "### Suggested actions",
        _items(_actions(case, advice)),
        "### Your options",
        "A comment that begins with one of these is obeyed; any other starts nothing.",
        _items(_options(case, last)),
        _by_hand(case),
    )


def _pull_request(case: Case) -> str:
    number = case.status.pull_number
    return f" · pull request #{number}" if number else ""


def _advice(case: Case, last: WorkerResultMeta | None) -> Advice:
    """Tell verified work that could not be published from a pull request that came back."""
    if last is None:
        return NO_ATTEMPT
    if last.outcome is not Outcome.SUCCEEDED:
        return advice_on(last)
    if _is_unpublished(case):
        return UNPUBLISHED
    back = case.status.feedback
    return RED_ON_GITHUB if back and back.checks else AFTER_REVIEWS


def _is_unpublished(case: Case) -> bool:
    return case.status.is_kept or case.status.outcome is Outcome.SUCCEEDED


def _summary(case: Case) -> str:
    return defuse(one_line(case.status.reason, REASON_CHARS)) or "Nothing is known."


def last_failure(case: Case, last: WorkerResultMeta | None) -> str:
    """Show what failed, word for word: red checks, broken rules, or the reason as recorded."""
    if last is None or last.outcome is Outcome.SUCCEEDED:
        return body(*_red_on_github(case)) or code_block(_shortened(case.status.reason))
    red = failing(last.checks)
    if last.outcome is Outcome.CHECKS_FAILED and red:
        more = len(red) - SHOWN_CHECKS
        shown = [_digest(check) for check in red[:SHOWN_CHECKS]]
        return body(*shown, f"(+ {counted(more, 'failing check')})" if more > 0 else "")
    if last.guard_violations:
        return code_block(_shortened("\n".join(broken.message for broken in last.guard_violations)))
    told = explain(last.outcome, last.failure_reason or last.error)
    if last.outcome is Outcome.REJECTED and last.verifier_feedback:
        told = f"{told}\n\n{last.verifier_feedback}"
    return code_block(_shortened(told))


def _red_on_github(case: Case) -> Sequence[str]:
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


def _files(case: Case, last: WorkerResultMeta | None) -> str:
    files = last.files_modified if last else ()
    if not files:
        return body("None.", _drafted(case, last))
    more = len(files) - SHOWN_FILES
    lines = [file_line(file) for file in files[:SHOWN_FILES]]
    listed = "\n".join([*lines, f"- (+ {more} more)"] if more > 0 else lines)
    whole = f"The whole diff: `mulligan inspect {case.issue.ref} --diff`"
    return body(listed, whole, _drafted(case, last), _fetching(case, last))


def _drafted(case: Case, last: WorkerResultMeta | None) -> str:
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


def _fetching(case: Case, last: WorkerResultMeta | None) -> str:
    """Say how to get the work, where it was pushed (SPEC H3)."""
    pushed = case.status.effect(PUSHED_WORK, str(last.number)) if last else None
    if not pushed:
        return ""
    commands = f"git fetch origin {pushed}\ngit switch --detach FETCH_HEAD"
    return body("To look at the work:", code_block(commands))


def _actions(case: Case, advice: Advice) -> Sequence[str]:
    """Give the fix that the decision names, what the attempts show, and what helps in general."""
    decision = case.status.decision
    named = decision.fix if isinstance(decision, Escalate) else ""
    general = [action.replace("{issue}", str(case.issue.ref)) for action in advice.actions]
    first = [defuse(one_line(named, REASON_CHARS))] if named else []
    return [*first, *suggestions(case), *general]


def _options(case: Case, last: WorkerResultMeta | None) -> Sequence[str]:
    """Give the commands, the likeliest first."""
    label = code(case.ready_label)
    more = f"that gives {counted(case.max_attempts, 'new attempt')}"
    guided = f"`/mulligan fix: <what to do>` tries again, and follows your words; {more}."
    same = f"The label {label} does the same."
    left = "`/mulligan skip [reason]` leaves the issue alone; so does closing it."
    if _is_unpublished(case):
        again = "`/mulligan retry`, once what is in the way is mended, publishes the work."
        return f"{again} {same}", guided, left
    if last and last.outcome in TO_BE_MENDED:
        return f"`/mulligan retry`, once it is mended, tries again; {more}. {same}", guided, left
    return guided, f"`/mulligan retry` tries again as it stands; {more}. {same}", left


def _by_hand(case: Case) -> str:
    if not case.status.draft_of:
        return "Or do it yourself: nothing more happens here until somebody asks for it."
    return (
        f"Or finish it yourself: commit to {code(case.issue.ref.branch)}, and mark the draft as "
        "ready for review. Closing the draft leaves the issue alone."
    )


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
