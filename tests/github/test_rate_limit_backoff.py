"""A limit is met once: whoever uses the token leaves GitHub alone, and hears of a shutdown."""

import threading
import time
from collections.abc import Callable, Generator

import pytest
from pydantic import TypeAdapter

from mulligan.domain.errors import MulliganError, ShutdownError, UnavailableError, WithdrawnError
from mulligan.github.client import Client, RetrySettings
from mulligan.github.connection import Transport
from mulligan.github.rate_limits import MAX_BACKOFF, MAX_DEFAULT_BACKOFF, Backoff, Backoffs
from mulligan.sandbox.cancellation import CLOSING, CURRENT_CANCELLATION, SHUTDOWN, Cancellation
from world.fake_sleep import FakeSleep
from world.faulty_http_server import FaultyServer, Reply, faulty_server

NUMBER = TypeAdapter(dict[str, int])
FINE = Reply(content={"number": 1})


@pytest.fixture
def server() -> Generator[FaultyServer]:
    with faulty_server([FINE]) as told:
        yield told


def limit(**headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(403, {"message": "You have exceeded a secondary rate limit."}, named)


def test_one_clients_limit_is_the_others_too(server: FaultyServer) -> None:
    server.replies[:] = [limit(retry_after="3600"), FINE]
    shared, naps = Transport(Backoffs()), FakeSleep()
    timeout = RetrySettings(sleep=naps, now=naps.now)
    one, two = (Client(server.url, lambda _: "t", timeout, shared) for _ in range(2))
    other = Client(server.url, lambda _: "another", timeout, shared)
    with pytest.raises(UnavailableError, match="resets in 3600 s"):
        one.read(NUMBER, "/thing")
    for verb in ("GET", "POST", "DELETE"):
        with pytest.raises(UnavailableError, match=f"{verb} /thing; it resets in 3600 s"):
            ask(two, verb)
    assert len(server.seen) == 1
    assert other.read(NUMBER, "/thing") == {"number": 1}
    naps(3600)
    assert two.read(NUMBER, "/thing") == {"number": 1}
    for client in (one, two, other):
        client.close()


def ask(client: Client, verb: str) -> None:
    match verb:
        case "GET":
            client.read(NUMBER, "/thing")
        case "DELETE":
            client.remove(NUMBER, "/thing")
        case _:
            client.write(NUMBER, verb, "/thing", {})


@pytest.mark.parametrize(("headers", "wait"), [({"retry_after": "7"}, 7), ({}, 60)])
def test_a_write_waits_for_what_a_read_met(
    headers: dict[str, str], wait: float, server: FaultyServer
) -> None:
    server.replies[:] = [limit(**headers), FINE]
    naps = FakeSleep()
    client = Client(server.url, lambda _: "t", RetrySettings(1, sleep=naps, now=naps.now))
    with pytest.raises(UnavailableError, match=f"resets in {wait} s"):
        client.read(NUMBER, "/thing")
    client.write(NUMBER, "POST", "/thing", {})
    assert naps.taken == [wait]
    client.close()


def test_a_write_that_met_a_limit_is_not_repeated(server: FaultyServer) -> None:
    server.replies[:] = [limit(retry_after="1"), FINE]
    naps = FakeSleep()
    client = Client(server.url, lambda _: "t", RetrySettings(sleep=naps, now=naps.now))
    with pytest.raises(UnavailableError, match="rate limit"):
        client.write(NUMBER, "POST", "/thing", {})
    assert server.asked == ["POST /thing"]
    client.close()


def close() -> None:
    CLOSING.set()


def shut_down() -> None:
    SHUTDOWN.set()


@pytest.fixture
def undone() -> Generator[None]:
    yield
    CLOSING.clear()
    SHUTDOWN.clear()


def in_the_background(
    client: Client, stop: Cancellation, verb: str = "GET"
) -> Callable[[], MulliganError]:
    """Ask, as a worker does; give what waits for the error that this ends with."""
    raised = list[MulliganError]()

    def work() -> None:
        CURRENT_CANCELLATION.set(stop)
        try:
            ask(client, verb)
        except MulliganError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()

    def result() -> MulliganError:
        thread.join(240)
        assert raised, "it still waits"
        return raised[0]

    return result


@pytest.mark.parametrize("end", [close, shut_down])
@pytest.mark.parametrize("reply", [Reply(502), limit(retry_after="30")], ids=["502", "limit"])
@pytest.mark.usefixtures("undone")
def test_a_wait_ends_at_a_shutdown(
    end: Callable[[], None], reply: Reply, server: FaultyServer
) -> None:
    server.replies[:] = [reply]
    client = Client(server.url, lambda _: "t", RetrySettings(first_wait=30))
    result = in_the_background(client, Cancellation())
    while not server.seen:
        time.sleep(0.01)
    end()
    assert isinstance(result(), ShutdownError)
    client.close()


def test_a_wait_ends_when_the_request_is_withdrawn(server: FaultyServer) -> None:
    server.replies[:] = [limit(retry_after="30")]
    client, stop = Client(server.url, lambda _: "t", RetrySettings()), Cancellation()
    result = in_the_background(client, stop)
    while not server.seen:
        time.sleep(0.01)
    stop.cancel(WithdrawnError("The issue was closed."))
    assert str(result()) == "The issue was closed."
    client.close()


@pytest.mark.pure
def test_a_pause_is_as_long_as_the_longest_that_was_asked_for() -> None:
    pause = Backoff()
    assert pause.remaining(100) == 0
    pause.begin(100, 10)
    pause.begin(101, 3)
    assert (pause.remaining(101), pause.remaining(110)) == (9, 0)
    pause.begin(110, 10**9)
    assert pause.remaining(110) == MAX_BACKOFF


@pytest.mark.pure
def test_a_limit_that_comes_again_without_a_word_is_given_ever_longer() -> None:
    pause, waits, now = Backoff(), list[float](), 0.0
    for _ in range(6):
        pause.begin(now, None)
        waits.append(pause.remaining(now))
        # Other threads hear the same, and what was under way still comes back.
        pause.begin(now + 1, None)
        pause.reset(now + 1)
        now += waits[-1]
    assert waits == [60, 120, 240, 480, MAX_DEFAULT_BACKOFF, MAX_DEFAULT_BACKOFF]
    pause.reset(now)
    pause.begin(now, None)
    assert pause.remaining(now) == 60


@pytest.mark.pure
def test_a_pause_is_forgotten_with_the_last_who_uses_the_token() -> None:
    pauses = Backoffs()
    kept = pauses.of("https://api", "t")
    kept.begin(0, 10)
    assert pauses.of("https://api", "t") is kept
    assert pauses.of("https://api", "u").remaining(0) == 0
    assert pauses.of("https://elsewhere", "t").remaining(0) == 0
    del kept
    assert pauses.of("https://api", "t").remaining(0) == 0
