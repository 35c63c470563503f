"""A page on loopback waits for one answer, and for no other."""

import threading
from datetime import timedelta

import pytest
import requests

from mulligan.domain.errors import UnavailableError
from mulligan.interfaces.cli.init import NOWHERE, SECOND, THANKS, WRONG_STATE, oauth_callback_server

SOON = timedelta(seconds=60)


def get(url: str, host: str = "") -> tuple[int, str]:
    answer = requests.get(url, headers={"Host": host} if host else {}, timeout=120)
    return answer.status_code, answer.text


def test_only_the_answer_with_the_right_state_counts_and_only_once() -> None:
    with oauth_callback_server() as porch:
        porch.page = "the page"
        assert get(porch.address) == (200, "the page")
        assert get(f"{porch.address}favicon.ico") == (404, NOWHERE)
        for query in ("code=a&state=wrong", "code=a", f"state={porch.state}", ""):
            assert get(f"{porch.back}?{query}") == (400, WRONG_STATE)
        assert get(f"{porch.back}?code=a/b&state={porch.state}") == (400, WRONG_STATE)
        assert get(f"{porch.back}?code=the-code&state={porch.state}") == (200, THANKS)
        assert get(f"{porch.back}?code=other&state={porch.state}") == (409, SECOND)
        assert porch.wait(SOON) == "the-code"
    with pytest.raises(requests.ConnectionError):
        get(porch.address)
    assert "porch" not in {each.name for each in threading.enumerate()}


def test_a_page_that_goes_by_another_name_learns_nothing() -> None:
    with oauth_callback_server() as porch:
        porch.page = "the page"
        assert get(porch.address, "evil.example") == (404, NOWHERE)


def test_the_time_is_limited() -> None:
    with (
        oauth_callback_server() as porch,
        pytest.raises(UnavailableError, match="within 50ms, so nothing"),
    ):
        porch.wait(timedelta(milliseconds=50))
