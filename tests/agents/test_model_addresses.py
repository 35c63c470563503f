"""How an agent is pointed at its model: by addresses of the proxy inside, with the keys outside."""

import pytest

from mulligan.agents.adapters import BUILT_IN
from mulligan.agents.environment import variables_inside
from mulligan.agents.invocation import (
    allowed_for,
    choose_network,
    direct_arguments,
    proxy_arguments,
)
from mulligan.config.adapters import Adapter
from mulligan.domain.errors import ConfigError, MisconfiguredError
from mulligan.domain.host import Network
from mulligan.sandbox.egress_rules import Allowed, Route

pytestmark = pytest.mark.pure
PORT = 3128
INSIDE = f"http://127.0.0.1:{PORT}"
CLAUDE, CODEX, MINI = (BUILT_IN[name] for name in ("claude", "codex", "mini"))
UNKNOWN = Adapter(program="tinker")
ANTHROPIC = "https://api.anthropic.com"


def routes(adapter: Adapter, **environment: str) -> tuple[Route, ...]:
    return allowed_for(adapter, environment, (), PORT).routes


@pytest.mark.parametrize(
    ("variable", "header", "value"),
    [
        ("ANTHROPIC_API_KEY", "x-api-key", "k"),
        ("ANTHROPIC_AUTH_TOKEN", "Authorization", "Bearer k"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "Authorization", "Bearer k"),
    ],
)
def test_each_key_has_its_header(variable: str, header: str, value: str) -> None:
    (route,) = routes(CLAUDE, **{variable: "k\n"})
    assert (route.origin, route.header, route.value) == (ANTHROPIC, header, value)
    # An answer may repeat the key without what is before it.
    assert route.key == "k"


@pytest.mark.parametrize("key", ["sk\nX-Other: 1", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_told_and_not_shown(key: str) -> None:
    with pytest.raises(
        MisconfiguredError,
        match=r"ANTHROPIC_API_KEY is not a valid key: it cannot be sent in a header",
    ) as told:
        routes(CLAUDE, ANTHROPIC_API_KEY=key)
    assert key not in str(told.value)


def test_without_a_key_nothing_is_added() -> None:
    assert routes(CLAUDE) == (Route("anthropic", ANTHROPIC),)


def test_the_operators_address_goes_before_the_usual_one() -> None:
    (route,) = routes(CLAUDE, ANTHROPIC_BASE_URL="http://u:p@10.0.0.5:8080/team/", X="y")
    assert route == Route("anthropic", "http://10.0.0.5:8080")


def test_of_several_services_only_those_are_reached_that_are_set_up() -> None:
    assert [route.name for route in routes(MINI, OPENAI_API_KEY="k")] == ["openai"]
    assert [route.name for route in routes(MINI)] == ["anthropic", "openai", "openrouter"]


@pytest.mark.parametrize("url", ["ftp://x", "x", "https://", "https://h:0x", "https://h:0"])
def test_an_address_that_is_none_is_named(url: str) -> None:
    with pytest.raises(
        MisconfiguredError, match="ANTHROPIC_BASE_URL is not the address of a model"
    ):
        routes(CLAUDE, ANTHROPIC_BASE_URL=url)


def test_an_adapters_own_address_may_be_none_too() -> None:
    adapter = Adapter.model_validate({"program": "x", "services": {"m": {"url": "nowhere"}}})
    with pytest.raises(MisconfiguredError, match="url is not the address of a model"):
        routes(adapter)


def test_hosts_are_read_with_their_ports() -> None:
    allowed = allowed_for(UNKNOWN, {}, ("Packages.Example", "10.0.0.1:80"), PORT)
    assert allowed == Allowed(PORT, (), (("packages.example", 443), ("10.0.0.1", 80)))


def test_who_takes_its_address_from_arguments_gets_it_there() -> None:
    pointed = proxy_arguments(CODEX, {"CODEX_API_KEY": "k"}, PORT).arguments
    assert pointed[: len(CODEX.arguments)] == CODEX.arguments
    assert f'base_url="{INSIDE}/openai/v1"' in pointed[-3]
    assert proxy_arguments(CLAUDE, {}, PORT) == CLAUDE


def test_outside_it_gets_the_operators_if_there_is_one() -> None:
    assert direct_arguments(CODEX, {}) == CODEX
    pointed = direct_arguments(CODEX, {"OPENAI_BASE_URL": "http://m/v1"}).arguments
    assert 'base_url="http://m/v1"' in pointed[-3]


def test_a_services_variable_is_optional() -> None:
    adapter = Adapter.model_validate(
        {
            "program": "x",
            "services": {"m": {"url": "https://m.example", "url_arguments": ["--at={url}"]}},
        }
    )
    assert proxy_arguments(adapter, {}, PORT).arguments == (f"--at={INSIDE}/m",)
    assert f"{INSIDE}/m" not in variables_inside(adapter, {}, {}, PORT).values()


@pytest.mark.parametrize(
    ("wanted", "adapter", "hosts", "chosen"),
    [
        (None, CLAUDE, (), Network.MODEL),
        (None, UNKNOWN, (), Network.OPEN),
        (None, UNKNOWN, ("m.example",), Network.MODEL),
        ("open", CLAUDE, (), Network.OPEN),
        ("none", CLAUDE, (), Network.NONE),
        ("model", CLAUDE, (), Network.MODEL),
        ("model", UNKNOWN, ("m.example",), Network.MODEL),
    ],
)
def test_what_an_agent_may_reach(
    wanted: str | None, adapter: Adapter, hosts: tuple[str, ...], chosen: Network
) -> None:
    assert choose_network(wanted, adapter, hosts) is chosen


def test_a_model_that_is_nowhere_cannot_be_all_that_is_reached() -> None:
    with pytest.raises(ConfigError, match="does not say where tinker finds its model; name its"):
        choose_network("model", UNKNOWN, ())


def test_a_header_without_its_key_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a header with its key; write NAME"):
        Adapter.model_validate(
            {"program": "x", "services": {"m": {"url": "https://m", "keys": {"K": "x-api-key"}}}}
        )
