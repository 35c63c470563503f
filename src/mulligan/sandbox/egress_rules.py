"""Decide which hosts the proxy allows, and how it changes requests and answers. Pure."""

import hmac
import ipaddress
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote_plus, urlsplit

from mulligan.text.escape import one_line
from mulligan.text.redact import LEAST, forms_of

HTTPS = 443
NAME_CHARS = 100
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})

HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer"),
        *(b"transfer-encoding", b"upgrade", b"expect", b"host"),
    }
)
"""Headers for one connection only (RFC 9110, 7.6.1), and those that are replaced."""
PROXY_AUTHORIZATION = b"proxy-authorization"
CREDENTIALS = frozenset(
    {
        *(b"authorization", PROXY_AUTHORIZATION, b"cookie"),
        *(b"x-api-key", b"api-key", b"x-goog-api-key"),
    }
)
"""Headers with credentials: those from inside are always removed."""
OWN_HEADER = b"x-"
"""How headers begin that are not standard."""
NOTHING = frozenset[bytes]()
LENGTH = frozenset({b"content-length"})
BODY = frozenset({b"content-length", b"transfer-encoding"})
ENCODING = frozenset({b"content-encoding"})
ACCEPT_RANGES = frozenset({b"accept-ranges"})
ERROR = 400
READABLE_ENCODINGS = frozenset({"identity", "gzip", "deflate"})
"""Encodings of an answer in which a key is found."""

COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip (RFC 1952) and Zstandard (RFC 8878) begin."""
CREDENTIAL_PARAMETERS = frozenset({"key", "access_token"})

RANGE, CONTENT_RANGE, DELTA = b"range", b"content-range", b"a-im"
"""Headers that ask for a part of an answer have the first in their names, except `A-IM` (RFC 3229).

Content-Range of a request describes its own body.
"""
PARTIAL_STATUSES = frozenset({206, 226})
"""Partial Content, and IM Used (RFC 3229)."""
PARTS_TYPE = b"multipart/byteranges"

PIECE = 8
"""How many characters of a key in a row an answer never shows."""
WORD = rb"(?:[A-Z]?[a-z]*|[A-Z]*)[0-9]*"
ORDINARY = re.compile(WORD + rb"(?:[-_.]" + WORD + rb")*")
"""Words and versions, such as the beginning of `sk-ant-api03-`: other texts have them, too."""

METHODS = frozenset(
    {b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"},
)
"""Methods that services need. TRACE would send the key back."""

Headers = Sequence[tuple[bytes, bytes]]
Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Route:
    """A service by the first part of its paths inside; `origin` is `scheme://host:port`.

    `header` is sent to it, unless it is empty; `form` has `{key}` in place of the key. Answers
    never contain the key or one of `masked`. Credentials from inside are removed, unless it
    `keeps_credentials`.

    The answers of an index are packages, so they stay compressed and are searched as they are.
    """

    name: str
    origin: str
    header: str = ""
    key: str = field(default="", repr=False)
    form: str = "{key}"
    masked: tuple[str, ...] = field(default=(), repr=False)
    keeps_credentials: bool = False
    is_index: bool = False

    @property
    def value(self) -> str:
        """The value of the header."""
        return self.form.replace("{key}", self.key)


@dataclass(frozen=True, slots=True)
class Registry:
    """A package index at an address, and the credentials that the proxy adds to requests."""

    address: Address
    route: Route


@dataclass(frozen=True, slots=True)
class Allowed:
    """Everything that may be reached, and the port of the proxy itself.

    With `tunnels_to_itself`, a tunnel may lead to that port. With `any_host`, every host may be
    reached. A tunnel to one of the `registries` ends in the proxy, which adds the credentials. If
    `password` is set, clients have to send it (Proxy-Authorization), since others can reach the
    port.
    """

    port: int
    routes: tuple[Route, ...] = ()
    hosts: tuple[Address, ...] = ()
    tunnels_to_itself: bool = True
    any_host: bool = False
    registries: tuple[Registry, ...] = ()
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """How a command calls a model: routes of the proxy, and the variables that lead there."""

    routes: tuple[Route, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


NO_MODEL = ModelAccess()


@dataclass(frozen=True, slots=True)
class ToService:
    """A request to a service, and the rest of its path."""

    route: Route
    target: bytes


@dataclass(frozen=True, slots=True)
class ToHost:
    """A tunnel to an allowed host."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ToRegistry:
    """A tunnel to a package index, which the proxy opens to add the credentials."""

    registry: Registry


@dataclass(frozen=True, slots=True)
class ToItself:
    """A tunnel to the proxy's own port, from an agent that proxies every address."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused request; `host` is the requested one, or empty if there is none."""

    message: str
    host: str = ""


Decision = ToService | ToHost | ToRegistry | ToItself | Refused

READING = frozenset({b"GET", b"HEAD"})
"""The methods that a package index accepts from inside: a command may not publish."""

GIT_FETCH = re.compile(rb"(?:/[\w@+~-][\w.@+~-]*)+/git-upload-pack")
"""Where git fetches with POST; its push uses `git-receive-pack` (gitprotocol-http(5)).

Without `%`, `;`, `?` and `..`, every server sees the same path.
"""

GIT_FETCH_TYPE = (b"content-type", b"application/x-git-upload-pack-request")

NO_BODY = frozenset({(b"content-length", b"0")})


def registry_at(host: str, user: str = "", password: str = "", token: str = "") -> Registry | None:
    """Return a package index, with its password (Basic, RFC 7617) or token (Bearer, RFC 6750).

    None if the host is not written as `host` or `host:port`.
    """
    address = address_of(host)
    if address is None:
        return None
    name, port = address
    named = f"[{name}]" if ":" in name else name
    origin = f"https://{named}" if port == HTTPS else f"https://{named}:{port}"
    if token:
        route = Route("", origin, "Authorization", token, "Bearer {key}", is_index=True)
        return Registry(address, route)
    encoded = b64encode(f"{user}:{password}".encode()).decode()
    route = Route(
        "", origin, "Authorization", encoded, "Basic {key}", masked=(password,), is_index=True
    )
    return Registry(address, route)


def to_registry(
    registry: Registry, method: bytes, target: bytes, headers: "Headers" = ()
) -> ToService | Refused:
    """Decide about a request inside a tunnel to a package index: only reading is allowed."""
    if not target.startswith(b"/"):
        return Refused("This is no address.")
    if not (_reads(method, headers) or _fetches(method, target, headers)):
        named = one_line(f"{method.decode()} {registry.route.origin}", NAME_CHARS)
        return Refused(f"{named} is refused: a package index may only be read from a sandbox.")
    return ToService(registry.route, target)


def _reads(method: bytes, headers: "Headers") -> bool:
    """Return whether a request reads; with a body, a server could see a second request in it."""
    lengths = {(name.lower(), value) for name, value in headers if name.lower() in BODY}
    return method in READING and lengths <= NO_BODY


def _fetches(method: bytes, target: bytes, headers: "Headers") -> bool:
    """Return whether a request is git's, for the objects of a repository."""
    types = [(name.lower(), value) for name, value in headers if name.lower() == GIT_FETCH_TYPE[0]]
    return method == b"POST" and types == [GIT_FETCH_TYPE] and bool(GIT_FETCH.fullmatch(target))


PROXY_USER = "mulligan"

HTTPS_PROXY_VARIABLES = ("HTTPS_PROXY",)
PROXY_VARIABLES = (*HTTPS_PROXY_VARIABLES, "HTTP_PROXY", "ALL_PROXY")
"""The variables of a proxy in capitals; programs read them in lower case, too."""


def is_authorized(given: "Headers", password: str) -> bool:
    """Return whether a request has the proxy's password, if there is one."""
    if not password:
        return True
    expected = b"Basic " + b64encode(f"{PROXY_USER}:{password}".encode())
    sent = [value for name, value in given if name.lower() == PROXY_AUTHORIZATION]
    return any(hmac.compare_digest(value, expected) for value in sent)


def decide_route(method: bytes, target: bytes, allowed: Allowed) -> Decision:
    """Decide where a request goes, by its method and target (RFC 9112, 3.2)."""
    requested = target.decode("ascii", errors="replace")
    if method == b"CONNECT":
        return _tunnel(requested, allowed)
    if method not in METHODS:
        return Refused("This method is not allowed.")
    if requested.startswith("/"):
        return _service(requested, allowed)
    scheme, _, rest = requested.partition("://")
    authority, _, path = rest.partition("/")
    address = address_of(authority, 80)
    if _is_itself(address, allowed):
        return _service(f"/{path}", allowed)
    if address is None:
        return Refused("This is no address.")
    if allowed.any_host and scheme == "http":
        host = Route("", f"http://{authority}", keeps_credentials=True)
        return ToService(host, f"/{path}".encode("ascii", errors="replace"))
    return refuse(address[0], "is asked for without TLS, which only the model may be")


def refuse(host: str, why: str = "is not allowed") -> Refused:
    """Refuse a host, with a reason for the agent."""
    named = one_line(host, NAME_CHARS)
    return Refused(f"The host {named} {why}; Mulligan lets nothing else out.", named)


def address_of(text: str, port: int = HTTPS) -> Address | None:
    """Parse `host`, `host:port` or `[v6]:port`; None for anything else."""
    try:
        parts = urlsplit(f"//{text}")
        host, found = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or parts.netloc != text or "@" in text:
        return None
    return host.lower(), found or port


def addresses_of(hosts: Iterable[str]) -> tuple[Address, ...]:
    """Parse the hosts of a configuration."""
    return tuple(found for each in hosts if (found := address_of(each)))


def is_public(address: str) -> bool:
    """Return whether an address is on the internet: not of this machine, its network or cloud."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        if found.is_site_local or found in LOCAL_TRANSLATION:
            return False
        # A gateway of the network may lead these to the IPv4 address in them.
        within = found.ipv4_mapped or found.sixtofour
        translated = any(found in network for network in TRANSLATED)
        found = ipaddress.IPv4Address(int(found) % 2**32) if translated else within or found
    return found.is_global and not found.is_multicast


TRANSLATED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
"""Addresses that end in an IPv4 address (RFC 6052, RFC 4291)."""
LOCAL_TRANSLATION = ipaddress.IPv6Network("64:ff9b:1::/48")
"""For gateways of one network (RFC 8215)."""


def is_literal(host: str) -> bool:
    """Return whether a host is an IP address, in any notation."""
    last = host.rpartition(".")[2]
    return ":" in host or last.isdigit() or last.startswith("0x")


def request_headers(route: Route, given: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers for a service: with the key from here, without any from inside."""
    host = route.origin.partition("://")[2].encode()
    key = [(route.header.encode(), route.value.encode())] if route.header else []
    chunked = any(name.lower() == b"transfer-encoding" for name, _ in given)
    # With two lengths, a service might use the other one (RFC 9112, 6.1).
    dropped = HOP_BY_HOP | {b"accept-encoding"} | (LENGTH if chunked else NOTHING)
    dropped |= {PROXY_AUTHORIZATION} if route.keeps_credentials else CREDENTIALS
    # A server may take its method or path from one of these, such as X-HTTP-Method-Override.
    names = {name.lower() for name, _ in given}
    dropped |= {name for name in names if route.is_index and name.startswith(OWN_HEADER)}
    dropped |= {name for name in names if route.header and _asks_for_a_part(name)}
    # A key in a compressed answer would not be found.
    plain = (b"Accept-Encoding", b"identity")
    return [(b"Host", host), *_passed_on(given, dropped), plain, *key]


def _asks_for_a_part(name: bytes) -> bool:
    """Return whether a header asks for a part: of a repeated key, a part would not be found."""
    return (RANGE in name and name != CONTENT_RANGE) or name == DELTA


def response_headers(
    route: Route, given: Headers, *, is_plain: bool = True
) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer, except those for one connection only.

    Unless it `is_plain`, it will be decompressed, which changes its length and encoding.
    """
    dropped = HOP_BY_HOP | (NOTHING if is_plain else LENGTH | ENCODING)
    return [*_passed_on(given, dropped | (ACCEPT_RANGES if route.header else NOTHING))]


def is_partial(status: int, given: Headers) -> bool:
    """Return whether an answer is only a part of what the service would show."""
    headers = {name.lower(): value.lower() for name, value in given}
    is_told = status < ERROR and CONTENT_RANGE in headers
    is_parts = headers.get(b"content-type", b"").strip().startswith(PARTS_TYPE)
    return status in PARTIAL_STATUSES or is_told or is_parts


def is_readable(content_encoding: str) -> bool:
    """Return whether a key is found in an answer with this Content-Encoding, empty for none."""
    names = (name.strip().lower() for name in content_encoding.split(","))
    return all(name in READABLE_ENCODINGS for name in names if name)


class KeyFilter:
    """Masks a key in an answer that arrives in parts, in any form that a service may use.

    Every part keeps its length. A possible beginning of a key waits for the next part; at most
    PIECE - 1 characters of it are shown if none comes. With `pieces`, PIECE characters of a key in
    a row are masked, too, in small or capital letters.
    """

    def __init__(self, *keys: str, pieces: bool = False) -> None:
        long = [key for key in keys if len(key) >= LEAST]
        self._forms = sorted(
            {form for key in long for form in forms_of(key)}, key=lambda form: (-len(form), form)
        )
        self._pattern = re.compile(b"|".join(map(re.escape, self._forms))) if self._forms else None
        self._pieces = {piece for key in long if pieces for piece in _pieces_of(key)}
        self._beginnings = {piece[:size] for piece in self._pieces for size in range(1, PIECE)}
        self._held = b""
        self._masked = b""
        self.has_masked = False

    def text(self, whole: bytes) -> bytes:
        """Mask the key in a complete text."""
        return self._mask(whole, whole)

    def feed(self, part: bytes) -> bytes:
        """Add a part; return the bytes that are safe to forward."""
        seen = self._held + part
        masked = self._mask(seen, self._masked + part)
        begun = max((_begun(form, seen) for form in self._forms), default=0)
        size = len(seen) - max(begun, self._begun_pieces(seen.lower()))
        self._held, self._masked = seen[size:], masked[size:]
        return masked[:size]

    def end(self) -> bytes:
        """Return the bytes held back, at the end of the answer."""
        rest, self._held, self._masked = self._masked, b"", b""
        if len(rest) < PIECE:
            return rest
        self.has_masked = True
        return b"*" * len(rest)

    def _mask(self, seen: bytes, masked: bytes) -> bytes:
        """Return `masked`, in which a part of `seen` may be masked already, without the key."""
        spans = [found.span() for found in self._pattern.finditer(seen)] if self._pattern else []
        if self._pieces:
            folded = seen.lower()
            starts = range(len(seen) - PIECE + 1)
            spans += [(at, at + PIECE) for at in starts if folded[at : at + PIECE] in self._pieces]
        shown = bytearray(masked)
        for start, end in spans:
            shown[start:end] = b"*" * (end - start)
        self.has_masked |= bool(spans)
        return bytes(shown)

    def _begun_pieces(self, folded: bytes) -> int:
        """Count the bytes at the end of a text in small letters with which a piece begins."""
        sizes = range(min(PIECE - 1, len(folded)), 0, -1)
        return next((size for size in sizes if folded[-size:] in self._beginnings), 0)


def _pieces_of(key: str) -> Iterator[bytes]:
    """Yield the pieces of a key in small letters, except those that other texts have, too."""
    raw = key.encode(errors="surrogatepass")
    pieces = (raw[at : at + PIECE] for at in range(len(raw) - PIECE + 1))
    return (piece.lower() for piece in pieces if not ORDINARY.fullmatch(piece))


def _begun(form: bytes, text: bytes) -> int:
    """Count the bytes at the end of a text that are the beginning of a form."""
    sizes = range(min(len(form) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(form[:size])), 0)


def _passed_on(given: Headers, dropped: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    listed = (value for name, value in given if name.lower() == b"connection")
    named = {each.strip().lower() for value in listed for each in value.split(b",")}
    gone = {*dropped, *named}
    return ((name, value) for name, value in given if name.lower() not in gone)


def _tunnel(authority: str, allowed: Allowed) -> Decision:
    address = address_of(authority)
    if address is None:
        return Refused("This is no address.")
    if _is_itself(address, allowed):
        return ToItself() if allowed.tunnels_to_itself else Refused("This is already a tunnel.")
    found = next((each for each in allowed.registries if each.address == address), None)
    if not (allowed.any_host or address in allowed.hosts):
        return refuse(_named(address))
    return ToRegistry(found) if found else ToHost(*address)


def _named(address: Address) -> str:
    host, port = address
    return host if port == HTTPS else f"{host}:{port}"


def _is_itself(address: Address | None, allowed: Allowed) -> bool:
    return address is not None and address[0] in LOOPBACK_NAMES and address[1] == allowed.port


def _service(path: str, allowed: Allowed) -> Decision:
    name, _, rest = path.removeprefix("/").partition("/")
    for route in allowed.routes:
        if route.name == name:
            return ToService(route, _without_keys(f"/{rest}").encode("ascii", errors="replace"))
    return Refused("Address not found.")


def _without_keys(target: str) -> str:
    """Remove query parameters with credentials."""
    path, mark, query = target.partition("?")
    kept = [
        (name, value)
        for name, value in parse_qsl(query, keep_blank_values=True)
        if name.lower() not in CREDENTIAL_PARAMETERS
    ]
    if len(kept) == len(parse_qsl(query, keep_blank_values=True)):
        return target
    joined = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in kept)
    return f"{path}{mark}{joined}"


def proxy_variables(
    port: int,
    password: str = "",
    names: Iterable[str] = PROXY_VARIABLES,
    direct_hosts: Iterable[str] = (),
) -> dict[str, str]:
    """Return the variables by which programs find a proxy; loopback and others bypass it."""
    user = f"{PROXY_USER}:{password}@" if password else ""
    proxy = f"http://{user}127.0.0.1:{port}"
    direct = ",".join(("127.0.0.1", "localhost", "::1", *direct_hosts))
    names = tuple(names)
    return {
        **dict.fromkeys([*names, *map(str.lower, names)], proxy),
        "NO_PROXY": direct,
        "no_proxy": direct,
    }
