"""Find the certificates of the authorities that Mulligan's own TLS connections trust.

The order is: `github.ca_file` for GitHub, the variables in VARIABLES, the system's certificates,
and those of the certifi package. Git and curl trust the system's certificates by default.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path

from mulligan.domain.errors import ConfigError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that OpenSSL, requests and curl read; the first one that is set counts."""

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, BSD
)
"""For a Python whose OpenSSL was built for another system; as in Go's crypto/x509."""

PEM = re.compile(rb"^-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----", re.MULTILINE)

HASHED_NAME = re.compile(r"[0-9a-f]{8}\.\d+")
"""The name of a certificate in a directory that OpenSSL reads (`openssl rehash`)."""


def trusted_bundle(environment: Mapping[str, str], ca_file: Path | None = None) -> Path | None:
    """Return a PEM file, or a hashed directory, with the certificates to trust.

    `ca_file` is github.ca_file for a connection to GitHub. None means those of certifi, which
    requests and httpx use by default. Raises ConfigError if a configured file has no certificates.
    """
    if configured := configured_bundle(environment, ca_file):
        return configured
    default = ssl.get_default_verify_paths()
    for place in (default.openssl_cafile, *SYSTEM_BUNDLES, default.openssl_capath):
        if has_certificates(Path(place)):
            return Path(place)
    return None


def configured_bundle(environment: Mapping[str, str], ca_file: Path | None = None) -> Path | None:
    """Return what `ca_file` or a variable names, as `trusted_bundle` does; None if none is set."""
    if ca_file:
        return _checked("github.ca_file", ca_file)
    for name in VARIABLES:
        if value := environment.get(name):
            return _checked(f"The variable {name}", Path(value))
    return None


def context_of(bundle: Path) -> ssl.SSLContext:
    """Return a client's TLS context that trusts only the certificates in `bundle`."""
    if bundle.is_dir():
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


def has_certificates(place: Path) -> bool:
    """Return whether a file in PEM form, or a hashed directory, contains certificates."""
    try:
        if place.is_dir():
            return any(HASHED_NAME.fullmatch(each.name) for each in place.iterdir())
        return bool(PEM.search(place.read_bytes()))
    except OSError:
        return False


def read_certificates(place: Path, key: str = "The environment") -> bytes:
    """Return the certificates of a PEM file or hashed directory that a setting names.

    ConfigError if there are none.
    """
    place = _checked(key, place)
    if not place.is_dir():
        return place.read_bytes()
    named = (each for each in sorted(place.iterdir()) if HASHED_NAME.fullmatch(each.name))
    return b"\n".join(each.read_bytes() for each in named)


def _checked(key: str, place: Path) -> Path:
    if not has_certificates(place):
        raise ConfigError(
            f"{key} names {place}, which has no readable certificates in PEM form; fix the path, or"
            " remove the setting."
        )
    return place
