"""Connections take their proxies from the environment, once."""

import pytest

from mulligan.github.connection import connect


def test_proxies_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    through = connect("http://outside.example", 5).session.proxies
    assert through["http"] == "http://proxy.example:3128"
    assert connect("http://inside.example", 5).session.proxies.get("http") is None
