"""The key goes to nobody but the host that its certificate names."""

import socket
import ssl
from pathlib import Path

import pytest

from world.egress import KEY, answering, head_of, open_egress_proxy
from world.tls import Authority


@pytest.mark.parametrize("trusted", [True, False])
def test_only_a_certificate_that_is_trusted_gets_the_key(
    trusted: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    context, heads = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[bytes]()
    authority = Authority(tmp_path)
    context.load_cert_chain(authority.certificate())
    bundle = authority.ca_file if trusted else None

    def talk(line: socket.socket) -> None:
        try:
            with context.wrap_socket(line, server_side=True) as secret:
                heads.append(head_of(secret))
                secret.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except OSError:
            return

    with (
        answering(talk) as (_, port),
        open_egress_proxy(tmp_path, f"https://localhost:{port}", bundle=bundle) as way,
    ):
        with way.client() as client:
            answer = client.get("/model/v1/models")
    assert answer.status_code == (200 if trusted else 502)
    assert [KEY.encode() in head for head in heads] == ([True] if trusted else [])
    refusal = way.traffic.refusal
    if trusted:
        assert refusal is None
        return
    words = "its certificate is signed by an authority that this machine does not trust; add"
    assert words in answer.text
    assert words in way.log.read_text()
    assert refusal
    assert (refusal.status, refusal.reason.startswith(words)) == (0, True)
