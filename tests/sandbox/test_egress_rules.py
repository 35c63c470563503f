"""Where a request goes, and what is changed of it on the way, as tables."""

from base64 import b64encode
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.sandbox.egress_rules import (
    HTTPS_PROXY_VARIABLES,
    Allowed,
    Decision,
    KeyFilter,
    Refused,
    Registry,
    Route,
    ToHost,
    ToItself,
    ToRegistry,
    ToService,
    address_of,
    addresses_of,
    decide_route,
    is_authorized,
    is_literal,
    is_partial,
    is_public,
    is_readable,
    proxy_variables,
    registry_at,
    request_headers,
    response_headers,
    to_registry,
)

pytestmark = pytest.mark.pure
MODEL = Route("model", "https://api.model.example", "x-api-key", "sk-real")
FREE = Route("free", "http://127.0.0.1:11434")
ALLOWED = Allowed(3128, (MODEL, FREE), (("packages.example", 443), ("10.0.0.5", 8080)))


def test_a_tunnel_does_not_lead_to_the_proxy_again() -> None:
    nested = replace(ALLOWED, tunnels_to_itself=False)
    found = decide_route(b"CONNECT", b"localhost:3128", nested)
    assert found == Refused("This is already a tunnel.")


def refused(host: str) -> Refused:
    return Refused(f"The host {host} is not allowed; Mulligan lets nothing else out.", host)


NOTHING_HERE = Refused("Address not found.")
NO_ADDRESS = Refused("This is no address.")
PLAIN = "is asked for without TLS, which only the model may be"


@pytest.mark.parametrize(
    ("request_line", "way"),
    [
        ("POST /model/v1/messages", ToService(MODEL, b"/v1/messages")),
        ("POST /model/v1/m?beta=true", ToService(MODEL, b"/v1/m?beta=true")),
        ("GET /free", ToService(FREE, b"/")),
        ("POST /model/v1/m?alt=sse&key=mine", ToService(MODEL, b"/v1/m?alt=sse")),
        ("POST /model/v1/m?Access_Token=mine", ToService(MODEL, b"/v1/m?")),
        ("POST /model/v1/m?a=&key=mine&b=c?d", ToService(MODEL, b"/v1/m?a=&b=c%3Fd")),
        ("GET /model/caf\u00e9", ToService(MODEL, b"/caf??")),
        ("GET http://localhost:3128/model/http://x/y", ToService(MODEL, b"/http://x/y")),
        ("GET /other/v1", NOTHING_HERE),
        ("GET /", NOTHING_HERE),
        ("GET http://127.0.0.1:3128/model/x", ToService(MODEL, b"/x")),
        ("GET http://127.0.0.1/model/x", Refused(f"The host 127.0.0.1 {PLAIN}", "127.0.0.1")),
        ("GET http://deb.example/x", Refused(f"The host deb.example {PLAIN}", "deb.example")),
        ("GET *", NO_ADDRESS),
        ("CONNECT packages.example:443", ToHost("packages.example", 443)),
        ("CONNECT Packages.Example:443", ToHost("packages.example", 443)),
        ("CONNECT packages.example:22", refused("packages.example:22")),
        ("CONNECT files.packages.example:443", refused("files.packages.example")),
        ("CONNECT 10.0.0.5:8080", ToHost("10.0.0.5", 8080)),
        ("CONNECT 169.254.169.254:80", refused("169.254.169.254:80")),
        ("CONNECT [::1]:443", refused("::1")),
        ("CONNECT 127.0.0.1:3128", ToItself()),
        ("CONNECT localhost:3128", ToItself()),
        ("TRACE /model/v1/messages", Refused("This method is not allowed.")),
        ("CONNECT nonsense:x", NO_ADDRESS),
        ("CONNECT u@packages.example:443", NO_ADDRESS),
        ("CONNECT packages.example:443/x", NO_ADDRESS),
        ("CONNECT :443", NO_ADDRESS),
    ],
)
def test_what_a_request_line_leads_to(request_line: str, way: Decision) -> None:
    method, _, target = request_line.partition(" ")
    found = decide_route(method.encode(), target.encode(), ALLOWED)
    if isinstance(way, Refused) and way.message.endswith(PLAIN):
        way = Refused(f"{way.message}; Mulligan lets nothing else out.", way.host)
    assert found == way


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a.example", ("a.example", 443)),
        ("A.example:80", ("a.example", 80)),
        ("[::1]:8080", ("::1", 8080)),
        ("a.example:99999", None),
        ("a/b", None),
        ("", None),
    ],
)
def test_how_a_host_is_written(text: str, address: tuple[str, int] | None) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("192.168.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00:ec2::254", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::169.254.169.254", False),
        ("64:ff9b::93.184.216.34", True),
        ("64:ff9b:1::93.184.216.34", False),
        ("::127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("fec0::1", False),
    ],
)
def test_which_addresses_are_of_the_internet(address: str, public: bool) -> None:  # noqa: FBT001
    assert is_public(address) is public


@pytest.mark.parametrize(
    ("host", "literal"),
    [("a.example", False), ("1.2.3.4", True), ("::1", True), ("0x7f.1", True), ("a.0x7f", True)],
)
def test_an_address_is_told_from_a_name(host: str, literal: bool) -> None:  # noqa: FBT001
    assert is_literal(host) is literal


def test_the_hosts_of_a_configuration_are_parsed_and_what_is_no_host_left_out() -> None:
    hosts = ["Packages.example", "10.0.0.5:8080", "a b@c"]
    assert addresses_of(hosts) == (("packages.example", 443), ("10.0.0.5", 8080))


def test_programs_find_the_proxy_and_leave_it_out_for_loopback() -> None:
    found = proxy_variables(3128)
    assert {name for name, value in found.items() if value == "http://127.0.0.1:3128"} == {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    }
    assert found["NO_PROXY"] == found["no_proxy"] == "127.0.0.1,localhost,::1"
    assert len(found) == 8


def test_a_service_gets_the_key_from_outside_and_none_from_inside() -> None:
    given = [
        *((b"Host", b"127.0.0.1:3128"), (b"X-Api-Key", b"somebody-elses")),
        *((b"Authorization", b"Bearer somebody-elses"), (b"Cookie", b"a=b")),
        *((b"Connection", b"keep-alive, X-Hop"), (b"X-Hop", b"1"), (b"Accept", b"*/*")),
        (b"Accept-Encoding", b"br"),
    ]
    assert request_headers(MODEL, given) == [
        (b"Host", b"api.model.example"),
        (b"Accept", b"*/*"),
        (b"Accept-Encoding", b"identity"),
        (b"x-api-key", b"sk-real"),
    ]


def test_a_service_without_a_key_gets_none() -> None:
    given = [(b"Authorization", b"Bearer mine"), (b"Content-Length", b"2")]
    assert request_headers(FREE, given) == [
        (b"Host", b"127.0.0.1:11434"),
        (b"Content-Length", b"2"),
        (b"Accept-Encoding", b"identity"),
    ]


def test_of_two_lengths_only_one_is_sent_on() -> None:
    given = [(b"Content-Length", b"2"), (b"transfer-encoding", b"chunked")]
    assert [name for name, _ in request_headers(FREE, given)] == [b"Host", b"Accept-Encoding"]


def test_an_answer_comes_back_whole_but_for_its_connection() -> None:
    given = [(b"Content-Type", b"text/event-stream"), (b"Transfer-Encoding", b"chunked")]
    assert response_headers(FREE, given) == [(b"Content-Type", b"text/event-stream")]
    packed = [(b"Content-Encoding", b"gzip"), (b"Content-Length", b"20"), (b"ETag", b"1")]
    assert response_headers(FREE, packed) == packed
    assert response_headers(FREE, packed, is_plain=False) == [(b"ETag", b"1")]


@pytest.mark.parametrize(
    ("encoding", "readable"),
    [("", True), ("identity", True), ("GZip, deflate", True), ("br", False), ("gzip, br", False)],
)
def test_a_key_is_found_in_encodings_that_can_be_decoded(encoding: str, readable: bool) -> None:  # noqa: FBT001
    assert is_readable(encoding) is readable


LONG = "sk-the-key-of-the-model"


@given(st.lists(st.sampled_from([LONG, "sk-", "sk-the-", "x", "é", "model"])), st.integers(1, 40))
def test_a_key_is_blanked_however_an_answer_is_cut(parts: list[str], size: int) -> None:
    whole, found = "".join(parts).encode(), KeyFilter(LONG)
    shown = b"".join(found.feed(whole[at : at + size]) for at in range(0, len(whole), size))
    assert shown + found.end() == whole.replace(LONG.encode(), b"*" * len(LONG))


@pytest.mark.parametrize("form", [LONG, LONG.encode().hex(), b64encode(LONG.encode()).decode()])
def test_a_key_is_blanked_however_it_is_written(form: str) -> None:
    shown = KeyFilter(LONG).text(form.encode())
    assert len(shown) == len(form)
    assert shown.count(b"*") > len(form) - 4


@pytest.mark.parametrize("key", ["", "short"])
def test_without_a_key_and_with_too_short_a_one_everything_comes_through(key: str) -> None:
    found = KeyFilter(key)
    assert (found.feed(b"short"), found.text(b"short")) == (b"short", b"short")
    assert found.end() == b""


def test_what_was_held_back_is_told_once() -> None:
    found = KeyFilter(LONG)
    assert (found.feed(b"a sk-the"), found.end(), found.end()) == (b"a ", b"sk-the", b"")


def test_the_beginning_of_a_key_is_not_told_at_the_end_of_an_answer() -> None:
    found = KeyFilter(LONG)
    assert (found.feed(b"a sk-the-k"), found.end()) == (b"a ", b"********")


def test_an_answer_with_a_part_of_the_key_is_known_to_have_had_it() -> None:
    """Mulligan logs that about a package of an index, which is damaged then."""
    found = KeyFilter(LONG)
    found.feed(b"a package")
    assert found.has_masked is False
    found.feed(LONG.encode())
    found.feed(b" and more")
    assert found.has_masked is True
    ended = KeyFilter(LONG)
    ended.feed(b"a sk-the-k")
    assert ended.has_masked is False
    ended.end()
    assert ended.has_masked is True


RANDOM = "sk-ant-api03-9XbQz7Lr2TnVw8Yc4KdHm6Pf1GsJ5eRa-3uNq0"


@given(
    st.lists(
        st.one_of(
            st.text("kx-9 ", max_size=3),
            st.tuples(st.integers(13, 50), st.integers(1, 20)).map(
                lambda cut: RANDOM[cut[0] : cut[0] + cut[1]]
            ),
        ),
        max_size=8,
    ),
    st.integers(1, 40),
)
def test_no_piece_of_a_key_is_shown_however_an_answer_is_cut(parts: list[str], size: int) -> None:
    whole, found = "".join(parts).encode(), KeyFilter(RANDOM, pieces=True)
    shown = b"".join(found.feed(whole[at : at + size]) for at in range(0, len(whole), size))
    shown += found.end()
    assert shown == KeyFilter(RANDOM, pieces=True).text(whole)
    assert len(shown) == len(whole)
    assert not any(RANDOM[at : at + 8].encode() in shown for at in range(13, len(RANDOM) - 7))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (RANDOM, "keys begin with sk-ant-api03-"),
        ("sk-local-development-2024", "sk-local is for development, as in 2024"),
        ("sk-1234567890", "call 1234567890"),
        ("LM-Studio-Key", "install lm-studio"),
    ],
)
def test_words_that_a_key_has_are_shown(key: str, said: str) -> None:
    assert KeyFilter(key, pieces=True).text(said.encode()) == said.encode()


def test_a_service_with_a_key_is_asked_for_no_part() -> None:
    given_headers = [
        (b"Range", b"bytes=0-9"),
        (b"If-Range", b'"1"'),
        (b"X-MS-Range", b"bytes=0-9"),
        (b"A-IM", b"range"),
        (b"Content-Range", b"bytes 0-9/10"),
    ]
    names = [[name for name, _ in request_headers(way, given_headers)] for way in (MODEL, FREE)]
    assert names[0] == [b"Host", b"Content-Range", b"Accept-Encoding", b"x-api-key"]
    assert names[1] == [b"Host", *(name for name, _ in given_headers), b"Accept-Encoding"]
    told = [(b"Accept-Ranges", b"bytes"), (b"ETag", b"1")]
    assert response_headers(MODEL, told) == told[1:]
    assert response_headers(FREE, told) == told


@pytest.mark.parametrize(
    ("status", "header", "partial"),
    [
        (200, (b"Content-Type", b"text/plain"), False),
        (206, (b"Content-Type", b"text/plain"), True),
        (226, (b"IM", b"range"), True),
        (200, (b"content-range", b"bytes 0-9/90"), True),
        (416, (b"Content-Range", b"bytes */90"), False),
        (200, (b"Content-Type", b" Multipart/ByteRanges; boundary=x"), True),
    ],
)
def test_a_part_of_an_answer_is_told_from_a_whole_one(
    status: int,
    header: tuple[bytes, bytes],
    partial: bool,  # noqa: FBT001
) -> None:
    assert is_partial(status, [header]) is partial


def test_the_key_is_not_in_what_is_printed_of_a_route() -> None:
    assert "sk-real" not in repr(ALLOWED)


# Package indexes, and the proxy for commands with the whole network


def basic(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()


def known(
    host: str = "index.example", user: str = "", password: str = "", token: str = ""
) -> Registry:
    found = registry_at(host, user, password, token)
    assert found
    return found


INDEX = known(user="ci", password="secret-word")
WHOLE = Allowed(0, any_host=True, registries=(INDEX,), password="the-way-in")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("index.example", "https://index.example"),
        ("Index.Example:443", "https://index.example"),
        ("index.example:8443", "https://index.example:8443"),
        ("[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_an_index_is_reached_by_https(host: str, origin: str) -> None:
    assert known(host, password="p").route.origin == origin


def test_an_index_gets_its_password_or_its_token() -> None:
    route = Route("", "https://index.example", "Authorization", is_index=True)
    key, password = basic("ci", "secret-word"), "secret-word"
    basic_route = replace(route, key=key, form="Basic {key}", masked=(password,))
    assert known(user="ci", password=password) == Registry(("index.example", 443), basic_route)
    assert basic_route.value == f"Basic {key}"
    token_route = replace(route, key="a-token", form="Bearer {key}")
    assert known(token="a-token") == Registry(("index.example", 443), token_route)
    assert token_route.value == "Bearer a-token"
    assert registry_at("https://index.example") is None
    assert "secret-word" not in repr(WHOLE)
    assert "the-way-in" not in repr(WHOLE)


@pytest.mark.parametrize(
    ("request_line", "allowed", "way"),
    [
        ("CONNECT index.example:443", WHOLE, ToRegistry(INDEX)),
        ("CONNECT index.example:8443", WHOLE, ToHost("index.example", 8443)),
        ("CONNECT any.example:443", WHOLE, ToHost("any.example", 443)),
        ("CONNECT index.example:443", Allowed(3128, registries=(INDEX,)), refused("index.example")),
        (
            "CONNECT index.example:443",
            Allowed(3128, hosts=(("index.example", 443),), registries=(INDEX,)),
            ToRegistry(INDEX),
        ),
        (
            "POST http://any.example:81/a?key=b",
            WHOLE,
            ToService(Route("", "http://any.example:81", keeps_credentials=True), b"/a?key=b"),
        ),
        (
            "GET https://any.example/a",
            WHOLE,
            Refused(
                f"The host any.example {PLAIN}; Mulligan lets nothing else out.", "any.example"
            ),
        ),
    ],
)
def test_what_the_whole_network_and_an_index_lead_to(
    request_line: str, allowed: Allowed, way: Decision
) -> None:
    method, _, target = request_line.partition(" ")
    assert decide_route(method.encode(), target.encode(), allowed) == way


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_an_index_is_read(method: bytes) -> None:
    assert to_registry(INDEX, method, b"/simple/") == ToService(INDEX.route, b"/simple/")


def test_an_index_is_not_changed() -> None:
    for method in (b"POST", b"PUT", b"DELETE", b"CONNECT"):
        found = to_registry(INDEX, method, b"/simple/")
        assert isinstance(found, Refused)
        named = f"{method.decode()} https://index.example"
        assert found.message.startswith(f"{named} is refused: a package index may only be read")
        # A maintainer's `setup.hosts` would not help.
        assert not found.host
    assert to_registry(INDEX, b"GET", b"http://other.example/") == NO_ADDRESS


FETCH = b"application/x-git-upload-pack-request"


@pytest.mark.parametrize(
    ("method", "target", "kind", "is_forwarded"),
    [
        (b"POST", b"/group/lib.git/git-upload-pack", FETCH, True),
        (b"PUT", b"/group/lib.git/git-upload-pack", FETCH, False),
        (b"POST", b"/group/lib.git/git-upload-pack", b"application/json", False),
        (b"POST", b"/group/lib.git/git-receive-pack", FETCH, False),
        (b"POST", b"/group/lib.git/git-upload-pack?service=git-receive-pack", FETCH, False),
        (b"POST", b"/lib.git/git-receive-pack#/git-upload-pack", FETCH, False),
        (b"POST", b"/lib.git/git-receive-pack%3f/git-upload-pack", FETCH, False),
        (b"POST", b"/lib.git/git-receive-pack;a/git-upload-pack", FETCH, False),
        (b"POST", b"/upload/../git-upload-pack", FETCH, False),
        (b"POST", b"//git-upload-pack", FETCH, False),
        (b"POST", b"/git-upload-pack/", FETCH, False),
    ],
)
def test_git_fetches_from_an_index_and_does_not_push(
    method: bytes,
    target: bytes,
    kind: bytes,
    is_forwarded: bool,  # noqa: FBT001
) -> None:
    found = to_registry(INDEX, method, target, [(b"Content-Type", kind)])
    assert isinstance(found, ToService) is is_forwarded
    twice = [(b"content-type", kind), (b"content-type", b"application/json")]
    assert isinstance(to_registry(INDEX, method, target, twice), Refused)


@pytest.mark.parametrize(
    ("header", "is_forwarded"),
    [
        ((b"Content-Length", b"0"), True),
        ((b"Content-Length", b"9"), False),
        ((b"Transfer-Encoding", b"chunked"), False),
        ((b"Range", b"bytes=0-9"), True),
    ],
)
def test_a_request_that_reads_has_no_body(
    header: tuple[bytes, bytes],
    is_forwarded: bool,  # noqa: FBT001
) -> None:
    found = to_registry(INDEX, b"GET", b"/simple/", [header])
    assert isinstance(found, ToService) is is_forwarded


def test_an_index_gets_no_header_that_may_change_the_method_or_path() -> None:
    given_headers = [(b"X-HTTP-Method-Override", b"PUT"), (b"x-original-url", b"/a"), (b"A", b"b")]
    found = dict(request_headers(INDEX.route, given_headers))
    assert [*found] == [b"Host", b"A", b"Accept-Encoding", b"Authorization"]


WAY_IN = f"Basic {basic('mulligan', 'the-way-in')}".encode()


@pytest.mark.parametrize(
    ("headers", "password", "authorized"),
    [
        ([], "", True),
        ([], "the-way-in", False),
        ([(b"proxy-authorization", b"Basic nonsense")], "the-way-in", False),
        (
            [(b"Proxy-Authorization", f"Basic {basic('mulligan', 'the-way-in')}".encode())],
            "the-way-in",
            True,
        ),
        (
            [(b"authorization", f"Basic {basic('mulligan', 'the-way-in')}".encode())],
            "the-way-in",
            False,
        ),
    ],
)
def test_who_may_use_a_proxy_that_others_can_reach(
    headers: list[tuple[bytes, bytes]],
    password: str,
    authorized: bool,  # noqa: FBT001
) -> None:
    assert is_authorized(headers, password) is authorized


def test_only_the_proxys_own_password_is_removed_for_an_ordinary_host() -> None:
    given_headers = [(b"Authorization", b"mine"), (b"Proxy-Authorization", b"x"), (b"A", b"b")]
    found = request_headers(Route("", "http://any.example", keeps_credentials=True), given_headers)
    names = [name for name, _ in found]
    assert b"Authorization" in names
    assert b"Proxy-Authorization" not in names


def test_variables_lead_to_the_proxy_with_its_password_and_others_directly() -> None:
    found = proxy_variables(99, "w", HTTPS_PROXY_VARIABLES, ["intern.example"])
    assert found == {
        "HTTPS_PROXY": "http://mulligan:w@127.0.0.1:99",
        "https_proxy": "http://mulligan:w@127.0.0.1:99",
        "NO_PROXY": "127.0.0.1,localhost,::1,intern.example",
        "no_proxy": "127.0.0.1,localhost,::1,intern.example",
    }


def test_every_key_of_an_answer_is_blanked() -> None:
    found = KeyFilter("first-secret", "second-secret", "")
    assert found.text(b"first-secret, second-secret") == b"************, *************"
