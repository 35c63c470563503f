"""The comments that answer a command: what was done with it, or how one is written. Pure."""

from mulligan.domain.case import Case
from mulligan.domain.command import Order, Verb
from mulligan.domain.issue import IssueRef
from mulligan.github.messages import standing
from mulligan.github.parts import body, code, marker

USAGE = """\
| comment | what it does |
|---|---|
| `/mulligan retry` | new attempts, as many as at first |
| `/mulligan fix: <what to do>` | new attempts, which follow these words |
| `/mulligan skip [reason]` | leaves the issue alone |
| `/mulligan abort` | stops the attempt that runs; its work is kept |
| `/mulligan pause`, `/mulligan resume` | no new attempt meanwhile |
| `/mulligan status` | says where the issue stands |"""


def reply_marker(ref: IssueRef, key: str) -> str:
    """Write the invisible line of the one answer to a command, by its key."""
    return marker("reply", ref, f"to={key}")


def nobody(case: Case) -> str:
    """Say that there is nothing to tell."""
    return (
        "Nobody has asked Mulligan to work on this; put the label "
        f"{code(case.ready_label)} on, or write `/mulligan retry`."
    )


def reply_comment(case: Case, order: Order, answer: str) -> str:
    """Answer a command that did nothing that shows; `answer` is Mulligan's own sentence."""
    ref = case.issue.ref
    match order.verb:
        case Verb.STATUS:
            where = standing(case) if case.status.epoch else nobody(case)
            return body(reply_marker(ref, order.key), where)
        case Verb.MISTYPED:
            return body(reply_marker(ref, order.key), answer, USAGE)
        case _:
            return body(reply_marker(ref, order.key), answer)
