"""Which authorities Mulligan's own connections trust."""

from pathlib import Path

import pytest

from mulligan.config.certificates import (
    configured_bundle,
    context_of,
    has_certificates,
    trusted_bundle,
)
from mulligan.domain.errors import ConfigError
from world.tls import Authority


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    return Authority(tmp_path).ca_file


def test_the_file_for_github_counts_before_the_variables(ca_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(ca_file.read_bytes())
    variables = {"REQUESTS_CA_BUNDLE": str(ca_file), "SSL_CERT_FILE": str(other)}
    assert trusted_bundle(variables, ca_file) == ca_file
    assert trusted_bundle(variables) == other
    assert trusted_bundle({"SSL_CERT_FILE": "", "REQUESTS_CA_BUNDLE": str(ca_file)}) == ca_file


def test_without_a_setting_the_systems_certificates_count() -> None:
    assert configured_bundle({}) is None
    found = trusted_bundle({})
    assert found is None or has_certificates(found)
    debian = Path("/etc/ssl/certs/ca-certificates.crt")
    if debian.exists():
        assert found is not None
        assert context_of(found).get_ca_certs() or found.is_dir()


def test_a_directory_has_certificates_if_openssl_can_find_them_by_hash(
    ca_file: Path, tmp_path: Path
) -> None:
    hashed = tmp_path / "hashed"
    hashed.mkdir()
    (hashed / "authority.pem").write_bytes(ca_file.read_bytes())
    assert not has_certificates(hashed)
    (hashed / "0a1b2c3d.0").write_bytes(ca_file.read_bytes())
    assert trusted_bundle({"SSL_CERT_DIR": str(hashed)}) == hashed
    context_of(hashed)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe no certificate"])
def test_a_setting_without_certificates_is_named(content: bytes | None, tmp_path: Path) -> None:
    place = tmp_path / "absent.pem"
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(ConfigError, match=r"SSL_CERT_FILE names .*absent\.pem.*; fix the path"):
        trusted_bundle({"SSL_CERT_FILE": str(place)})
    with pytest.raises(ConfigError, match=r"^github\.ca_file names"):
        trusted_bundle({}, place)
