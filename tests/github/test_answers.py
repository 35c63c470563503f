"""Every answer of GitHub's means one thing, and its message says what to do."""

import json
from collections.abc import Mapping

import pytest
from pydantic import TypeAdapter, ValidationError

from mulligan.domain.errors import (
    DeniedError,
    ForbiddenError,
    RefusedError,
    UnavailableError,
    WorldError,
)
from mulligan.github.answers import (
    AlreadyExistsError,
    DeletedError,
    MovedError,
    NotFoundError,
    fault,
    not_found,
    parsed,
)
from mulligan.github.graphql import Actor, StageAnswer, answered, closers_query
from mulligan.github.retries import TransientError
from mulligan.github.shapes import CHECK_RUNS, STATUSES, Answer, Labels, leads_to

pytestmark = pytest.mark.pure


def answer(status: int, content: object = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, json.dumps(content if content is not None else {}))


def said(words: str, *errors: object) -> Mapping[str, object]:
    return {"message": words, "errors": list(errors)}


TABLE: list[tuple[Answer, type[WorldError], str]] = [
    (answer(401, said("Bad credentials")), RefusedError, "refused the token (Bad credentials)"),
    (answer(404), NotFoundError, "check the name"),
    (answer(410, said("This issue was deleted")), DeletedError, "deleted"),
    (answer(410, said("Issues are disabled for this repo")), UnavailableError, "Issues are dis"),
    (answer(422, said("Validation Failed", "is invalid")), DeniedError, "is invalid"),
    (
        answer(422, said("Validation Failed", {"field": "name", "code": "already_exists"})),
        AlreadyExistsError,
        "name already_exists",
    ),
    (answer(422, said("Reference already exists")), AlreadyExistsError, "exists"),
    (answer(451, said("Repository access blocked")), DeniedError, "fix the named problem"),
    (answer(409, said("Conflict")), TransientError, "Conflict"),
    (answer(422, said("was submitted too quickly")), TransientError, "too quickly"),
    (answer(422, said("Body is too long (maximum is 65536)")), DeniedError, "report this as a bug"),
    (answer(413, said("Request Entity Too Large")), DeniedError, "report this as a bug"),
    (answer(400, said("Problems parsing JSON")), DeniedError, "report this as a bug"),
    (Answer(403, {}, "<html>Forbidden</html>"), TransientError, "(HTTP 403)"),
    (Answer(422, {}, ""), TransientError, "(HTTP 422)"),
    (Answer(401, {}, "<html>Sign in</html>"), TransientError, "(HTTP 401)"),
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
    (
        answer(403, said("GitHub Actions is not permitted to create or approve pull requests.")),
        ForbiddenError,
        "Actions, General: Allow GitHub Actions to create",
    ),
    (answer(403, said("Your IP is not on the IP allow list.")), ForbiddenError, "allow list)."),
    (
        answer(403, said("Grant access."), x_github_sso="required; url=u"),
        ForbiddenError,
        "access).",
    ),
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


def test_a_body_is_read_into_its_shape() -> None:
    assert parsed(TypeAdapter(list[int]), Answer(200, {}, "[1, 2]"), "GET /") == [1, 2]


def test_the_fault_of_an_answer_is_raised_instead_of_reading_its_body() -> None:
    with pytest.raises(NotFoundError, match="check the name"):
        parsed(TypeAdapter(list[int]), Answer(404, {}, "[1, 2]"), "GET /")


@pytest.mark.parametrize(
    ("to", "renames"),
    [
        ("https://api.github.com/repositories/7/issues/1", True),
        ("https://api.github.com/repos/octo/other/issues/2", False),
        ("", False),
    ],
)
def test_a_redirect_to_a_repository_by_its_id_is_a_rename(to: str, *, renames: bool) -> None:
    error = fault(answer(301, location=to), "GET /repos/octo/calc/issues/1")
    assert isinstance(error, MovedError)
    assert error.renames is renames


RATE_LIMITED = {"type": "RATE_LIMITED", "message": "API rate limit exceeded"}
ERRORS: list[tuple[object, type[WorldError], str]] = [
    ([RATE_LIMITED], TransientError, "rate limit stopped POST /graphql"),
    ([{"type": "FORBIDDEN", "message": "No access."}], ForbiddenError, "(No access); the token"),
    ([{"type": "INSUFFICIENT_SCOPES", "message": "x"}], ForbiddenError, "needs to read pulls."),
    ([{"message": "Something went wrong."}], TransientError, "failed at POST /graphql"),
    ([{"message": "a"}, {"message": "b\nc"}], UnavailableError, "POST /graphql (a; b c); try"),
    (["no object", {"message": "Odd."}], UnavailableError, "(Odd); try again later."),
]


@pytest.mark.parametrize(("errors", "kind", "words"), ERRORS)
def test_graphql_reports_errors_with_status_200(
    errors: object, kind: type[WorldError], words: str
) -> None:
    found = answer(200, {"data": None, "errors": errors}, retry_after="7")
    with pytest.raises(WorldError) as caught:
        answered(TypeAdapter(object), found, "to read pulls")
    assert type(caught.value) is kind
    assert words in str(caught.value)


def test_a_graphql_answer_without_errors_is_read() -> None:
    shape = TypeAdapter(dict[str, object])
    found: dict[str, object] = {"data": {"viewer": None}, "errors": []}
    assert answered(shape, answer(200, found)) == found
    with pytest.raises(TransientError, match="not JSON"):
        answered(shape, Answer(200, {}, "<html>"))
    with pytest.raises(DeniedError, match="Bad credentials"):
        answered(shape, answer(401, {**said("Bad credentials"), "errors": [RATE_LIMITED]}))


@pytest.mark.parametrize(
    ("kind", "login", "account"),
    [
        ("User", "ann", "ann"),
        ("Bot", "mulligan", "mulligan[bot]"),
        ("Bot", "mulligan[bot]", "mulligan[bot]"),
        ("User", "robot", "robot"),
    ],
)
def test_an_account_of_graphql_has_the_name_that_rest_gives_it(
    kind: str, login: str, account: str
) -> None:
    found = Actor.model_validate({"__typename": kind, "login": login, "databaseId": 7}).account
    assert (found.login, found.id, found.is_bot) == (account, 7, kind == "Bot")


EDITED = {"issueComment": {"databaseId": 7, "number": 7, "body": "It waits.\r\n"}}
ADDED = {"labelable": {"labels": {"nodes": [{"name": "Mulligan:running"}, {"name": "bug"}]}}}


@pytest.mark.parametrize(
    ("data", "labels", "shows"),
    [
        ({"edited": EDITED, "added": ADDED}, ["mulligan:running"], True),
        ({"edited": EDITED, "added": ADDED}, ["mulligan:review"], False),
        ({"edited": EDITED, "added": None}, [], True),
        ({"edited": EDITED, "added": None}, ["bug"], False),
    ],
)
def test_a_stage_is_shown_if_the_comment_and_the_labels_say_so(
    data: dict[str, object], labels: list[str], *, shows: bool
) -> None:
    found = StageAnswer.model_validate({"data": data})
    assert found.shows("7", "It waits.", labels) is shows
    assert not found.shows("8", "It waits.", labels)
    assert not found.shows("7", "It runs.", labels)


def test_a_label_is_read_as_an_object_or_as_a_name() -> None:
    found = TypeAdapter(Labels).validate_json('[{"name": "bug", "color": "red"}, "mulligan"]')
    assert [each.name for each in found] == ["bug", "mulligan"]


def test_check_runs_and_statuses_are_taken_out_of_the_object_that_counts_them() -> None:
    run = {"id": 1, "name": "tests", "status": "queued"}
    assert [each.id for each in CHECK_RUNS.validate_python({"check_runs": [run]})] == [1]
    status = {"id": 2, "context": "ci", "state": "pending", "description": None}
    assert [each.description for each in STATUSES.validate_python({"statuses": [status]})] == [""]
    with pytest.raises(ValidationError):
        CHECK_RUNS.validate_python("none")


@pytest.mark.parametrize(
    ("url", "leads"),
    [
        ("https://api.github.com/repos/octo/calc/issues/1", True),
        ("http://host/api/v3/repos/Octo/Calc/issues/1?x=2", True),
        ("https://api.github.com/repos/octo/other/issues/1", False),
        ("", False),
    ],
)
def test_an_address_is_known_by_its_path_on_any_server(url: str, *, leads: bool) -> None:
    assert leads_to(url, "/repos/octo/calc/issues/1") is leads


def test_a_body_that_is_not_json_may_be_json_next_time() -> None:
    with pytest.raises(TransientError, match="not JSON"):
        parsed(TypeAdapter(int), Answer(200, {}, "<html>"), "GET /")


@pytest.mark.parametrize(("body", "where"), [('{"a": "x"}', "a: "), ("7", "the whole: ")])
def test_a_body_of_another_shape_says_where_it_differs(body: str, where: str) -> None:
    with pytest.raises(UnavailableError, match=where) as caught:
        parsed(TypeAdapter(dict[str, int]), Answer(200, {}, body), "GET /")
    assert not isinstance(caught.value, TransientError)


def test_what_decides_and_is_not_found_is_named() -> None:
    assert not_found("the issue o/r#3").what == "the issue o/r#3"
    assert str(not_found("the issue o/r#3")).startswith("GitHub does not find the issue o/r#3 (404")


def test_a_field_that_a_server_lacks_is_not_found() -> None:
    problem = {"message": "No field 'x'", "extensions": {"code": "undefinedField"}}
    with pytest.raises(NotFoundError, match="lacks a field"):
        answered(TypeAdapter(StageAnswer), answer(200, {"errors": [problem]}))


def test_one_query_asks_for_several_issues() -> None:
    query = closers_query([3, 5])
    assert "i3: issue(number: 3)" in query
    assert "i5: issue(number: 5)" in query
