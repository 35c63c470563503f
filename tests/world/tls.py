"""Certificates of an authority that is made for the test, and servers on loopback with them."""

import http.server
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """An authority of one test; `ca_file` has its certificate."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("The test's authority")
        made = (
            _unsigned(self._name, self._name, self._key, datetime.now(UTC) - 9 * DAY, 18 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._certificate = made
        self.ca_file = directory / "authority.pem"
        self.ca_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def certificate(self, host: str = "localhost", *, expired: bool = False) -> Path:
        """Sign a certificate for a host, and for 127.0.0.1 if that is loopback's name.

        Return one file with its key and the certificate.
        """
        key, began = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) - 3 * DAY
        names: list[x509.GeneralName] = [x509.DNSName(host)]
        if host == "localhost":
            names.append(x509.IPAddress(IPv4Address("127.0.0.1")))
        elif host.startswith("127."):
            names = [x509.IPAddress(IPv4Address(host))]
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = (
            _unsigned(_named(host), self._name, key, began, 2 * DAY if expired else 6 * DAY)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(issuer_key, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        place = self._directory / f"{host}{'-expired' if expired else ''}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        place.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
        return place


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    began: datetime,
    lasts: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + lasts)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


@contextmanager
def serve_tls(
    certificate: Path,
    handler: Callable[..., http.server.BaseHTTPRequestHandler],
    host: str = "localhost",
) -> Generator[str]:
    """Serve on loopback while the block lasts; return the address, `https://HOST:PORT`.

    Of all hosts on loopback, only `localhost` and 127.0.0.1 are reached without a proxy.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with http.server.ThreadingHTTPServer((host, 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://{host}:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers each request with `{"number": 1}`."""

    def do_GET(self) -> None:
        """Answer."""
        body = b'{"number": 1}'
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep still."""
