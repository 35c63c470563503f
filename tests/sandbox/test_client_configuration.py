"""Commands read the system's configuration of package managers, but no secret in it."""

from pathlib import Path

import pytest

from mulligan.sandbox.client_configuration import (
    MAX_BYTES,
    MAX_FILES,
    client_configuration,
    files_named_in,
    has_secret,
)
from mulligan.sandbox.programs import is_in_system


@pytest.mark.pure
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("[global]\nproxy = http://a.example\ntrusted-host = a", False),
        ("[global]\nproxy = http://ci:word@a.example", True),
        ("proxy=http://a.example\nalways-auth=true", False),
        ("//npm.example/:_authToken=abcdef", True),
        ("//npm.example/:_authToken=${NPM_TOKEN}", False),
        ("//npm.example/:_password = abcdef", True),
        ("_auth=abcdef", True),
        ("# password = abcdef\n; token = abcdef", False),
        ("password =", False),
        ('keyring-provider = "subprocess"\nauthenticate = "always"', False),
        (":rubygems_api_key: abcdef", True),
        ("[credential]\n  helper = store", False),
        ("[http]\n  extraheader = AUTHORIZATION: basic YWJjZGVmOmdoaQ==", True),
        ("<server><password>abcdef</password></server>", True),
        ("<!-- <password>abcdef</password> --><password>${env.P}</password>", False),
        ("a = ghp_0123456789abcdefghijklmnopqrstuvwxyz", True),
        ("mirrors =\n  https://a.example/\n  https://ci:word@b.example/", True),
        ("mirror = https://a1B2c3d4e5f6g7h8i9j0@a.example/", True),
        ("mirror = https://a1B2c3d4e5f6g7h8i9j0:@a.example/", True),
        ("mirror = https://oauth2accesstoken@a.example/", False),
        ("mirror = https://${THE_TOKEN_OF_THE_MIRROR}@a.example/", False),
        ('[url "ssh://git@git.example/"]\n  insteadOf = https://git.example/', False),
        ("[http]\n  extraHeader = X-Own-Key: abcdef", True),
        ("header = X-Own-Key: abcdef", True),
        ('[http]\n  extraHeader = "Authorization: Basic abc"', True),
        ("machine git.example login ci password abcdef", True),
        ("machine git.example\n  login ci\n  password abcdef", True),
        ("git.example\tFALSE\t/\tTRUE\t0\tsession\tabcdef", True),
        ("channels:\n  - https://conda.example/t/ab-12345678/main", True),
        ("channels:\n  - https://conda.example/main\nssl_verify: /etc/ca.pem", False),
        ("<name>Private-Token</name>\n<value>abcdef</value>", True),
        ("<name>Private-Token</name><value>${env.TOKEN}</value>", False),
        ("<api.token>abcdef</api.token>", True),
        ("<privateKey>/home/ci/key</privateKey>", False),
        ("pwd: abcdef", True),
        ("[http]\n  proxy = http://proxy.example:3128\n[safe]\n  directory = *", False),
    ],
)
def test_what_counts_as_a_secret(text: str, secret: bool) -> None:  # noqa: FBT001
    assert has_secret(text) is secret


def test_a_file_with_a_secret_is_hidden_and_the_others_are_readable(tmp_path: Path) -> None:
    plain, secret, large = (tmp_path / name for name in ("pip.conf", "npmrc", "gitconfig"))
    plain.write_text("[global]\ntimeout = 60\n")
    secret.write_text("_authToken=abcdef\n")
    large.write_bytes(b"a" * (MAX_BYTES + 1))
    found = client_configuration((plain, secret, large, tmp_path, tmp_path / "missing"))
    assert found.readable == (plain,)
    assert found.secret == (secret, large)


def test_a_store_of_keys_is_hidden(tmp_path: Path) -> None:
    store = tmp_path / "client.p12"
    store.write_bytes(b"\x30\x82\0\0abc")
    assert client_configuration((store,)).secret == (store,)


def test_letters_of_many_bytes_do_not_hide_the_end_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "npmrc"
    file.write_text(f"# {'ä' * (MAX_BYTES // 2)}\n_authToken=abcdef\n")
    assert client_configuration((file,)).readable == ()


def test_links_are_followed_where_nothing_can_be_bound_over_them(tmp_path: Path) -> None:
    file, link = tmp_path / "real", tmp_path / "npmrc"
    file.write_text("_authToken=abcdef\n")
    link.symlink_to(file)
    assert client_configuration((link,)).secret == (file,)
    file.write_text("fund=false\n")
    assert client_configuration((link,)).readable == (link,)


def test_files_that_a_configuration_names_are_read_too() -> None:
    text = (
        "constraint = /etc/xdg/pip/constraints.txt\ncert=/opt/corp/ca.pem\n"
        "cafile=/etc/ssl/certs/ca-certificates.crt\nhome = ~/etc/x\nurl = https://a.example/etc/x"
        "\npath = /etc/../root/.ssh/id\ncache = /home/u/.cache/pip"
    )
    named = files_named_in(text)
    assert named == (Path("/etc/xdg/pip/constraints.txt"), Path("/opt/corp/ca.pem"))
    assert is_in_system("/etc/ssl/certs/ca-certificates.crt")


def test_a_configuration_that_names_files_without_end_is_read_up_to_a_limit(
    tmp_path: Path,
) -> None:
    files = [tmp_path / str(number) for number in range(MAX_FILES + 5)]
    for file in files:
        file.write_text("x\n")
    assert len(client_configuration(files).readable) == MAX_FILES
