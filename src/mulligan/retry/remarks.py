"""What a review asks for, as the agent is told it, and what is answered to it (C13, P3). Pure."""

from mulligan.config.policy import ContextLimits
from mulligan.domain.ci import FailedCheck
from mulligan.domain.feedback import Feedback, Remark
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import WorkerResultMeta
from mulligan.text.escape import defuse, one_line
from mulligan.text.excerpt import Excerpt
from mulligan.text.fence import fence
from mulligan.text.visible import seen_in

REMARK_CHARS = 1500
CODE_LINES = 12
PLACE_CHARS = 200
SUMMARY_CHARS = 500

ASKED = (
    "People who may ask for work have reviewed the pull request, and ask for these changes. Make "
    "every one of them:"
)
ON_GITHUB = (
    "The checks that GitHub runs on the pull request have failed. Mend what they name in the "
    "change; where it is not the change's doing, report NOTHING_TO_DO and say why:"
)
CONFLICT = (
    "The base branch has moved, and the pull request does not merge into it any more, because of "
    "the files below. Make its change again on the base branch as it is now, keeping both:"
)


def remarks_of(feedback: Feedback) -> Excerpt:
    """Write all that is asked for, line by line."""
    return Excerpt.of("\n\n".join(_remark(said) for said in feedback.remarks))


def on_github_of(feedback: Feedback, limits: ContextLimits) -> Excerpt:
    """Write the names of the checks that failed on GitHub, and under each what it printed."""
    return Excerpt.of("\n\n".join(_failed(check, limits) for check in feedback.checks))


def _failed(check: FailedCheck, limits: ContextLimits) -> str:
    said = Excerpt.of(check.digest if limits.include_check_output else "")
    shown = said.within(limits.max_digest_chars).head(limits.max_check_output_lines)
    return "\n".join([f"{one_line(check.name, PLACE_CHARS)} failed.", *str(shown).splitlines()])


def _remark(said: Remark) -> str:
    place = one_line(said.path, PLACE_CHARS)
    at = f" on {place}:{said.line}" if said.line else f" on {place}" if place else ""
    body = str(Excerpt.of(seen_in(said.body).text).within(REMARK_CHARS))
    lines = [f"{one_line(said.author, 100)}{at}:", body]
    if said.code:
        kept = said.code.split("\n")[-CODE_LINES:]
        lines += ["The code that this is about, the line itself last:", *kept]
    return "\n".join(lines)


def asked_for(feedback: Feedback, remarks: Excerpt, on_github: Excerpt) -> str:
    """Put what is asked for before the agent; the excerpts are what there is room for."""
    parts = [f"{ASKED}\n{fence('the review', str(remarks))}"] if feedback.remarks else []
    if feedback.checks:
        parts.append(f"{ON_GITHUB}\n{fence('checks on GitHub', str(on_github))}")
    if feedback.conflict:
        parts.append(f"{CONFLICT}\n{fence('git', one_line(feedback.conflict, 2000))}")
    return "\n\n".join(parts)


def thread_answer(ref: IssueRef, head: str, path: str, meta: WorkerResultMeta) -> str:
    """Answer a comment on a line: what was done, in the commit and the agent's words."""
    touched = path in {file.path for file in meta.files_modified}
    done = f"Changed in {head}" if touched else f"Not changed here; the work is in {head}"
    return f"<!-- mulligan:answer {ref} -->\n{done}{_in_its_words(meta)}"


def review_answer(head: str, where: str, author: str, meta: WorkerResultMeta) -> str:
    """Answer a review that has no comment on a line; `where` is its address."""
    by = one_line(author, PLACE_CHARS)
    return f"To [the review]({where}) by {by}: the work is in {head}{_in_its_words(meta)}"


def _in_its_words(meta: WorkerResultMeta) -> str:
    said = defuse(one_line(meta.agent_summary, SUMMARY_CHARS))
    return f": {said}" if said else "."
