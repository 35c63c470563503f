"""Mark an escalation comment as answered: by whom, and what follows. Pure."""

import re

from mulligan.domain.issue import CommentAct, ConsoleAct, LabelAct, OperatorAct, ReviewAct, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.github.marks import replaced
from mulligan.text.foreign import code, phrase

REQUEST, WAITING = "request", "waiting"
"""The kinds of the marks around what an escalation comment says until somebody answers it."""

OLD_REQUEST = "**This issue needs human review.**"
OLD_WAITING = "Mulligan does nothing more until you choose one of these."
"""The same parts of comments from before the marks."""

COMMENT_URL = re.compile(r"#issuecomment-(\d+)$")

REASON_CHARS = 300


def comment_to_answer(case: IssueContext) -> int | None:
    """Return the id of the escalation comment that an issue waits for no longer, if any."""
    found = COMMENT_URL.search(case.status.asked_at)
    return int(found[1]) if found and case.status.stage is not Stage.HITL else None


def answered_text(text: str, case: IssueContext) -> str:
    """Return the text of the comment with the answer in its first line; equal if it has one."""
    answer = f"**Answered:** {_answer(case)}"
    answered = replaced(replaced(text, REQUEST, answer), WAITING, "")
    before, is_old, rest = text.partition(OLD_REQUEST)
    if answered != text or not is_old:
        return answered
    _, newline, below = rest.partition("\n")
    return f"{before}{answer}{newline}{below.replace(OLD_WAITING, '', 1)}"


def _answer(case: IssueContext) -> str:
    """Say who answered how, and what follows; a resolved issue has its own reason."""
    status = case.status
    if status.stage is Stage.RESOLVED:
        return phrase(status.reason, REASON_CHARS) or "Mulligan is done with this issue."
    who = phrase(status.request.actor, 100) or "Somebody"
    if status.is_kept:
        follows = "Mulligan publishes the finished work."
    elif status.request.guidance:
        follows = "New attempts follow that instruction."
    else:
        follows = "New attempts start."
    return f"{_act(case, who)} {follows}"


def _act(case: IssueContext, who: str) -> str:
    match case.status.request.act:
        case LabelAct():
            return f"{who} added the label {code(case.ready_label)}."
        case CommentAct():
            verb = "fix:" if case.status.request.guidance else "retry"
            return f"{who} wrote `/mulligan {verb}`."
        case ReviewAct():
            return f"{who} requested changes in a review."
        case ConsoleAct() | OperatorAct():
            return "The operator requested work."
        case _:
            return f"{who} requested work."
