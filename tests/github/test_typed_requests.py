"""Reads and writes of one object: ETags, limits, checks and faults hold for all of them."""

from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest
import requests
import responses

from mulligan.domain.errors import DeniedError, ForbiddenError, LeaseLostError, UnavailableError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client, RetrySettings
from mulligan.github.retries import REPEATS
from mulligan.github.shapes import COMMENT, ISSUE, CommentShape, IssueShape
from mulligan.text.redact import Redactor
from world.fake_sleep import FakeSleep

NAME, HOST = "acme/tools", "https://api.github.com:443"
PATH = f"/repos/{NAME}/issues/7"
ISSUE_URL = f"{HOST}{PATH}"
COMMENTS_URL = f"{ISSUE_URL}/comments"
FOUND = {
    "number": 7,
    "title": "Mend it",
    "state": "open",
    "html_url": "https://github.com/acme/tools/issues/7",
    "url": f"https://api.github.com/repos/{NAME}/issues/7",
}
WRITTEN = {
    "id": 77,
    "body": "Hello",
    "created_at": "2025-03-04T12:00:00Z",
    "html_url": "https://github.com/acme/tools/issues/7#issuecomment-77",
    "issue_url": f"https://api.github.com/repos/{NAME}/issues/7",
}
SECRET = "word-of-the-operator"


@pytest.fixture
def github() -> Iterator[responses.RequestsMock]:
    with responses.RequestsMock() as told:
        yield told


@pytest.fixture
def naps() -> FakeSleep:
    return FakeSleep()


@pytest.fixture
def client(naps: FakeSleep) -> Iterator[Client]:
    settings = RetrySettings(attempts=3, timeout=1, sleep=naps, now=naps.now)
    found = Client(
        "https://api.github.com", lambda _: "t0ken", settings, redactor=Redactor((SECRET,))
    )
    yield found
    found.close()


def read(client: Client) -> IssueShape:
    return client.read(ISSUE, PATH)


def write(client: Client, text: str = "Hello") -> CommentShape:
    return client.write(COMMENT, "POST", f"{PATH}/comments", {"body": text})


def test_one_object_is_one_request_and_an_unchanged_one_costs_no_quota(
    github: responses.RequestsMock, client: Client
) -> None:
    github.get(ISSUE_URL, json=FOUND, headers={"ETag": '"1"'})
    github.get(ISSUE_URL, status=304, headers={"ETag": '"1"'})
    for _ in range(2):
        assert read(client).title == "Mend it"
    assert [one.request.headers.get("If-None-Match") for one in github.calls] == [None, '"1"']
    assert {one.request.headers["Authorization"] for one in github.calls} == {"Bearer t0ken"}


LIES: dict[str, str] = {
    "a web page": "<html>Welcome</html>",
    "nothing at all": "",
    "broken JSON": '{"id": 77',
    "null": "null",
    "a list": "[]",
    "a number": "7",
    "fields that are missing": '{"id": 77}',
    "fields of other kinds": '{"id": "x", "user": 5, "created_at": [], "html_url": {}}',
}


@pytest.mark.parametrize("body", LIES.values(), ids=LIES.keys())
def test_a_lie_about_a_write_is_an_error_and_the_write_is_not_repeated(
    body: str, github: responses.RequestsMock, client: Client
) -> None:
    github.post(COMMENTS_URL, body=body, status=201)
    with pytest.raises(UnavailableError, match="POST /repos/acme/tools/issues/7/comments"):
        write(client)
    assert len(github.calls) == 1


@pytest.mark.parametrize("body", LIES.values(), ids=LIES.keys())
def test_a_lie_about_what_is_read_is_an_error(
    body: str, github: responses.RequestsMock, client: Client
) -> None:
    github.get(ISSUE_URL, body=body)
    with pytest.raises(UnavailableError, match="GET /repos/acme/tools/issues/7"):
        read(client)


REFUSALS = {401: DeniedError, 403: ForbiddenError, 404: NotFoundError, 422: DeniedError}


@pytest.mark.parametrize("use", [read, write])
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_is_told_and_not_tried_again(
    status: int,
    use: Callable[[Client], object],
    github: responses.RequestsMock,
    client: Client,
) -> None:
    place = github.get if use is read else github.post
    place(ISSUE_URL if use is read else COMMENTS_URL, json={"message": "No"}, status=status)
    with pytest.raises(REFUSALS[status]):
        use(client)
    assert len(github.calls) == (1 + REPEATS if status == 404 else 1)


LIMITS: dict[str, tuple[int, dict[str, str], dict[str, str]]] = {
    "429": (429, {}, {"message": "Too many requests"}),
    "a primary limit": (
        403,
        {"x-ratelimit-remaining": "0"},
        {"message": "API rate limit exceeded"},
    ),
    "a secondary limit": (403, {"Retry-After": "7"}, {"message": "Slow down"}),
    "a server that fails": (502, {}, {"message": "Server Error"}),
}


@pytest.mark.parametrize(("status", "headers", "body"), LIMITS.values(), ids=LIMITS.keys())
def test_a_read_waits_for_a_limit_and_a_write_is_sent_once(
    status: int,
    headers: dict[str, str],
    body: dict[str, str],
    github: responses.RequestsMock,
    client: Client,
    naps: FakeSleep,
) -> None:
    github.get(ISSUE_URL, json=body, status=status, headers=headers)
    github.get(ISSUE_URL, json=FOUND)
    assert read(client).number == 7
    assert naps.taken
    github.post(COMMENTS_URL, json=body, status=status, headers=headers)
    with pytest.raises(UnavailableError):
        write(client)
    assert [one.request.method for one in github.calls] == ["GET", "GET", "POST"]


FAULTS = {
    "nothing listens": requests.ConnectionError(ConnectionRefusedError()),
    "silence": requests.ReadTimeout(),
    "half a body": requests.exceptions.ChunkedEncodingError(),
    "a false certificate": requests.exceptions.SSLError(),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_of_the_network_is_one_sentence(
    fault: Exception, github: responses.RequestsMock, client: Client
) -> None:
    github.post(COMMENTS_URL, body=fault)
    with pytest.raises(UnavailableError, match=r"^GitHub at api\.github\.com did not answer POST"):
        write(client)
    assert len(github.calls) == 1


@pytest.mark.parametrize("use", [read, write])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_an_error_and_is_never_followed(
    status: int,
    use: Callable[[Client], object],
    github: responses.RequestsMock,
    client: Client,
) -> None:
    place = github.get if use is read else github.post
    there = {"Location": f"{HOST}/repositories/1/issues/7"}
    place(ISSUE_URL if use is read else COMMENTS_URL, status=status, headers=there)
    with pytest.raises(UnavailableError, match="renamed"):
        use(client)
    assert len(github.calls) == 1


def test_a_write_is_checked_and_redacted_and_a_read_is_not(
    github: responses.RequestsMock, client: Client
) -> None:
    def lost() -> None:
        message = "Another worker has taken over."
        raise LeaseLostError(message)

    github.get(ISSUE_URL, json=FOUND)
    assert read(client.guarded(lost)).number == 7
    with pytest.raises(LeaseLostError):
        write(client.guarded(lost))
    github.post(COMMENTS_URL, json=WRITTEN, status=HTTPStatus.CREATED)
    assert write(client, f"It is {SECRET}.").id == 77
    assert [one.request.method for one in github.calls] == ["GET", "POST"]
    assert github.calls[1].request.body == '{"body": "It is [redacted]."}'
