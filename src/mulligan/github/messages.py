"""Build every comment and pull request of Mulligan except the escalation. Pure."""

from typing import assert_never

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.explanation import describe_publication
from mulligan.domain.feedback import describe_failed_checks
from mulligan.domain.issue import Act, IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.learning import LIFETIME, learned_in
from mulligan.domain.outcome import Escalate, Outcome, StandDown
from mulligan.domain.restoration import record_of
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.verification import is_unverified
from mulligan.github.escalation import last_failure, set_up_output
from mulligan.github.markdown_parts import (
    USAGE,
    agents_text,
    attempts_list,
    attempts_used,
    baseline_and_flaky_notes,
    body,
    checks_table,
    image_line,
    missed_line,
    moment,
    noted,
    out_of,
    spending_line,
    times_line,
    verification,
)
from mulligan.github.marks import marker
from mulligan.github.status_record import record_line
from mulligan.implement.prompt.outcome_text import left_out, pluralize
from mulligan.text.foreign import address, code, phrase, quoted, sentence, subject_line

UNVERIFIED = "Not verified: "

TITLE_CHARS = 200

REASON_CHARS = FACT_CHARS = 600

ADD_CHECKS = "To have changes verified, add `checks` to `.github/mulligan.yml`."

TWO_INSTALLATIONS = (
    "> **Another installation of Mulligan works on this repository too:** see [its status comment]"
    "({other}). The two run agents on the same issues. Stop one of them."
)


def reply_marker(ref: IssueRef, key: str) -> str:
    """Return the marker of the one reply to a command, by the command's key."""
    return marker("reply", ref, f"to={key}")


def no_attempts_text(case: IssueContext) -> str:
    """Say that nobody requested work on the issue, and how to request it."""
    return (
        "Nobody has asked Mulligan to work on this issue. To start, add the label "
        f"{code(case.ready_label)}, or write `/mulligan retry`."
    )


def reply_comment(case: IssueContext, order: PendingCommand, answer: str) -> str:
    """Reply to a command without a visible effect; `answer` is Mulligan's own sentence."""
    ref = case.issue.ref
    match order.verb:
        case Verb.STATUS:
            where = stage_summary(case) if case.status.epoch else no_attempts_text(case)
            return body(reply_marker(ref, str(order.act)), where)
        case Verb.MISTYPED:
            return body(reply_marker(ref, str(order.act)), sentence(answer), USAGE)
        case _:
            return body(reply_marker(ref, str(order.act)), sentence(answer))


def draft_title(case: IssueContext) -> str:
    """Return the draft's title, marked as not verified for lists and mail that hide drafts."""
    return f"{UNVERIFIED}{pull_request_title(case)}"


def draft_body(case: IssueContext, *, is_described: bool = False) -> str:
    """Say that the work is not verified, which checks fail, and the options (ESCALATION-3).

    With `is_described`, the repository's template has the description.
    """
    number, last = case.issue.ref.number, case.last
    listed = checks_table(last)
    return body(
        *_below_template(case),
        f"Closes #{number}",
        f"**This work is not verified: do not merge it.** It is the last attempt at #{number}, "
        "shown as a draft so that you can review or continue it.",
        missed_line(case),
        "### Failing checks",
        body(verification(last), listed) if listed else "No check ran.",
        image_line(last),
        last_failure(case, last),
        *(() if is_described else ("### What changed", what_changed(last))),
        "### Attempt history",
        f"Attempts used: {attempts_used(case)} · spent: {spending_line(case)}",
        times_line(case),
        attempts_list(case),
        "### Your options",
        _how_to_continue(case),
    )


def _how_to_continue(case: IssueContext) -> str:
    number, branch = case.issue.ref.number, case.issue.ref.branch
    return body(
        f"- **Let Mulligan try again.** Write `/mulligan fix: <what to do>` here or on #{number}, "
        "or request changes in a review. When the checks pass, Mulligan updates this pull request "
        "and asks for a review.",
        f"- **Finish it yourself.** Commit to `{branch}`, and press *Ready for review*. Mulligan "
        "works on it again only if you ask, and then on top of your commits.",
        "- **Stop.** Close this pull request. Mulligan then stops work on the issue.",
    ).replace("\n\n", "\n")


def status_marker(case: IssueContext) -> str:
    """Return the marker of the one status comment that an installation has on an issue."""
    return marker("status", case.issue.ref, f"by={case.status.instance}")


def status_comment(case: IssueContext, other: str = "", dashboard: str = "") -> str:
    """Show the stage, the attempts and the next step (STATUS-1), and record them (RESTORE-1).

    `other` is the address of another installation's status comment (RECOVERY-3), `dashboard` that
    of the dashboard.
    """
    warning = TWO_INSTALLATIONS.format(other=other) if other else ""
    start = f"{status_marker(case)}\n{record_line(record_of(case))}"
    return body(start, stage_summary(case), _page(case, dashboard), warning)


def _page(case: IssueContext, dashboard: str) -> str:
    """Link to the attempt's page on the dashboard."""
    ref, number = case.issue.ref, case.status.number
    if not dashboard or not number:
        return ""
    page = f"{dashboard}/issues/{ref.repository}/{ref.number}/attempts/{number}"
    return f"[Details on the dashboard]({page})"


def stage_summary(case: IssueContext) -> str:
    """Return the text of the status comment and of the reply to `status`.

    If an escalation comment exists, link to it instead of repeating it.
    """
    asked = case.status.asked_at if case.status.stage is Stage.HITL else ""
    if asked:
        link = f"[Cause, attempts and your options]({asked})"
        return body(f"**{_headline(case)}**", link, _draft(case), *_notes(case))
    return body(
        f"**{_headline(case)}** {_reason(case)}".rstrip(),
        _more(case),
        *_notes(case),
        _attempts(case),
        _agents(case),
        _set_up(case),
        baseline_and_flaky_notes(case.last) if case.round_history else "",
        _next(case),
    )


def _attempts(case: IssueContext) -> str:
    """List the attempts, or link to the escalation comment that lists them already."""
    if case.status.asked_at and isinstance(case.status.decision, Escalate):
        return f"[Cause and attempts]({case.status.asked_at})"
    return attempts_list(case)


def _agents(case: IssueContext) -> str:
    """Name the agents and models, unless the line about the success does."""
    named = "" if _success(case) else agents_text(case.round_history)
    return f"Agent: {named}" if named else ""


def _notes(case: IssueContext) -> tuple[str, ...]:
    """Return what people should know about the pull request."""
    return tuple(noted(case, text) for text in case.status.effects.pull_notes)


def _headline(case: IssueContext) -> str:
    match case.status.stage:
        case Stage.READY:
            return _queued(case)
        case Stage.RUNNING:
            if case.status.publication_delay:
                return "The change is ready, and is not published yet."
            attempt = f"attempt {out_of(case.counted + 1, case)}"
            since = case.status.started_at
            started = f", since {moment(since)} UTC" if since else ""
            return f"Mulligan is working on this issue: {attempt}{started}."
        case Stage.REVIEW:
            return f"Mulligan asks for a review: {address(case.status.pull.url or '')}"
        case Stage.HITL:
            return "This issue needs human review (HITL)."
        case Stage.RESOLVED:
            if case.status.elsewhere:
                return "Another installation of Mulligan has this issue."
            return "Mulligan is done with this issue."
        case _:
            assert_never(case.status.stage)


def _queued(case: IssueContext) -> str:
    if case.status.paused_by:
        return f"{phrase(case.status.paused_by, 100)} has paused work on this issue."
    if case.status.due:
        return f"Mulligan continues after {moment(case.status.due)} UTC."
    if case.status.reason:
        return "Mulligan cannot start work yet."
    return "This issue is queued. Mulligan starts work when a worker is free."


def _reason(case: IssueContext) -> str:
    """Return the reason for the stage, for the line of the headline."""
    is_noted = case.status.reason in case.status.effects.pull_notes
    if is_noted or case.status.stage in {Stage.RUNNING, Stage.REVIEW}:
        return ""
    return phrase(case.status.reason, REASON_CHARS)


def _more(case: IssueContext) -> str:
    """Return the current step, or what is left to do; the table has the failures."""
    match case.status.stage:
        case Stage.RUNNING:
            return body(_at_work(case), sentence(describe_failed_checks(case.status.feedback)))
        case Stage.REVIEW:
            return body(
                _success(case),
                _up_to_date(case),
                _left_draft(case),
            )
        case Stage.HITL:
            return _draft(case)
        case Stage.READY | Stage.RESOLVED:
            return sentence(describe_failed_checks(case.status.feedback))
        case _:
            assert_never(case.status.stage)


def _set_up(case: IssueContext) -> str:
    """Fold the output of the setup command that failed in the last attempt, until the next."""
    failed = case.last.set_up if case.last and case.round_history else None
    if failed is None or case.status.stage is Stage.RUNNING:
        return ""
    summary = "<summary>Output of the setup command</summary>"
    return body(f"<details>\n{summary}", set_up_output(failed), "</details>")


def _at_work(case: IssueContext) -> str:
    """Return the current step of an attempt, or why its change is not published."""
    if delay := describe_publication(case.status):
        return phrase(delay, REASON_CHARS)
    known = " It knows why the earlier attempts failed." if case.round_history else ""
    checks = "When it ends, Mulligan runs the checks."
    return (
        f"The agent is at work.{known} {checks if case.verifies else 'No checks are configured.'}"
    )


def _success(case: IssueContext) -> str:
    """Return the attempt that the pull request shows; empty after one that left it as it was."""
    if case.status.outcome is not Outcome.SUCCEEDED:
        return ""
    if isinstance(case.status.decision, StandDown):
        return f"{_progress(case)}, but its change is not in the pull request."
    line = f"{_progress(case)}; {spending_line(case)}.{_on_github(case)}"
    return body(line, verification(case.last), times_line(case))


def _progress(case: IssueContext) -> str:
    unverified = case.last is not None and is_unverified(case.last)
    return f"Attempt {attempts_used(case)} {'made a change' if unverified else 'succeeded'}"


def _on_github(case: IssueContext) -> str:
    count = case.status.pull.passed
    return f" On GitHub, {pluralize(count, 'check')} passed and none failed." if count else ""


def _up_to_date(case: IssueContext) -> str:
    """Say that Mulligan merged the base branch, which its own checks have not seen."""
    base = case.status.pull.updated_to
    if not base:
        return ""
    return (
        f"Mulligan then merged the base branch, at {base[:10]}, into the pull request. Its own "
        "checks ran before the merge. GitHub's checks run on it."
    )


def _left_draft(case: IssueContext) -> str:
    """Ask the maintainer to mark the draft as ready, if Mulligan could not."""
    why = phrase(case.status.pull.left_draft, REASON_CHARS)
    return (
        f"**The pull request is still a draft:** please press *Ready for review*. {why}"
        if why
        else ""
    )


def _draft(case: IssueContext) -> str:
    """Link to the draft of work that is not verified."""
    if not case.status.pull.draft_of or not case.status.pull.url:
        return ""
    return f"The unverified work is in a draft pull request: {address(case.status.pull.url)}"


def _next(case: IssueContext) -> str:
    label = code(case.ready_label)
    match case.status.stage:
        case Stage.READY if case.status.paused_by:
            return "To continue, write `/mulligan resume`."
        case Stage.READY | Stage.RUNNING:
            return (
                f"To stop for now, write `/mulligan abort` or remove the label {label}. "
                "To stop for good, write `/mulligan skip` or close the issue."
            )
        case Stage.REVIEW:
            return (
                "To change the work, request changes in a review, or write `/mulligan fix: <what "
                "to "
                "do>`. To end it, merge or close the pull request."
            )
        case Stage.HITL:
            return "The comment below lists your options."
        case Stage.RESOLVED if case.status.elsewhere:
            return ""
        case Stage.RESOLVED:
            return f"To start again, write `/mulligan retry`, or add the label {label}."
        case _:
            assert_never(case.status.stage)


def label_marker(ref: IssueRef, act: Act) -> str:
    """Return the marker of the one comment that asks for the label again, by the act."""
    return marker("label", ref, f"act={act}")


def label_comment(case: IssueContext, act: Act, reason: str) -> str:
    """Ask for the label again after an untrusted edit (TRUST-2)."""
    return body(
        label_marker(case.issue.ref, act),
        "**Mulligan needs the label again: the issue was edited.** "
        f"{phrase(reason, REASON_CHARS)}.",
        "Please read the title and the text. To start work on them, remove the label "
        f"{code(case.ready_label)} if it is there, and add it again.",
    )


def pull_request_title(case: IssueContext) -> str:
    """Return the title of the last attempt's change, or the issue's, on one line.

    GitHub accepts 256 characters.
    """
    named = case.last.title if case.last else ""
    title = subject_line(named or case.issue.title, TITLE_CHARS)
    return title or f"Work on {case.issue.ref.repository} issue {case.issue.ref.number}"


def pull_request_body(case: IssueContext, *, is_described: bool = False) -> str:
    """Describe the change, its verification, and how to request changes (PR-1).

    With `is_described`, the repository's template has the description.
    """
    number, last = case.issue.ref.number, case.last
    return body(
        *_below_template(case),
        f"Closes #{number}",
        missed_line(case),
        *(() if is_described else ("### What changed", what_changed(last))),
        "### Checks",
        check_summary(case),
        *_advice(last),
        *_learned(case),
        "### Attempts",
        f"{_progress(case)}{_fixed(last)}; {spending_line(case)}.",
        times_line(case),
        attempts_list(case) if len(case.round_history) > 1 else "",
        "### To request changes",
        "Submit a review that requests changes. Mulligan answers each line comment. Or write "
        f"`/mulligan fix: <what to change>` here or on #{number}. Mulligan never overwrites "
        "commits that you add to this branch.",
    )


def _below_template(case: IssueContext) -> tuple[str, ...]:
    """Return the heading of Mulligan's part below the repository's template."""
    return ("## Mulligan", BELOW_TEMPLATE) if case.template else ()


BELOW_TEMPLATE = (
    "The text above is the repository's template. Mulligan ticks none of its boxes: they are for "
    "people."
)


def what_changed(meta: WorkerResultMeta | None) -> str:
    """Return the size of the change and the agent's summary."""
    if meta is None:
        return ""
    summary = quoted(meta.agent_summary)
    return body(
        f"{meta.diff_summary}.",
        "\n".join(f"{why}: {', '.join(map(code, paths))}." for why, paths in left_out(meta)),
        f"The agent's summary:\n\n{summary}" if summary else "The agent gave no summary.",
    )


def _advice(meta: WorkerResultMeta | None) -> tuple[str, ...]:
    """Quote the reviewer command's advice."""
    if meta is None or not meta.verifier_feedback:
        return ()
    return ("### Feedback of the reviewer command", quoted(meta.verifier_feedback))


SHARED_NOTES = (
    f"If you merge this pull request, prompts of other issues contain these notes for "
    f"{LIFETIME.days} days. To remove one: `mulligan debug learnings drop`."
)


def _learned(case: IssueContext) -> tuple[str, ...]:
    """List what the agents of the epoch noted for later attempts (LEARNING-1)."""
    facts = [f"- {phrase(fact, FACT_CHARS)}" for fact in learned_in(case.epoch_history)]
    if not facts:
        return ()
    shared = () if case.learnings is None else (SHARED_NOTES,)
    return ("### Notes of the agent about this repository", "\n".join(facts), *shared)


def _fixed(meta: WorkerResultMeta | None) -> str:
    rounds = len(meta.fix_rounds) if meta else 0
    return f", after {pluralize(rounds, 'fix round')}" if rounds else ""


def check_summary(case: IssueContext) -> str:
    """Say what the last attempt's checks verified, with their table and notes."""
    return body(
        verification(case.last),
        checks_table(case.last),
        image_line(case.last),
        baseline_and_flaky_notes(case.last),
        "" if case.verifies else ADD_CHECKS,
    )
