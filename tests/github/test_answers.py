"""Every answer of GitHub's means one thing, and its message says what to do."""

import json
from collections.abc import Mapping

import pytest
from pydantic import TypeAdapter

from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.github.answers import (
    AlreadyExistsError,
    Answer,
    ForbiddenError,
    MovedError,
    NotFoundError,
    TransientError,
    fault,
    parsed,
    retry_after,
)

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


TABLE: list[tuple[Answer, type[WorldError], str]] = [
    (answer(401, said("Bad credentials")), DeniedError, "refused the token (Bad credentials)"),
    (answer(404), NotFoundError, "check the name"),
    (answer(410, said("This issue was deleted")), NotFoundError, "deleted"),
    (answer(422, said("Validation Failed", "is invalid")), DeniedError, "is invalid"),
    (
        answer(422, said("Validation Failed", {"field": "name", "code": "already_exists"})),
        AlreadyExistsError,
        "name already_exists",
    ),
    (answer(422, said("Reference already exists")), AlreadyExistsError, "exists"),
    (answer(451, said("Repository access blocked")), DeniedError, "fix the named problem"),
    (answer(409, said("Conflict")), DeniedError, "Conflict"),
    (answer(400), DeniedError, "HTTP 400"),
    (answer(304), MovedError, "renamed"),
    (answer(307), MovedError, "renamed"),
    (answer(429), TransientError, "resets in 60 s"),
    (answer(403, said("API rate limit exceeded for user ID 1.")), TransientError, "rate limit"),
    (answer(403, said("abuse detection mechanism")), TransientError, "rate limit"),
    (answer(403, x_ratelimit_remaining="0"), TransientError, "rate limit"),
    (answer(403, retry_after="3"), TransientError, "resets in 3 s"),
    (
        answer(403, said("Repository was archived so is read-only.")),
        ForbiddenError,
        "an administrator",
    ),
    (
        answer(403, said("Unable to create comment because issue is locked.")),
        ForbiddenError,
        "an administrator",
    ),
    (
        answer(403, said("No."), x_accepted_github_permissions="issues=write; pull_requests=write"),
        ForbiddenError,
        "the token needs the permission issues=write; pull_requests=write",
    ),
    (
        answer(403, said("No."), x_accepted_oauth_scopes="public_repo, repo"),
        ForbiddenError,
        "the permission 'Issues: write' or the scope public_repo, repo",
    ),
    (answer(403, said("No.")), ForbiddenError, "(No); the token needs the permission 'Issues"),
    (answer(408), TransientError, "try again later"),
    (answer(500), TransientError, "(HTTP 500)"),
    (answer(502, said("Server\nError")), TransientError, "(Server Error)"),
    (Answer(503, {}, "<html>down</html>"), TransientError, "(HTTP 503)"),
]


@pytest.mark.parametrize(("found", "kind", "words"), TABLE, ids=lambda value: str(value)[:60])
def test_each_answer_is_one_kind_of_fault(
    found: Answer, kind: type[WorldError], words: str
) -> None:
    error = fault(found, "GET /repos/octo/calc/issues/1")
    assert type(error) is kind
    assert words in str(error)
    assert "\n" not in str(error)
    assert str(error).endswith(".")


@pytest.mark.parametrize("status", [200, 201, 204])
def test_what_went_well_is_no_fault(status: int) -> None:
    assert fault(answer(status), "GET /") is None


def test_the_right_is_named_by_the_path_where_github_names_none() -> None:
    refused = answer(403, said("Resource not accessible by integration"))
    assert "'Pull requests: write'" in str(fault(refused, "POST /repos/octo/calc/pulls"))
    permission = "GET /repos/octo/calc/collaborators/ann/permission"
    assert "'push access to the repository'" in str(fault(refused, permission))
    assert "more permissions" in str(fault(refused, "GET /user"))


ODD_BODIES = [
    "",
    "null",
    "[]",
    '"text"',
    '{"message": 7, "errors": "none"}',
    '{"message": null, "errors": [null, 7, {"message": []}]}',
    "[" * 100_000,
]


@pytest.mark.parametrize("body", ODD_BODIES, ids=lambda body: body[:20])
def test_an_error_of_any_shape_is_survived(body: str) -> None:
    assert "HTTP 422" in str(fault(Answer(422, {}, body), "POST /"))


def test_long_words_are_shortened() -> None:
    error = fault(answer(422, said("x" * 5000)), "POST /")
    assert len(str(error)) < 300


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


def test_a_body_is_read_into_its_shape() -> None:
    assert parsed(TypeAdapter(list[int]), Answer(200, {}, "[1, 2]"), "GET /") == [1, 2]


def test_a_body_that_is_not_json_may_be_json_next_time() -> None:
    with pytest.raises(TransientError, match="not JSON"):
        parsed(TypeAdapter(int), Answer(200, {}, "<html>"), "GET /")


@pytest.mark.parametrize(("body", "where"), [('{"a": "x"}', "a: "), ("7", "the whole: ")])
def test_a_body_of_another_shape_says_where_it_differs(body: str, where: str) -> None:
    with pytest.raises(UnavailableError, match=where) as caught:
        parsed(TypeAdapter(dict[str, int]), Answer(200, {}, body), "GET /")
    assert not isinstance(caught.value, TransientError)
