"""Tunnels go through the proxy of the operator's network, if there is one."""

import asyncio
import socket

import pytest

from mulligan.sandbox.upstream_proxy import (
    UpstreamProxy,
    open_upstream_tunnel,
    parse_proxy,
    upstream_proxy_for,
)
from world.egress import answering, head_of


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://proxy.example:3128", UpstreamProxy("proxy.example", 3128)),
        ("proxy.example:3128", UpstreamProxy("proxy.example", 3128)),
        ("http://proxy.example", UpstreamProxy("proxy.example", 80)),
        ("https://proxy.example", UpstreamProxy("proxy.example", 443, is_tls=True)),
        ("http://a:b%40c@proxy.example:1", UpstreamProxy("proxy.example", 1, "Basic YTpiQGM=")),
        ("socks5://proxy.example:1080", None),
        ("http://proxy.example:x", None),
        ("http://", None),
    ],
)
def test_how_the_address_of_a_proxy_is_written(url: str, proxy: UpstreamProxy | None) -> None:
    assert parse_proxy(url) == proxy


def test_the_environment_says_which_hosts_need_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert upstream_proxy_for("index.example") is None
    monkeypatch.setenv("ALL_PROXY", "http://all.example:1")
    assert upstream_proxy_for("index.example") == UpstreamProxy("all.example", 1)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:2")
    monkeypatch.setenv("NO_PROXY", ".intern.example")
    assert upstream_proxy_for("index.example") == UpstreamProxy("proxy.example", 2)
    assert upstream_proxy_for("a.intern.example") is None


def tunnel(proxy: UpstreamProxy) -> bytes:
    """Open a tunnel, and return the first bytes that come through it."""

    async def ask() -> bytes:
        reader, writer = await open_upstream_tunnel(proxy, "index.example", 443)
        found = await reader.read(5)
        writer.close()
        return found

    return asyncio.run(ask())


def test_a_tunnel_begins_after_the_answer_of_the_proxy() -> None:
    heads = list[bytes]()

    def talk(line: socket.socket) -> None:
        heads.append(head_of(line))
        line.sendall(b"HTTP/1.1 200 Connected\r\nVia: x\r\n\r\n")
        line.sendall(b"hello")

    with answering(talk) as (host, port):
        assert tunnel(UpstreamProxy(host, port, "Basic eA==")) == b"hello"
    assert heads[0].startswith(b"CONNECT index.example:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic eA==" in heads[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", "407"), (b"", "no answer")],
)
def test_a_proxy_that_refuses_is_named(answer: bytes, reason: str) -> None:
    def talk(line: socket.socket) -> None:
        head_of(line)
        line.sendall(answer)

    with answering(talk) as (host, port), pytest.raises(OSError, match=f"refused with {reason}"):
        tunnel(UpstreamProxy(host, port))
