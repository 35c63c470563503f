"""Build the replies to reviews: the commit, and what changed at a comment on a line. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mulligan.domain.events import Remark
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.text.diff import Patch, patches_of
from mulligan.text.foreign import code, phrase

REASON_CHARS = 500

SENTENCE_CHARS = 160

LINE_CHARS = 100

SHA_CHARS = 10
"""GitHub links a commit from seven digits on."""

SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """A reply to a line comment (`on_line`) or a review; `attempt` if for that only."""

    number: int
    text: str
    attempt: int | None = None
    on_line: bool = True


@dataclass(frozen=True, slots=True)
class Diffs:
    """The diff of the new commit, and of the reviewed one if both begin at the base branch.

    None stands for a diff that is not known.
    """

    new: bytes | None = None
    reviewed: bytes | None = None


def answers_in_commit(
    case: IssueContext, head: str, diffs: Diffs = Diffs()
) -> Iterator[ReviewAnswer]:
    """Yield replies to each line comment, and each review without any: the work is published."""
    feedback, last = case.status.feedback, case.last
    if feedback is None or last is None:
        return
    remarks = {each.thread: each for each in reversed(feedback.remarks)}
    for thread in feedback.threads:
        yield ReviewAnswer(thread, thread_answer(head, remarks[thread], last, diffs), last.number)
    for review, author in feedback.reviews.items():
        where = f"{case.status.pull.url}#pullrequestreview-{review}"
        yield ReviewAnswer(review, review_answer(head, where, author, last), on_line=False)


def answers_unchanged(case: IssueContext, comment: str) -> Iterator[ReviewAnswer]:
    """Yield replies to each open review: no change was made; `comment` is the escalation's URL.

    The reply to a review as a whole is replaced if a later attempt succeeds.
    """
    feedback, last = case.status.feedback, case.last
    if feedback is None or last is None:
        return
    text = unchanged_answer(case.status.reason, comment)
    for thread in feedback.threads:
        yield ReviewAnswer(thread, text, last.number)
    for review in feedback.reviews:
        yield ReviewAnswer(review, text, last.number, on_line=False)


def thread_answer(head: str, remark: Remark, meta: WorkerResultMeta, diffs: Diffs) -> str:
    """Return a reply to a line comment in two lines: the commit, and what changed there."""
    sha, path = head[:SHA_CHARS], remark.path
    said = _first_sentence(meta.agent_summary)
    if diffs.new is None:
        is_touched = path in {file.path for file in meta.files_modified}
        done = f"Changed in {sha}." if is_touched else _unchanged(sha)
        return f"{done}\n{said}".rstrip()
    now, before = _patches(diffs.new).get(path), _patches(diffs.reviewed or b"").get(path)
    if _content(now) == _content(before):
        return f"{_unchanged(sha)}\n{said}".rstrip()
    return f"Changed in {sha}.\n{_change_at(remark.line or 1, now, before)}"


def _unchanged(sha: str) -> str:
    return f"This file did not change. Commit {sha} has the new work."


def _patches(diff: bytes) -> Mapping[str, Patch]:
    return {patch.path: patch for patch in patches_of(diff)}


def _content(patch: Patch | None) -> object:
    """Return what a patch adds and removes, wherever that stands in the file."""
    if patch is None or patch.is_binary:
        return patch and patch.head
    return [line for line in patch.content.split(b"\n") if line[:1] in {b"+", b"-"}]


def _change_at(line: int, now: Patch | None, before: Patch | None) -> str:
    """Say which new line is nearest to the comment, and how many others are new."""
    if now is None:
        return "The pull request no longer changes this file."
    known = set(before.added) if before else set[str]()
    added = [
        each
        for hunk in now.hunks(LINE_CHARS)
        for each in hunk.new
        if each.is_changed and each.text.strip() and each.text not in known
    ]
    if not added:
        return "Lines were removed." if now.content else "The file changed as a whole."
    nearest = min(added, key=lambda each: abs(each.number - line))
    more = f" (and {pluralize(len(added) - 1, 'other new line')})" if len(added) > 1 else ""
    return f"Line {nearest.number} is now {code(nearest.text.strip(), LINE_CHARS)}{more}."


def review_answer(head: str, where: str, author: str, meta: WorkerResultMeta) -> str:
    """Return a reply to a review without line comments, in two lines; `where` is its URL."""
    by = phrase(author, REASON_CHARS)
    done = f"To [the review]({where}) by {by}: the work is in {head[:SHA_CHARS]}."
    return f"{done}\n{_first_sentence(meta.agent_summary)}".rstrip()


def unchanged_answer(reason: str, comment: str) -> str:
    """Return a reply to a review without a change; `comment` is the escalation's URL."""
    why = phrase(reason, REASON_CHARS)
    return (
        f"Mulligan changed nothing here for this review. {why}\n\n"
        f"[The comment on the issue]({comment}) lists your options, such as merging or closing "
        "this pull request."
    )


def _first_sentence(summary: str) -> str:
    """Quote the first sentence of an agent's summary; a line break ends it too."""
    first = SENTENCE_END.split(summary.strip(), maxsplit=1)[0].strip()
    return f"The agent: {phrase(first, SENTENCE_CHARS)}" if first else ""
