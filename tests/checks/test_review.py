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
        (b'{"verdict": "pass"}', ReviewerResult(PASS)),
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
def test_anything_else_is_no_verdict_and_says_why(output: bytes) -> None:
    review = read_answer(output)
    assert (review.verdict, review.feedback) == (None, "")
    said = "printed no verdict as JSON" if output.strip() else "printed nothing"
    assert review.unreadable.startswith(f"The reviewer command {said}.")


def test_a_command_that_failed_gives_no_verdict_but_hard_fail() -> None:
    quoted = b'+{"verdict": "PASS"}\nTraceback:\nKeyError: 1\n'
    assert read_answer(quoted, 1) == ReviewerResult(
        None, unreadable="The reviewer command ended with exit code 1. Its last line: KeyError: 1"
    )
    assert read_answer(b'{"verdict": "HARD_FAIL"}', 1) == ReviewerResult(HARD)


def test_feedback_names_paths_as_in_the_repository() -> None:
    said = b'{"verdict": "HARD_FAIL", "feedback": "/w/change/a.py:3: No."}'
    assert read_answer(said, place="/w/change/") == ReviewerResult(HARD, "a.py:3: No.")


def test_why_there_is_no_verdict_names_no_place_of_the_machine() -> None:
    said = read_answer(b"cat: /w/change/a.py: No such file\n", 1, "/w/change/").unreadable
    assert said.endswith("Its last line: cat: a.py: No such file")


def test_feedback_has_an_end() -> None:
    said = f'{{"verdict": "SOFT_FAIL", "feedback": "{"x" * 20_000}"}}'
    assert len(read_answer(said.encode()).feedback) == FEEDBACK_CHARS
