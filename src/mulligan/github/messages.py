"""Every comment and pull request of Mulligan's but the escalation, as people read them. Pure."""

from typing import assert_never

from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.result import WorkerResultMeta
from mulligan.github.escalation import last_failure
from mulligan.github.markdown_parts import (
    attempts_table,
    attempts_used,
    baseline_and_flaky_notes,
    body,
    checks_table,
    code,
    marker,
    moment,
    quoted,
    spending_line,
)
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.text.escape import defuse, one_line, subject_line

USAGE = """\
| comment | what it does |
|---|---|
| `/mulligan retry` | new attempts, as many as at first |
| `/mulligan fix: <what to do>` | new attempts, which follow these words |
| `/mulligan skip [reason]` | leaves the issue alone |
| `/mulligan abort` | stops the attempt that runs; its work is kept |
| `/mulligan pause`, `/mulligan resume` | no new attempt meanwhile |
| `/mulligan status` | says where the issue stands |"""

UNVERIFIED = "Not verified: "

TITLE_CHARS = 200

REASON_CHARS = 600

NOTHING_VERIFIED = (
    "**Nothing was verified.** No checks are configured for this repository; add some under "
    "`checks` in `.github/mulligan.yml`."
)

TWO_INSTALLATIONS = (
    "> **Another installation of Mulligan works on this repository too:** it wrote [its own status]"
    "({other}). Two that do not share their state disturb each other; stop one of them."
)


def reply_marker(ref: IssueRef, key: str) -> str:
    """Write the invisible line of the one answer to a command, by its key."""
    return marker("reply", ref, f"to={key}")


def no_attempts_text(case: IssueContext) -> str:
    """Say that there is nothing to tell."""
    return (
        "Nobody has asked Mulligan to work on this; put the label "
        f"{code(case.ready_label)} on, or write `/mulligan retry`."
    )


def reply_comment(case: IssueContext, order: PendingCommand, answer: str) -> str:
    """Answer a command that did nothing that shows; `answer` is Mulligan's own sentence."""
    ref = case.issue.ref
    match order.verb:
        case Verb.STATUS:
            where = stage_summary(case) if case.status.epoch else no_attempts_text(case)
            return body(reply_marker(ref, order.key), where)
        case Verb.MISTYPED:
            return body(reply_marker(ref, order.key), answer, USAGE)
        case _:
            return body(reply_marker(ref, order.key), answer)


def draft_title(case: IssueContext) -> str:
    """Say before the issue's title what this is, for lists and mails that hide that it is one."""
    return f"{UNVERIFIED}{pull_request_title(case)}"


def draft_body(case: IssueContext) -> str:
    """Say that the work does not hold, what fails, and how to go on (SPEC H3)."""
    number, last = case.issue.ref.number, case.last
    return body(
        f"Closes #{number}",
        "**This work is not verified: please do not merge it as it stands.** It is what the last "
        f"attempt at #{number} left, shown as a draft so that somebody can look at it, or go on "
        "from it.",
        "### What fails",
        checks_table(last.checks) if last and last.checks else "No check was run on it.",
        last_failure(case, last),
        "### What changed",
        what_changed(last),
        "### How it came about",
        f"Attempts used: {attempts_used(case)}; {spending_line(case)}.",
        attempts_table(case),
        "### To go on",
        _how_to_continue(case),
        marker("pull-request", case.issue.ref, f"by={case.status.instance}"),
    )


def _how_to_continue(case: IssueContext) -> str:
    number, branch = case.issue.ref.number, case.issue.ref.branch
    return body(
        f"- **Let Mulligan try again.** Write `/mulligan fix: <what to do>` here or on #{number}, "
        "or request changes in a review. Once new work is verified, it takes the place of this "
        "one, and a review is asked for.",
        f"- **Finish it yourself.** Commit to `{branch}`, and press *Ready for review*. What "
        "others commit here is never overwritten: new attempts go on top of it.",
        "- **Leave it.** Close this, and Mulligan is done with the issue.",
    ).replace("\n\n", "\n")


def status_marker(case: IssueContext) -> str:
    """Write the invisible line of the one status comment that an installation has on an issue."""
    return marker("status", case.issue.ref, f"by={case.status.instance}")


def status_comment(case: IssueContext, other: str = "") -> str:
    """Say where the issue stands, what happened so far and what comes next (SPEC H5).

    `other` is where another installation does the same (SPEC E4).
    """
    warning = TWO_INSTALLATIONS.format(other=other) if other else ""
    return body(status_marker(case), stage_summary(case), warning)


def stage_summary(case: IssueContext) -> str:
    """Say where the issue stands, as the status comment and the answer to `status` do.

    What the comment that asks a person says already is not said again.
    """
    asked = case.status.asked_at if case.status.stage is Stage.HITL else ""
    if asked:
        told = f"[What happened, and what can be done]({asked})"
        return body(f"**{_headline(case)}**", told, _draft(case))
    return body(
        f"**{_headline(case)}**",
        _reason(case),
        attempts_table(case),
        baseline_and_flaky_notes(case.last) if case.epoch_history else "",
        _next(case),
    )


def _headline(case: IssueContext) -> str:
    match case.status.stage:
        case Stage.READY:
            return _queued(case)
        case Stage.RUNNING:
            attempt = f"attempt {case.counted + 1} of {case.max_attempts}"
            since = case.status.started_at
            started = f", since {moment(since)} UTC" if since else ""
            return f"Mulligan is working on this: {attempt}{started}."
        case Stage.REVIEW:
            return f"Mulligan asks for a review: {one_line(case.status.pull_request or '', 300)}"
        case Stage.HITL:
            return "Mulligan has handed this issue to a person."
        case Stage.RESOLVED:
            if case.status.elsewhere:
                return "This Mulligan leaves the issue to whoever has it now."
            return "Mulligan has left this issue."
        case _:
            assert_never(case.status.stage)


def _queued(case: IssueContext) -> str:
    if case.status.paused_by:
        return f"{one_line(case.status.paused_by, 100)} has paused this."
    if case.status.due:
        return f"Mulligan goes on after {moment(case.status.due)} UTC."
    if case.status.reason:
        return "Mulligan cannot work on this yet."
    return "Mulligan will start on this shortly."


def _reason(case: IssueContext) -> str:
    """Say why, where that is not plain; what failed is in the table."""
    match case.status.stage:
        case Stage.RUNNING:
            return "The agent is told what went wrong before." if case.epoch_history else ""
        case Stage.REVIEW:
            return body(
                f"{_progress(case)}; {spending_line(case)}.{_on_github(case)}",
                _up_to_date(case),
                _left_draft(case),
            )
        case Stage.HITL:
            return body(defuse(one_line(case.status.reason, REASON_CHARS)), _draft(case))
        case Stage.READY | Stage.RESOLVED:
            return defuse(one_line(case.status.reason, REASON_CHARS))
        case _:
            assert_never(case.status.stage)


def _progress(case: IssueContext) -> str:
    return f"Attempt {attempts_used(case)} succeeded"


def _on_github(case: IssueContext) -> str:
    count = case.status.ci_passed
    return f" On GitHub {pluralize(count, 'check')} passed, and none failed." if count else ""


def _up_to_date(case: IssueContext) -> str:
    """Say that the pull request holds a merge that nobody asked for; its files are new together."""
    base = case.status.updated_to
    if not base:
        return ""
    return (
        f"The base branch, at {base[:10]}, was merged into the pull request afterwards, without a "
        "conflict. Mulligan's own checks ran before that; those on GitHub run on it."
    )


def _left_draft(case: IssueContext) -> str:
    """Ask for the one thing that Mulligan could not do to the pull request."""
    why = defuse(one_line(case.status.left_draft, REASON_CHARS))
    return f"**It is still a draft:** please press *Ready for review*. {why}" if why else ""


def _draft(case: IssueContext) -> str:
    """Name the draft that shows work that was not verified."""
    if not case.status.draft_of or not case.status.pull_request:
        return ""
    url = one_line(case.status.pull_request, 300)
    return f"What was done so far is in a draft, and is not verified: {url}"


def _next(case: IssueContext) -> str:
    label = code(case.ready_label)
    match case.status.stage:
        case Stage.READY if case.status.paused_by:
            return "`/mulligan resume` in a comment lets it go on."
        case Stage.READY | Stage.RUNNING:
            return f"To stop it, write `/mulligan abort`, take the label {label} off or close this."
        case Stage.REVIEW:
            return (
                "To ask for changes, request them in a review of the pull request, or write "
                "`/mulligan fix:` and what to do in a comment."
            )
        case Stage.HITL:
            return "The comment that asks for help says what can be done."
        case Stage.RESOLVED if case.status.elsewhere:
            return ""
        case Stage.RESOLVED:
            return (
                f"To have it taken up again, write `/mulligan retry` or put the label {label} on."
            )
        case _:
            assert_never(case.status.stage)


def label_marker(ref: IssueRef, act: str) -> str:
    """Write the invisible line of the one comment that asks for the label again, by the act."""
    return marker("label", ref, f"act={act}")


def label_comment(case: IssueContext, act: str, reason: str) -> str:
    """Ask for the label again, since what stands there now was not asked for (SPEC T2)."""
    return body(
        label_marker(case.issue.ref, act),
        "**Mulligan does not work on this as it stands now.**",
        f"{defuse(one_line(reason, REASON_CHARS))}.",
        "Please read the title and the text. If they say what is wanted, put the label "
        f"{code(case.ready_label)} on again; where it is still there, take it off first.",
    )


def pull_request_title(case: IssueContext) -> str:
    """Take the issue's title, on one line; GitHub takes 256 characters."""
    title = subject_line(case.issue.title, TITLE_CHARS)
    return title or f"Work on {case.issue.ref.repository} issue {case.issue.ref.number}"


def pull_request_body(case: IssueContext) -> str:
    """Say what was changed, how it was verified and how to ask for changes (SPEC P1)."""
    number, last = case.issue.ref.number, case.last
    return body(
        f"Closes #{number}",
        "### What changed",
        what_changed(last),
        "### Checks",
        _checks(case, last),
        *_advice(last),
        "### How it came about",
        f"{_progress(case)}{_fixed(last)}; {spending_line(case)}.",
        attempts_table(case) if len(case.epoch_history) > 1 else "",
        "### To ask for changes",
        "Submit a review that requests changes; comments on lines are read, and answered. Or write "
        f"`/mulligan fix:` and what should be different in a comment on #{number}, or here. "
        "Commits that others made on this branch are never overwritten: new work then goes on "
        "top of them.",
        marker("pull-request", case.issue.ref, f"by={case.status.instance}"),
    )


def what_changed(meta: WorkerResultMeta | None) -> str:
    """Say how much was changed, and what the agent says that it did."""
    if meta is None:
        return ""
    said = quoted(meta.agent_summary)
    return body(
        f"{meta.diff_summary}.",
        f"In the agent's words:\n\n{said}" if said else "The agent did not say what it did.",
    )


def _advice(meta: WorkerResultMeta | None) -> tuple[str, ...]:
    """Show a reviewer's doubts, in its words; they are advice."""
    if meta is None or not meta.verifier_feedback:
        return ()
    return ("### What the reviewer command says", quoted(meta.verifier_feedback))


def _fixed(meta: WorkerResultMeta | None) -> str:
    rounds = len(meta.fix_rounds) if meta else 0
    return f", after {pluralize(rounds, 'fix round')}" if rounds else ""


def _checks(case: IssueContext, meta: WorkerResultMeta | None) -> str:
    checks = meta.checks if meta else ()
    if not case.verifies or not checks:
        return NOTHING_VERIFIED
    return body(checks_table(checks), baseline_and_flaky_notes(meta))
