"""The pull request as a draft, with work that was not verified, as people read it. Pure."""

from mulligan.domain.case import Case
from mulligan.github.escalation import last_failure
from mulligan.github.messages import pull_request_title, what_changed
from mulligan.github.parts import attempts_table, attempts_used, body, checks_table, marker, spent

UNVERIFIED = "Not verified: "


def draft_title(case: Case) -> str:
    """Say before the issue's title what this is, for lists and mails that hide that it is one."""
    return f"{UNVERIFIED}{pull_request_title(case)}"


def draft_body(case: Case) -> str:
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
        f"Attempts used: {attempts_used(case)}; {spent(case)}.",
        attempts_table(case),
        "### To go on",
        _going_on(case),
        marker("pull-request", case.issue.ref, f"by={case.status.instance}"),
    )


def _going_on(case: Case) -> str:
    number, branch = case.issue.ref.number, case.issue.ref.branch
    return body(
        f"- **Let Mulligan try again.** Write `/mulligan fix: <what to do>` here or on #{number}, "
        "or request changes in a review. Once new work is verified, it takes the place of this "
        "one, and a review is asked for.",
        f"- **Finish it yourself.** Commit to `{branch}`, and press *Ready for review*. What "
        "others commit here is never overwritten: new attempts go on top of it.",
        "- **Leave it.** Close this, and Mulligan is done with the issue.",
    ).replace("\n\n", "\n")
