"""Where the dashboard is served can be written as an address, as off, or with all its keys."""

import pytest
from pydantic import ValidationError

from mulligan.config.operator import Dashboard, Operator

pytestmark = pytest.mark.pure


def read(written: object) -> Dashboard:
    given = {"repositories": [{"name": "octo/one"}], "agent": {"command": ["true"]}}
    return Operator.model_validate({**given, "dashboard": written}).dashboard


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ({}, ("127.0.0.1", 8787)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),  # noqa: S104 - that is asked for
        ("[::1]:0", ("::1", 0)),
        ("localhost:9000", ("localhost", 9000)),
        ({"listen": "127.0.0.1:1"}, ("127.0.0.1", 1)),
        ("off", None),
        (False, None),
        ({"listen": False}, None),
    ],
)
def test_an_address_or_none(written: object, address: tuple[str, int] | None) -> None:
    assert read(written).address == address


@pytest.mark.parametrize("written", ["8787", "127.0.0.1", "x:y", "127.0.0.1:70000", ":80", "on"])
def test_what_is_no_address_is_refused(written: str) -> None:
    with pytest.raises(ValidationError, match="write HOST:PORT"):
        read(written)


def test_names_stand_without_scheme_and_port() -> None:
    assert read({"hosts": ["bot.example"]}).hosts == ("bot.example",)
    with pytest.raises(ValidationError, match="without https:// and port"):
        read({"hosts": ["https://bot.example"]})


def test_where_people_open_it_is_the_address_of_a_website() -> None:
    assert read({"url": "https://bot.example/mulligan/"}).url == "https://bot.example/mulligan"
    assert read({"url": "http://[::1]:8787"}).url == "http://[::1]:8787"
    for written in ("bot.example", "javascript:alert(1)", "https://bot.example/) [x](", "https://"):
        with pytest.raises(ValidationError, match="such as https://HOST"):
            read({"url": written})
