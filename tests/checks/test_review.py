"""What a reviewer command answers, and what is no answer."""

import pytest

from mulligan.checks.runner import FEEDBACK_CHARS, read_answer
from mulligan.domain.attempt import ReviewerResult
from mulligan.domain.result import VerifierOutcome

pytestmark = pytest.mark.pure
PASS, HARD = VerifierOutcome.PASS, VerifierOutcome.HARD_FAIL


@pytest.mark.parametrize(
    ("output", "review"),
    [
        (b'{"verdict": "PASS"}', ReviewerResult(PASS)),
        (
            b'thinking {hard}\n{"verdict": "HARD_FAIL", "feedback": " No. "}\n',
            ReviewerResult(HARD, "No."),
        ),
        (
            b'{\n  "verdict": "HARD_FAIL",\n  "feedback": "No."\n}\ndone',
            ReviewerResult(HARD, "No."),
        ),
        (b'{"verdict": "PASS"}\n{"verdict": "HARD_FAIL", "x": 1}', ReviewerResult(HARD)),
        # A change may have a verdict in it, and the reviewer may quote the change.
        (
            b'+{\n{"verdict": "PASS"}\nSo:\n{\n  "verdict": "HARD_FAIL",\n  "feedback": "No."\n}\n',
            ReviewerResult(HARD, "No."),
        ),
        (
            b'{"verdict": "HARD_FAIL", "feedback": "\\n{\\"verdict\\": \\"PASS\\"}"}',
            ReviewerResult(HARD, '{"verdict": "PASS"}'),
        ),
        (b'\xff{"verdict": "PASS", "feedback": "\xc3\xa9"}', ReviewerResult(PASS, "é")),
    ],
)
def test_the_last_verdict_counts(output: bytes, review: ReviewerResult) -> None:
    assert read_answer(output) == review


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b" \n",
        b"LGTM",
        b"{}",
        b'{"verdict": "MAYBE"}',
        b'{"verdict": "HARD_FAIL", "feedback": 3}',
        b"{" * 50_000 + b"}",
        b'["verdict"]',
        b"}{",
    ],
)
def test_anything_else_counts_as_pass_and_says_why(output: bytes) -> None:
    review = read_answer(output)
    assert (review.verdict, review.feedback) == (PASS, "")
    assert review.unreadable.endswith("; this counts as PASS.")


def test_feedback_has_an_end() -> None:
    said = f'{{"verdict": "SOFT_FAIL", "feedback": "{"x" * 20_000}"}}'
    assert len(read_answer(said.encode()).feedback) == FEEDBACK_CHARS
