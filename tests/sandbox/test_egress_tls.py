"""The key goes to nobody but the host that its certificate names."""

import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from world.egress import KEY, answering, head_of, open_egress_proxy


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Make a certificate of this machine that nobody else has signed."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("openssl is not there to make a certificate")
    place = tmp_path / "certificate.pem"
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    named = ("-addext", "subjectAltName=DNS:localhost", "-keyout", place, "-out", f"{place}.crt")
    subprocess.run([openssl, *made, *named], check=True, capture_output=True)
    place.write_bytes(place.read_bytes() + Path(f"{place}.crt").read_bytes())
    return place


@pytest.mark.parametrize("trusted", [True, False])
def test_only_a_certificate_that_is_trusted_gets_the_key(
    trusted: bool,  # noqa: FBT001
    certificate: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, heads = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), list[bytes]()
    context.load_cert_chain(certificate)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")

    def talk(line: socket.socket) -> None:
        try:
            with context.wrap_socket(line, server_side=True) as secret:
                heads.append(head_of(secret))
                secret.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except OSError:
            return

    with (
        answering(talk) as (_, port),
        open_egress_proxy(tmp_path, f"https://localhost:{port}") as way,
    ):
        with way.client() as client:
            status = client.get("/model/v1/models").status_code
    assert status == (200 if trusted else 502)
    assert [KEY.encode() in head for head in heads] == ([True] if trusted else [])
