"""GitHub Enterprise with certificates of its own: trusted where github.ca_file names them."""

import http.server
import ssl
import threading
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import TypeAdapter

from mulligan.config.load import load_operator
from mulligan.domain.errors import UnavailableError
from mulligan.github.client import Client, RetrySettings
from mulligan.github.connection import Transport
from mulligan.interfaces.bootstrap.container import open_git, open_github
from mulligan.text.redact import Redactor
from world.repositories import git, make_remote

NUMBER = TypeAdapter(dict[str, int])
NAME = "acme/tools"


def certificate(directory: Path) -> Path:
    """Make a certificate for loopback, signed by itself, in one file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    place = directory / "own.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    place.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return place


@dataclass
class Enterprise:
    """A server on loopback that speaks TLS only."""

    url: str
    ca_file: Path


@pytest.fixture
def enterprise(tmp_path: Path) -> Generator[Enterprise]:
    site = tmp_path / "site"
    make_remote(site / "tools.git", {"a.txt": "a"})
    git(site / "tools.git", "update-server-info")
    (site / "thing").write_text('{"number": 1}')

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: object) -> None:
            super().__init__(*given, directory=str(site))  # pyright: ignore[reportArgumentType]

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep still."""

    ca_file = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca_file)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Enterprise(f"https://127.0.0.1:{server.server_port}", ca_file)
        server.shutdown()
        thread.join()


def test_the_api_is_trusted_by_the_file_and_not_without(enterprise: Enterprise) -> None:
    quick = RetrySettings(attempts=1)
    known = Client(enterprise.url, lambda _: "t", quick, Transport(ca_file=enterprise.ca_file))
    assert known.read(NUMBER, "/thing") == {"number": 1}
    stranger = Client(enterprise.url, lambda _: "t", quick)
    with pytest.raises(UnavailableError, match="its certificate is not trusted on this machine"):
        stranger.read(NUMBER, "/thing")
    known.close()
    stranger.close()


def test_git_is_told_of_the_file_too(enterprise: Enterprise, tmp_path: Path) -> None:
    config = tmp_path / "mulligan.yml"
    config.write_text(
        f"""
github: {{api_url: {enterprise.url}, ca_file: {enterprise.ca_file}}}
repositories: [{{name: {NAME}, clone_url: {enterprise.url}/tools.git, base_branch: main}}]
agent: {{command: [agent]}}
workspace: {{root: {tmp_path / "work"}}}
"""
    )
    operator = load_operator(config, {})
    with open_github(operator, Redactor()) as github:
        worktrees, _ = open_git(operator, github, {})
        worktrees.fetch_base(NAME)
        assert worktrees.base_file(NAME, "a.txt") == b"a"
