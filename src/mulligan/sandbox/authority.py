"""A certificate authority in memory, with which the proxy opens tunnels to package indexes.

Its key never leaves Mulligan's process. Only the commands of this process trust it.
"""

import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_FROM, VALID_UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2049, 12, 31, tzinfo=UTC)
"""Nobody trusts the authority for longer than its process lives. From 2050 on, dates have another
form (RFC 5280, 4.1.2.5)."""

PROTOCOLS = ["http/1.1"]


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority's certificate as PEM text, and the TLS settings of a server for a host."""

    certificate: str
    serve: Callable[[str], ssl.SSLContext]


def make_authority() -> Authority:
    """Make an authority; this takes about 5 ms."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Mulligan, for commands in its sandbox")
    # RFC 5280, 4.2: OpenSSL 3 checks these extensions with VERIFY_X509_STRICT.
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signed = (
        _certificate(name, key, name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)

    @cache
    def serve(host: str) -> ssl.SSLContext:
        """Return the TLS settings for the sandbox's side of a tunnel to a host."""
        own = ec.generate_private_key(ec.SECP256R1())
        leaf = (
            _certificate(_name(host[:64]), own, name)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.OID_SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False
            )
            .add_extension(issuer, critical=False)
            .sign(key, hashes.SHA256())
        )
        return _context(_pem(leaf), own)

    return Authority(_pem(signed).decode(), serve)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(VALID_FROM)
        .not_valid_after(VALID_UNTIL)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _context(certificate: bytes, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    """Return the settings; ssl reads keys from files only, so this is a file in memory."""
    written = certificate + key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(PROTOCOLS)
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, written)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context
