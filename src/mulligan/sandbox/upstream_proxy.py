"""Tunnels through the proxy of the operator's network, as Mulligan's environment names it."""

import asyncio
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import h11

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """An HTTP proxy, and the value of its Proxy-Authorization header, which may be empty."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)
    is_tls: bool = False


def upstream_proxy_for(host: str) -> UpstreamProxy | None:
    """Return the proxy for HTTPS requests to a host; None if they go directly.

    HTTPS_PROXY, ALL_PROXY and NO_PROXY are read as urllib reads them.
    """
    proxies = getproxies_environment()
    url = proxies.get("https") or proxies.get("all", "")
    if not url or proxy_bypass(host, proxies):
        return None
    return parse_proxy(url)


def proxy_hint(host: str) -> str:
    """Return what to add to the failure of a request to a host; empty without a proxy."""
    proxy = upstream_proxy_for(host)
    return f" (through the proxy {proxy.host} of HTTPS_PROXY)" if proxy else ""


def parse_proxy(url: str) -> UpstreamProxy | None:
    """Parse the address of an HTTP proxy, with or without `http://`; None for anything else."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.scheme not in {"http", "https"}:
        return None
    is_tls = parts.scheme == "https"
    authorization = ""
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(user.encode()).decode()}"
    return UpstreamProxy(host, port or (443 if is_tls else 80), authorization, is_tls)


async def open_upstream_tunnel(proxy: UpstreamProxy, host: str, port: int) -> Streams:
    """Open a tunnel to a host through a proxy (RFC 9110, 9.3.6); OSError if it refuses."""
    streams = await asyncio.open_connection(
        proxy.host, proxy.port, limit=CHUNK, ssl=proxy.is_tls or None
    )
    try:
        status = await _connect(
            streams, proxy, f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        )
    except BaseException:
        streams[1].close()
        raise
    if status in SUCCESS:
        return streams
    streams[1].close()
    raise ConnectionRefusedError(f"the tunnel was refused with {status or 'no answer'}")


SUCCESS = range(200, 300)


async def _connect(streams: Streams, proxy: UpstreamProxy, target: str) -> int:
    """Ask a proxy for a tunnel; return its status, 0 if it gave none."""
    reader, writer = streams
    client = h11.Connection(h11.CLIENT)
    headers = [("Host", target)]
    if proxy.authorization:
        headers.append(("Proxy-Authorization", proxy.authorization))
    request = h11.Request(method="CONNECT", target=target, headers=headers)
    writer.write(client.send(request) or b"")
    try:
        while (event := client.next_event()) is h11.NEED_DATA:
            client.receive_data(await reader.read(CHUNK))
    except h11.RemoteProtocolError:
        return 0
    if not isinstance(event, h11.Response):
        return 0
    # The server may speak first: those bytes came with the answer.
    reader.feed_data(client.trailing_data[0])
    return event.status_code
