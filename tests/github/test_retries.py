"""What GitHub refuses for a moment is sent again; what a person must change is not."""

import json
from collections.abc import Mapping

import pytest

from mulligan.domain.errors import DeniedError
from mulligan.github.answers import fault
from mulligan.github.retries import (
    TransientError,
    is_repeated_at_once,
    is_retriable,
    may_pass,
    retry_after,
)
from mulligan.github.shapes import Answer

pytestmark = pytest.mark.pure

NOW = "Tue, 04 Mar 2025 12:00:00 GMT"
NAMELESS = "Tue, 04 Mar 2025 12:00:00 -0000"
EPOCH = 1741089600
"""The same moment, as GitHub counts it in x-ratelimit-reset."""


def answer(status: int, content: object = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, json.dumps(content if content is not None else {}))


def said(words: str, *errors: object) -> Mapping[str, object]:
    return {"message": words, "errors": list(errors)}


NO_COMMITS = said("Validation Failed", "No commits between main and mulligan/issue-1")


@pytest.mark.parametrize(
    ("content", "request_", "passes"),
    [
        (
            said("Validation Failed", {"field": "head", "code": "invalid"}),
            "POST /repos/octo/calc/pulls",
            True,
        ),
        (said("Validation Failed", "Head sha can't be blank"), "POST /repos/octo/calc/pulls", True),
        (NO_COMMITS, "POST /repos/octo/calc/pulls", True),
        (
            said("Validation Failed", {"field": "base", "code": "invalid"}),
            "POST /repos/octo/calc/pulls",
            False,
        ),
        (
            said("Validation Failed", {"field": "head", "code": "invalid"}),
            "PATCH /repos/octo/calc/pulls/3",
            False,
        ),
        (
            said("Draft pull requests are not supported in this repository."),
            "POST /repos/octo/calc/pulls",
            False,
        ),
        (said("Repository rule violations found"), "POST /repos/octo/calc/pulls", False),
    ],
)
def test_a_pull_request_may_be_refused_for_a_moment(
    content: object, request_: str, *, passes: bool
) -> None:
    error = fault(answer(422, content), request_)
    assert isinstance(error, TransientError if passes else DeniedError)
    assert may_pass(answer(422, content), request_) is passes


@pytest.mark.parametrize("status", [200, 304, 404, 408, 410, 500])
def test_what_is_no_refusal_needs_no_remedy(status: int) -> None:
    assert not may_pass(Answer(status, {}, ""), "POST /repos/octo/calc/pulls")


POST, GET = "POST /repos/octo/calc/issues/1/comments", "GET /repos/octo/calc/issues/1"


@pytest.mark.parametrize(
    ("found", "of_a_write", "of_a_read"),
    [
        (answer(404), True, True),
        (answer(409, said("Conflict")), True, False),
        (Answer(403, {}, "<html>Forbidden</html>"), True, False),
        (answer(403, said("No.")), False, False),
        (answer(401, said("Bad credentials")), False, False),
        (answer(410, said("This issue was deleted")), False, False),
        (answer(429), False, False),
        (Answer(429, {}, "<html>Slow down</html>"), False, False),
        (answer(502), False, False),
        (answer(200), False, False),
    ],
)
def test_a_request_that_did_nothing_is_repeated_at_once(
    found: Answer, *, of_a_write: bool, of_a_read: bool
) -> None:
    assert is_repeated_at_once(found, POST, is_write=True) is of_a_write
    assert is_repeated_at_once(found, GET, is_write=False) is of_a_read


def test_a_read_is_sent_again_if_the_wait_is_not_too_long() -> None:
    assert is_retriable(TransientError("502."), 60)
    assert is_retriable(TransientError("It resets in 60 s.", 60), 60)
    assert not is_retriable(TransientError("It resets in 61 s.", 61), 60)
    assert not is_retriable(DeniedError("No."), 60)


WAITS: list[tuple[Answer, float | None]] = [
    (answer(429), None),
    (answer(429, retry_after="60"), 60),
    (answer(429, retry_after="Tue, 04 Mar 2025 12:01:30 GMT", date=NOW), 90),
    (answer(429, retry_after="Tue, 04 Mar 2025 11:00:00 GMT", date=NOW), 0),
    (answer(429, retry_after="Tue, 04 Mar 2025 12:01:30 GMT"), None),
    (answer(429, retry_after="soon", date=NOW), None),
    (answer(429, retry_after="-5", date=NOW), None),
    (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH + 30), date=NOW), 31),
    (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH - 30), date=NOW), 1),
    (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH)), None),
    (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset="never", date=NOW), None),
    (answer(403, x_ratelimit_remaining="5", x_ratelimit_reset=str(EPOCH + 30), date=NOW), None),
    (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH), date=NAMELESS), None),
]


@pytest.mark.parametrize(("found", "wait"), WAITS)
def test_github_says_how_long_to_wait_by_its_own_clock(found: Answer, wait: float | None) -> None:
    assert retry_after(found) == wait
