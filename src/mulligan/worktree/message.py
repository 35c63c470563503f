"""Word Mulligan's commit and its trailers. Pure."""

import re

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import CommitText

LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\[bot\])?")
TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: \S.*")


def message_of(text: CommitText, settings: CommitSettings) -> str:
    """Write the commit message; the trailers join those at the end of the body."""
    subject = plain(text.subject.replace("\n", " ")).strip()
    body = plain(text.body).strip()
    trailers = "\n".join(_trailers(text, settings))
    joined = "\n" if _ends_in_trailers(body) and trailers else "\n\n"
    paragraphs = joined.join(part for part in (body, trailers) if part)
    return f"{subject}\n\n{paragraphs}\n" if paragraphs else f"{subject}\n"


def _trailers(text: CommitText, settings: CommitSettings) -> list[str]:
    trailers = list[str]()
    # An operator's command may carry a name that is no login, which then names nobody on GitHub.
    if LOGIN.fullmatch(text.co_author):
        trailers.append(
            f"Co-authored-by: {text.co_author} <{text.co_author}@users.noreply.github.com>"
        )
    if settings.signoff:
        trailers.append(f"Signed-off-by: {plain(settings.name)} <{plain(settings.email)}>")
    return trailers


def _ends_in_trailers(body: str) -> bool:
    lines = body.rpartition("\n\n")[2].splitlines()
    return bool(lines) and all(TRAILER.fullmatch(line) for line in lines)


def plain(text: str) -> str:
    """Drop what no commit message may hold: control characters and halves of surrogate pairs."""
    visible = "".join(sign for sign in text if sign == "\n" or sign.isprintable())
    return visible.encode(errors="ignore").decode()
