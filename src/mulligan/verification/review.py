"""Read what a reviewer command answers (SPEC 10). Pure."""

import json
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, ValidationError

from mulligan.domain.attempt import Review
from mulligan.domain.result import VerifierOutcome

FEEDBACK_CHARS = 10_000


class Answer(BaseModel):
    """The JSON of an answer; other keys are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    verdict: VerifierOutcome
    feedback: str = ""


def read_answer(output: bytes) -> Review:
    """Take the last JSON object that is a verdict; where there is none, that counts as PASS."""
    text = output.decode(errors="replace")
    answers = [found for found in map(_answer, _candidates(text)) if found]
    if not answers:
        said = "it printed nothing" if not text.strip() else "it holds no verdict as JSON"
        return unreadable(f"The reviewer's answer cannot be read, {said}; it counts as PASS.")
    last = answers[-1]
    return Review(last.verdict, last.feedback.strip()[:FEEDBACK_CHARS])


def unreadable(why: str) -> Review:
    """Let an answer that is none pass, and say why (SPEC 10)."""
    return Review(VerifierOutcome.PASS, unreadable=why)


def _candidates(text: str) -> Iterator[str]:
    """Yield what may be an answer: the whole, from its first brace on, and each line."""
    start, end = text.find("{"), text.rfind("}")
    if start >= 0:
        yield text[start : end + 1]
    yield from (line for line in text.splitlines() if line.lstrip().startswith("{"))


def _answer(text: str) -> Answer | None:
    try:
        return Answer.model_validate(json.loads(text))
    except (ValueError, ValidationError, RecursionError):
        return None
