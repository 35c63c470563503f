"""Mark an escalation comment as answered: by whom, and what follows. Pure."""

import re

from mulligan.domain.issue import CommentAct, ConsoleAct, LabelAct, OperatorAct, ReviewAct, Stage
from mulligan.domain.issue_context import IssueContext
from mulligan.text.foreign import code, phrase

NEEDED = "**This issue needs human review.**"
"""The words in the first line of an escalation comment, until somebody answers it."""

WAITS = "Mulligan does nothing more until you choose one of these."
"""The words below the options, until somebody answers the comment."""

COMMENT_URL = re.compile(r"#issuecomment-(\d+)$")

REASON_CHARS = 300


def comment_to_answer(case: IssueContext) -> int | None:
    """Return the id of the escalation comment that an issue waits for no longer, if any."""
    found = COMMENT_URL.search(case.status.asked_at)
    return int(found[1]) if found and case.status.stage is not Stage.HITL else None


def answered_text(text: str, case: IssueContext) -> str:
    """Return the text of the comment with the answer in its first line; equal if it has one."""
    before, needed, rest = text.partition(NEEDED)
    if not needed:
        return text
    _, newline, below = rest.partition("\n")
    return f"{before}**Answered:** {_answer(case)}{newline}{below.replace(WAITS, '', 1)}"


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
