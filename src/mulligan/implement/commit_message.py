"""Write Mulligan's commits: subject, body, trailers, author and committer. Pure."""

import re
from dataclasses import dataclass

from mulligan.config.policy import CommitSettings
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.text.foreign import subject_line
from mulligan.text.redact import Redactor

SUBJECT_CHARS = 100

LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\[bot\])?")

TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: \S.*")


@dataclass(frozen=True, slots=True)
class CommitText:
    """The message of Mulligan's commit, without what `commit` of the policy adds."""

    subject: str
    body: str
    co_author: str = ""


def commit_text(
    case: IssueContext, redactor: Redactor, title: str = "", *, has_number: bool = True
) -> CommitText:
    """Write the message of an attempt: the title of its change, then issue and attempt.

    Without a title, it is the issue's. With `has_number`, the issue's number follows.
    """
    ref = case.issue.ref
    tail = f" (#{ref.number})" if has_number else ""
    words = title or case.issue.title
    subject = subject_line(redactor.text(words), SUBJECT_CHARS - len(tail)) or f"Work on {ref}"
    return CommitText(
        subject=f"{subject}{tail}",
        body=f"Issue: {ref}\nMulligan-Attempt: {case.status.number}",
        co_author=case.status.request.actor,
    )


def merge_text(ref: IssueRef, base_branch: str) -> CommitText:
    """Write the message of a merge of the base branch into an issue's branch."""
    return CommitText(f"Merge {base_branch} into {ref.branch}", f"Issue: {ref}")


def message_of(text: CommitText, settings: CommitSettings) -> str:
    """Return the whole message; add the trailers to those at the end of the body."""
    subject = sanitised(text.subject.replace("\n", " ")).strip()
    body = sanitised(text.body).strip()
    trailers = "\n".join(_trailers(text, settings))
    joined = "\n" if _ends_in_trailers(body) and trailers else "\n\n"
    paragraphs = joined.join(part for part in (body, trailers) if part)
    return f"{subject}\n\n{paragraphs}\n" if paragraphs else f"{subject}\n"


def _trailers(text: CommitText, settings: CommitSettings) -> list[str]:
    trailers = list[str]()
    # An operator's name from the command line may be no GitHub login; then omit the trailer.
    if LOGIN.fullmatch(text.co_author):
        trailers.append(
            f"Co-authored-by: {text.co_author} <{text.co_author}@users.noreply.github.com>"
        )
    if settings.signoff:
        trailers.append(f"Signed-off-by: {sanitised(settings.name)} <{sanitised(settings.email)}>")
    return trailers


def _ends_in_trailers(body: str) -> bool:
    lines = body.rpartition("\n\n")[2].splitlines()
    return bool(lines) and all(TRAILER.fullmatch(line) for line in lines)


def identity_of(settings: CommitSettings, date: str = "") -> dict[str, str]:
    """Return git's variables for author and committer; without a date, git takes the present."""
    parts = {"NAME": sanitised(settings.name), "EMAIL": sanitised(settings.email), "DATE": date}
    return {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in parts.items()
        if value or part != "DATE"
    }


def sanitised(text: str) -> str:
    """Remove characters that a commit cannot have: control characters and lone surrogates."""
    visible = "".join(sign for sign in text if sign == "\n" or sign.isprintable())
    return visible.encode(errors="ignore").decode()
