"""The client meets every fault a network and a server have, and speaks of it in one sentence."""

import gzip
import threading
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

from mulligan.domain.errors import ConfigError, DeniedError, ForbiddenError, UnavailableError
from mulligan.github.answers import AlreadyExistsError, NotFoundError
from mulligan.github.client import Client, RetrySettings
from mulligan.github.retries import REPEATS
from world.fake_sleep import FakeSleep
from world.faulty_http_server import FaultyServer, Reply, faulty_server

NUMBER = TypeAdapter(dict[str, int])
NUMBERS = TypeAdapter(tuple[int, ...])
FINE = Reply(content={"number": 1})


@pytest.fixture
def naps() -> FakeSleep:
    return FakeSleep()


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server([FINE]) as told:
        yield told


@pytest.fixture
def client(server: FaultyServer, naps: FakeSleep) -> Iterator[Client]:
    found = Client(
        server.url,
        lambda _: "t0ken",
        RetrySettings(attempts=3, timeout=1, sleep=naps, now=naps.now),
    )
    yield found
    found.close()


HTML = Reply(raw=b"<html>Bad gateway</html>")
PASSING = {
    "502": Reply(502, {"message": "Server Error"}),
    "500 without a word": Reply(500, raw=b""),
    "429": Reply(429, {"message": "Too many requests"}),
    "403 of a secondary limit": Reply(
        403, {"message": "You have exceeded a secondary rate limit."}
    ),
    "403 with Retry-After": Reply(403, {"message": "Slow down"}, {"Retry-After": "7"}),
    "a web page": HTML,
    "nothing at all": Reply(raw=b""),
    "half a body": Reply(raw=b'{"number"', length=500),
    "broken JSON": Reply(raw=b'{"number": 1'),
    "no UTF-8": Reply(raw=b'{"\xff": 1}'),
    "not ready yet": Reply(202, {}),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_read_is_repeated_until_github_has_recovered(
    fault: Reply, server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [fault, FINE]
    assert client.read(NUMBER, "/thing") == {"number": 1}
    assert server.asked == ["GET /thing"] * 2


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_read_gives_up_after_its_attempts(
    fault: Reply, server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [fault]
    with pytest.raises(UnavailableError) as caught:
        client.read(NUMBER, "/thing")
    assert len(server.seen) == 3
    assert "GET /thing" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_write_is_never_repeated(fault: Reply, server: FaultyServer, client: Client) -> None:
    server.replies[:] = [fault]
    with pytest.raises(UnavailableError, match="POST /thing"):
        client.write(NUMBER, "POST", "/thing", {"body": "hello"})
    assert server.asked == ["POST /thing"]


def test_a_silent_server_is_not_waited_for_for_ever(server: FaultyServer, client: Client) -> None:
    server.replies[:] = [Reply(content={"number": 1}, silence=1.2)]
    with pytest.raises(UnavailableError, match="took too long"):
        client.write(NUMBER, "POST", "/thing", {"body": "hello"})
    assert server.asked == ["POST /thing"]


def test_a_body_that_drips_does_not_hold_the_client_for_ever(
    server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [Reply(raw=b'{"number": 1, "more": 22222222222222}', drip=0.2), FINE]
    assert client.read(NUMBER, "/thing") == {"number": 1}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("verb", ["POST", "PATCH", "DELETE", "GET"])
def test_a_redirect_is_an_error_and_is_never_followed(
    status: int, verb: str, server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [Reply(status, {}, {"Location": f"{server.url}/elsewhere"}), FINE]
    with pytest.raises(UnavailableError, match="renamed"):
        _ = client.read(NUMBER, "/thing") if verb == "GET" else send(client, verb)
    assert server.asked == [f"{verb} /thing"]


def send(client: Client, verb: str) -> None:
    if verb == "DELETE":
        client.remove(NUMBER, "/thing")
    else:
        client.write(NUMBER, verb, "/thing", {})


LASTING = {
    401: DeniedError,
    403: ForbiddenError,
    404: NotFoundError,
    410: UnavailableError,
    422: DeniedError,
    451: DeniedError,
}


@pytest.mark.parametrize("status", LASTING)
def test_what_only_a_person_can_change_is_not_tried_again(
    status: int, server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [Reply(status, {"message": "No such luck"})]
    with pytest.raises(LASTING[status]):
        client.read(NUMBER, "/thing")
    with pytest.raises(LASTING[status]):
        client.write(NUMBER, "POST", "/thing", {})
    with pytest.raises(LASTING[status]):
        client.remove(NUMBER, "/thing")
    assert len(server.seen) == 3 * (1 + REPEATS if status == 404 else 1)


def test_what_is_not_found_once_is_asked_for_again(server: FaultyServer, client: Client) -> None:
    """GITHUB-3: a replica that lags behind is no reason to give an issue up, or a write."""
    for use in (
        lambda: client.read(NUMBER, "/thing"),
        lambda: client.write(NUMBER, "POST", "/thing", {}),
        lambda: client.remove(NUMBER, "/thing"),
    ):
        server.replies[:] = [Reply(404, {"message": "Not Found"}), Reply(content={"n": 7})]
        assert use() == {"n": 7}


def test_one_that_exists_already_is_told_apart(server: FaultyServer, client: Client) -> None:
    errors = [{"message": "A pull request already exists for octo:mulligan/issue-1."}]
    server.replies[:] = [Reply(422, {"message": "Validation Failed", "errors": errors})]
    with pytest.raises(AlreadyExistsError, match="A pull request already exists"):
        client.write(NUMBER, "POST", "/pulls", {})


def test_json_of_another_shape_is_an_error(server: FaultyServer, client: Client) -> None:
    server.replies[:] = [Reply(content={"number": "twelve"})]
    with pytest.raises(UnavailableError, match=r"number: .*github\.api_url"):
        client.read(NUMBER, "/thing")
    assert len(server.seen) == 1


def test_a_server_that_is_away_is_an_error_without_the_libraries_words(naps: FakeSleep) -> None:
    with faulty_server([FINE]) as gone:
        pass
    client = Client(gone.url, lambda _: None, RetrySettings(attempts=2, sleep=naps, now=naps.now))
    with pytest.raises(UnavailableError, match="connection refused; start it, or fix"):
        client.read(NUMBER, "/thing")
    client.close()


def test_https_to_a_server_without_it_is_an_error(server: FaultyServer, naps: FakeSleep) -> None:
    address = server.url.replace("http:", "https:")
    client = Client(address, lambda _: None, RetrySettings(attempts=1, sleep=naps, now=naps.now))
    with pytest.raises(UnavailableError, match="no TLS connection"):
        client.read(NUMBER, "/thing")
    client.close()


def test_waits_grow_and_stay_bounded(server: FaultyServer, naps: FakeSleep) -> None:
    server.replies[:] = [Reply(502)]
    client = Client(
        server.url,
        lambda _: "t",
        RetrySettings(attempts=9, longest_wait=10, sleep=naps, now=naps.now),
    )
    with pytest.raises(UnavailableError):
        client.read(NUMBER, "/thing")
    assert len(naps.taken) == 8
    assert 0.5 <= naps.taken[0] <= 1.5
    assert naps.taken[4] >= 8
    assert max(naps.taken) <= 11
    client.close()


def test_github_says_how_long_to_wait(
    server: FaultyServer, client: Client, naps: FakeSleep
) -> None:
    server.replies[:] = [Reply(429, {}, {"Retry-After": "7"}), FINE]
    client.read(NUMBER, "/thing")
    assert 7 <= naps.taken[0] <= 8


def test_a_wait_that_is_too_long_is_left_to_the_next_pass(
    server: FaultyServer, client: Client, naps: FakeSleep
) -> None:
    server.replies[:] = [Reply(429, {}, {"Retry-After": "3600"})]
    with pytest.raises(UnavailableError, match="resets in 3600 s"):
        client.read(NUMBER, "/thing")
    assert naps.taken == []
    assert len(server.seen) == 1


def page(server: FaultyServer, numbers: list[int], following: str = "", etag: str = "") -> Reply:
    headers = {"ETag": etag} if etag else {}
    if following:
        headers["Link"] = (
            f'<{server.url}/list?page=1>; rel="prev", <{server.url}{following}>; rel="next"'
        )
    return Reply(content=numbers, headers=headers)


def test_a_list_is_read_page_after_page(server: FaultyServer, client: Client) -> None:
    server.replies[:] = [page(server, [1, 2], "/list?per_page=2&page=2"), page(server, [3])]
    assert client.read_all(NUMBERS, "/list", {"state": "open"}) == [1, 2, 3]
    assert [seen.path for seen in server.seen] == [
        "/list?per_page=100&state=open",
        "/list?page=2&per_page=2",
    ]


def test_pages_work_under_the_prefix_of_github_enterprise(
    server: FaultyServer, naps: FakeSleep
) -> None:
    client = Client(f"{server.url}/api/v3/", lambda _: "t", RetrySettings(sleep=naps, now=naps.now))
    server.replies[:] = [page(server, [1], "/api/v3/list?page=2"), page(server, [2])]
    assert client.read_all(NUMBERS, "/list") == [1, 2]
    assert server.asked == ["GET /api/v3/list"] * 2
    client.close()


@pytest.mark.parametrize("host", ["http://evil.example/list?page=2", "https://127.0.0.1/list"])
def test_a_list_is_never_followed_to_another_host(
    host: str, server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [Reply(content=[1], headers={"Link": f'<{host}>; rel="next"'})]
    with pytest.raises(UnavailableError, match=r"does not read; check github\.api_url"):
        client.read_all(NUMBERS, "/list")
    assert len(server.seen) == 1


def test_a_list_without_end_is_an_error(server: FaultyServer, client: Client) -> None:
    server.replies[:] = [page(server, [1], "/list?page=2")]
    with pytest.raises(UnavailableError, match="does not end"):
        client.read_all(NUMBERS, "/list")


def test_a_compressed_answer_is_read(server: FaultyServer, client: Client) -> None:
    packed = gzip.compress(b'{"number": 12}' + b" " * 200_000)
    server.replies[:] = [Reply(raw=packed, headers={"Content-Encoding": "gzip"})]
    assert client.read(NUMBER, "/thing") == {"number": 12}
    assert "gzip" in server.seen[0].headers["accept-encoding"]


def test_what_was_not_asked_for_longest_is_forgotten_first(server: FaultyServer) -> None:
    client = Client(server.url, lambda _: "t", RetrySettings(cache_chars=len("[1]") * 2))
    server.replies[:] = [page(server, [1], etag='"one"')]
    for path in ("/a", "/b", "/a", "/c", "/a", "/b"):
        client.read_all(NUMBERS, path)
    sent = [seen.headers.get("if-none-match") for seen in server.seen]
    assert sent == [None, None, '"one"', None, '"one"', None]
    client.close()


def test_an_unchanged_object_is_asked_for_by_its_etag(server: FaultyServer, client: Client) -> None:
    server.replies[:] = [
        Reply(content={"number": 1}, headers={"ETag": '"one"'}),
        Reply(304, raw=b""),
        Reply(content={"number": 2}, headers={"ETag": '"two"'}),
        Reply(304, raw=b""),
    ]
    assert [client.read(NUMBER, "/thing")["number"] for _ in range(4)] == [1, 1, 2, 2]
    sent = [seen.headers.get("if-none-match") for seen in server.seen]
    assert sent == [None, '"one"', '"one"', '"two"']


def test_an_unchanged_list_is_asked_for_by_its_etag(server: FaultyServer, client: Client) -> None:
    etag, unchanged = 'W/"one"', Reply(304, raw=b"")
    server.replies[:] = [
        page(server, [1], "/list?page=2", etag),
        page(server, [2], etag='"two"'),
        unchanged,
        page(server, [3], etag='"three"'),
    ]
    assert client.read_all(NUMBERS, "/list") == [1, 2]
    assert client.read_all(NUMBERS, "/list") == [1, 3]
    sent = [seen.headers.get("if-none-match") for seen in server.seen]
    assert sent == [None, None, etag, '"two"']


def test_one_look_reads_an_address_once_and_again_after_a_write(
    server: FaultyServer, client: Client
) -> None:
    server.replies[:] = [Reply(content={"number": each}) for each in range(1, 8)]
    with client.cached_reads():
        with client.cached_reads():
            seen = [client.read(NUMBER, "/repos/o/n/issues/1") for _ in range(2)]
        facts = client.read(NUMBER, "/repos/o/n")
        client.write(NUMBER, "POST", "/repos/o/n/issues/1/labels", {})
        seen.append(client.read(NUMBER, "/repos/o/n/issues/1"))
        assert client.read(NUMBER, "/repos/o/n") == facts
        client.write(NUMBER, "POST", "/repos/o/n/issues/1/comments", {})
        seen.append(client.read(NUMBER, "/repos/o/n/issues/1"))
    seen.append(client.read(NUMBER, "/repos/o/n/issues/1"))
    assert [each["number"] for each in seen] == [1, 1, 4, 4, 6]


def test_a_server_without_etags_is_asked_plainly(server: FaultyServer, client: Client) -> None:
    server.replies[:] = [page(server, [1])]
    assert client.read_all(NUMBERS, "/list") == [1]
    assert client.read_all(NUMBERS, "/list") == [1]
    assert "if-none-match" not in server.seen[1].headers


def test_each_request_says_who_asks_and_in_which_tongue(
    server: FaultyServer, client: Client
) -> None:
    client.read(NUMBER, "/thing")
    headers = server.seen[0].headers
    assert headers["authorization"] == "Bearer t0ken"
    assert headers["user-agent"] == "mulligan"
    assert headers["accept"] == "application/vnd.github+json"


def test_a_token_may_change_while_mulligan_runs(server: FaultyServer, naps: FakeSleep) -> None:
    tokens = ["first", "first", "second"]
    client = Client(server.url, lambda _: tokens.pop(0), RetrySettings(sleep=naps, now=naps.now))
    for _ in range(3):
        client.read(NUMBER, "/thing")
    sent = [seen.headers["authorization"] for seen in server.seen]
    assert sent == ["Bearer first", "Bearer first", "Bearer second"]
    client.close()


def test_threads_do_not_share_a_connection(server: FaultyServer, client: Client) -> None:
    found: list[dict[str, int]] = []
    threads = [
        threading.Thread(target=lambda: found.append(client.read(NUMBER, "/thing")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert found == [{"number": 1}] * 8


@pytest.mark.parametrize("address", ["api.github.com", "ftp://github.com", "https://", ""])
def test_an_address_that_is_none_is_a_matter_of_the_configuration(address: str) -> None:
    with pytest.raises(ConfigError, match=r"github\.api_url"):
        Client(address, lambda _: None)
