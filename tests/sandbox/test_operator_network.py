"""Setup commands and checks have the operator's network, without its passwords."""

import hashlib
import os
import re
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from mulligan.checks.runner import CommandVerifier
from mulligan.config.operator import SandboxSettings
from mulligan.config.policy import Check, SetUp
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.result import CheckResult
from mulligan.sandbox.operator_network import named_paths, operator_network
from mulligan.sandbox.sandbox import Sandbox, Unconfined
from mulligan.text.certificates import REGISTRY_TRUST
from world.confined import sandbox
from world.egress import answering, head_of
from world.package_index import (
    ARCHIVE,
    ARCHIVE_NAME,
    ENCODED,
    PASSWORD,
    USER,
    PackageIndex,
    serve_package_index,
)
from world.trees import PlainWorktree, plain_worktree

INDEX_VARIABLE = "PIP_INDEX_URL"
DOWNLOAD = "python3 -m pip download --quiet --no-deps --disable-pip-version-check corporate==1.0"
LOOK_AROUND = (
    "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n';"
    " find / -xdev -type f -newermt '-1 day' -size -200k 2>/dev/null"
    " | grep -v '^/proc\\|^/sys' | xargs -r -d '\\n' cat 2>/dev/null; true"
)


@pytest.fixture
def index(tmp_path: Path) -> Generator[PackageIndex]:
    with serve_package_index(tmp_path / "index") as served:
        yield served


@pytest.fixture
def tree(tmp_path: Path) -> PlainWorktree:
    return plain_worktree(tmp_path / "work")


def settings_for(
    index: PackageIndex, password: str = PASSWORD, *, ca: bool = True
) -> dict[str, object]:
    registry = {"host": index.host, "user": USER, "password": password}
    more = {"ca_file": str(index.ca_file)} if ca else {}
    return {"env": [INDEX_VARIABLE], "registries": [registry], **more}


def verifier_with(
    settings: object, confined: Sandbox | None = None, more: Mapping[str, str] | None = None
) -> CommandVerifier:
    environment = {"PATH": os.environ["PATH"], **(more or {})}
    network = operator_network(SandboxSettings.model_validate(settings), environment)
    return CommandVerifier(environment, confined or sandbox(), network=network)


def index_url(index: PackageIndex) -> dict[str, str]:
    return {INDEX_VARIABLE: f"{index.address}/simple"}


@pytest.mark.parametrize("confines", [True, False])
def test_pip_installs_from_a_private_index_and_never_has_its_password(
    confines: bool,  # noqa: FBT001
    index: PackageIndex,
    tree: PlainWorktree,
    tmp_path: Path,
) -> None:
    confined = sandbox((tmp_path / "index",)) if confines else Unconfined()
    verifier = verifier_with(settings_for(index), confined, index_url(index))
    log = tmp_path / "setup.log"
    look = LOOK_AROUND if confines else "env"
    result = verifier.set_up([DOWNLOAD, look], tree, log)
    assert result.passed, result.digest
    assert index.denied == []
    assert any(each.endswith(".whl") for each in index.requests)
    written = log.read_text(errors="replace")
    assert index.address in written
    for secret in (PASSWORD, ENCODED, PASSWORD[::-1]):
        assert secret not in written
        assert secret not in (tmp_path / "setup-egress.log").read_text()


def test_pip_takes_the_whole_file_where_it_would_ask_for_parts(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    """Parts of an answer could be parts of the password; the index offers them."""
    address, digest = f"{index.address}/files/{ARCHIVE_NAME}", hashlib.sha256(ARCHIVE).hexdigest()
    lines = [
        DOWNLOAD.replace("--no-deps", "--use-feature=fast-deps"),
        f"curl --fail --range 0-9 --output all {address} && sha256sum all | grep {digest}",
    ]
    verifier = verifier_with(settings_for(index), more=index_url(index))
    result = verifier.set_up(lines, tree, tmp_path / "setup.log")
    assert result.passed, result.digest
    assert (index.ranges, index.denied) == ([], [])


@pytest.mark.parametrize("program", ["curl", "git", "python"])
def test_other_programs_trust_the_tunnel_too(
    program: str, index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    lines = {
        "curl": f"curl --silent --show-error --fail {index.address}/corporate",
        # The index has no repository; what matters is that it was asked.
        "git": f"git ls-remote {index.address}/corporate 2>&1 | grep 'not found'",
        "python": f"python3 -c 'import urllib.request as r; r.urlopen(\"{index.address}/\")'",
    }
    result = verifier_with(settings_for(index)).set_up([lines[program]], tree, tmp_path / "log")
    assert result.passed, result.digest
    assert index.requests
    assert index.denied == []


def test_a_command_may_read_an_index_but_not_publish(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    line = f"curl --silent --request PUT --data x {index.address}/corporate"
    log = tmp_path / "setup.log"
    assert verifier_with(settings_for(index)).set_up([line], tree, log).passed
    assert "may only be read from a sandbox" in log.read_text()
    assert index.requests == index.denied == []


def test_a_compressed_package_arrives_as_it_is(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    lines = [
        f"curl --silent --show-error --fail --output {name} {index.address}/files/{path}"
        f" && sha256sum {name} | grep {hashlib.sha256(ARCHIVE).hexdigest()}"
        for name, path in (("plain", ARCHIVE_NAME), ("declared", f"declared/{ARCHIVE_NAME}"))
    ]
    result = verifier_with(settings_for(index)).set_up(lines, tree, tmp_path / "setup.log")
    assert result.passed, result.digest


def test_git_clones_from_a_private_host(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    clone = f"git clone --quiet {index.address}/lib.git && test -f lib/corporate.py"
    verifier, log = verifier_with(settings_for(index)), tmp_path / "setup.log"
    result = verifier.set_up([clone], tree, log)
    assert result.passed, result.digest
    push = "git -C lib push --quiet origin HEAD:refs/heads/other"
    assert not verifier.set_up([push], tree, log).passed
    assert not any("git-receive-pack" in each for each in index.requests if "POST" in each)


@pytest.mark.parametrize("how", ["-H 'Connection: close'", "--http1.0", "--cacert other.pem"])
def test_connections_that_ended_leave_room_for_others(
    how: str, index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    # The index's own authority: with it, curl does not trust the proxy.
    (tree.path / "other.pem").write_bytes(index.ca_file.read_bytes())
    many = f'for each in $(seq 70); do set -- "$@" --silent {how} {index.address}/corporate --next'
    line = f'{many}; done; curl "$@" --silent --fail {index.address}/'
    verifier = verifier_with(settings_for(index))
    timed = replace(verifier, set_up_timeout=timedelta(seconds=15))
    result = timed.set_up([line], tree, tmp_path / "setup.log")
    assert result.passed, result.digest
    assert "GET /" in index.requests


@pytest.mark.timeout(120)
def test_a_program_may_keep_more_connections_than_are_served(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    address = f"{index.address}/corporate"
    each = f"-o /dev/null {address} " * 90
    line = f"curl --silent --fail --parallel --parallel-immediate --parallel-max 90 {each}"
    # Without the proxy's help, it would last until then.
    verifier = replace(verifier_with(settings_for(index)), set_up_timeout=timedelta(seconds=90))
    result = verifier.set_up([line], tree, tmp_path / "setup.log")
    assert result.passed, result.digest
    assert len(index.requests) == 90


def test_a_password_in_an_answer_is_masked_and_named(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    line = f"curl --silent {index.address}/password | tr '*' '+'; false"
    log = tmp_path / "setup.log"
    result = verifier_with(settings_for(index)).set_up([line], tree, log)
    assert "+" * len(PASSWORD) in log.read_text()
    assert result.digest.splitlines()[0] == (
        f"{index.address} sent an answer that contains its password; Mulligan masked it there."
    )


def test_an_answer_that_ends_too_early_is_named(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    line = f"curl --silent --show-error --fail {index.address}/broken"
    result = verifier_with(settings_for(index)).set_up([line], tree, tmp_path / "setup.log")
    assert result.digest.splitlines()[0] == f"{index.address} ended an answer too early."


def test_without_the_password_nobody_uses_the_proxy(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    line = f"curl --silent --proxy http://x:y@${{HTTPS_PROXY#*@}} {index.address}/corporate"
    result = verifier_with(settings_for(index)).set_up([line], tree, tmp_path / "setup.log")
    assert not result.passed
    assert index.requests == index.denied == []


def test_a_refused_password_is_named_where_the_setup_failed(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    verifier = verifier_with(settings_for(index, "no-longer-valid"), more=index_url(index))
    result = verifier.set_up([DOWNLOAD], tree, tmp_path / "setup.log")
    first = result.digest.splitlines()[0]
    assert first == f"{index.address} refused Mulligan's credentials with 401."


def test_an_unknown_authority_is_named_with_the_key_that_helps(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    verifier = verifier_with(settings_for(index, ca=False), more=index_url(index))
    result = verifier.set_up([DOWNLOAD], tree, tmp_path / "setup.log")
    assert "set sandbox.ca_file to the certificates of that authority" in result.digest
    (problem,) = verifier.network.problems()
    assert problem == (
        f"The certificate of {index.address} is signed by an authority that this machine does not"
        f" trust; {REGISTRY_TRUST}."
    )


def test_a_program_that_trusts_no_certificate_leads_to_the_same_key(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    line = f"curl --silent --show-error {index.address}/corporate"
    result = verifier_with({}).set_up([line], tree, tmp_path / "setup.log")
    assert result.digest.startswith("A program does not trust a certificate. Set `sandbox.ca_file`")
    # A program may go on after that.
    line = f"{line} || seq 20; exit 1"
    result = verifier_with({}).set_up([line], tree, tmp_path / "setup.log")
    assert result.digest.startswith("A program does not trust a certificate. Set `sandbox.ca_file`")


POETRY_SAYS = "echo All attempts to connect to index.example failed.; exit 1"


def test_an_unreachable_server_leads_to_the_variables_that_commands_lack(
    tree: PlainWorktree, tmp_path: Path
) -> None:
    own = {"HTTPS_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}

    def first_line(settings: object, line: str = POETRY_SAYS) -> str:
        result = verifier_with(settings, more=own).set_up([line], tree, tmp_path / "setup.log")
        return result.digest.splitlines()[0]

    assert first_line({}).startswith(
        "Mulligan's environment has HTTPS_PROXY, ALL_PROXY, and commands do not."
    )
    assert "has ALL_PROXY, and" in first_line({"env": ["HTTPS_PROXY"]})
    assert first_line({"env": [*own]}).startswith("All attempts")
    assert first_line({}, "echo No matching version; exit 1") == "No matching version"


def test_an_authority_of_the_operators_is_trusted_without_an_index(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    verifier = verifier_with({"ca_file": str(index.ca_file)})
    line = f"curl --silent --show-error --fail --user {USER}:{PASSWORD} {index.address}/corporate"
    assert verifier.set_up([line], tree, tmp_path / "setup.log").passed


def check(
    verifier: CommandVerifier, tree: PlainWorktree, run: str, *, network: bool
) -> CheckResult:
    log = tree.private.parent / "check.log"
    return verifier.check(Check(name="tests", run=run, network=network), tree, log)


def test_a_check_reaches_the_index_only_if_it_has_the_network(
    index: PackageIndex, tree: PlainWorktree
) -> None:
    verifier = verifier_with(settings_for(index))
    line = f"curl --silent --show-error --fail {index.address}/corporate"
    assert check(verifier, tree, line, network=True).passed
    assert not check(verifier, tree, line, network=False).passed


def test_setup_on_a_change_reaches_an_index_only_if_its_host_is_listed(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    verifier, log = verifier_with(settings_for(index), more=index_url(index)), tmp_path / "log"
    listed = verifier.set_up_again(SetUp(run=(DOWNLOAD,), hosts=(index.host,)), tree, log, "Why.")
    assert listed.passed, listed.digest
    before = len(index.requests)
    refused = verifier.set_up_again(SetUp(run=(DOWNLOAD,)), tree, log, "Why.")
    assert f"Refused: {index.host}; a maintainer can list it in setup.hosts." in refused.digest
    assert len(index.requests) == before


def test_variables_are_passed_on_and_their_files_are_shown(
    tree: PlainWorktree, tmp_path: Path
) -> None:
    named = tmp_path / "pip.conf"
    named.write_text("[global]\ntimeout = 60\n")
    given = {"PIP_CONFIG_FILE": str(named), "COLOUR": "blue", "NOT_NAMED": "x"}
    verifier = verifier_with({"env": ["PIP_CONFIG_FILE", "COLOUR", "UNSET"]}, more=given)
    line = 'cat "$PIP_CONFIG_FILE" && test "$COLOUR$NOT_NAMED$UNSET" = blue'
    assert check(verifier, tree, line, network=False).passed


def test_certificates_that_are_removed_later_are_the_operators_to_fix(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    """Not an error that would leave the attempt without an end."""
    verifier = verifier_with(settings_for(index))
    index.ca_file.unlink()
    with pytest.raises(MisconfiguredError, match=r"sandbox\.ca_file names .*authority\.pem"):
        verifier.set_up(["true"], tree, tmp_path / "setup.log")


def test_a_variable_never_shows_the_home_directory() -> None:
    home = str(Path("~").expanduser())
    assert named_paths({"A": home, "B": "/", "C": str(Path(home).parent), "D": "usr"}) == ()
    assert named_paths({"A": "/usr/bin", "B": "/no/such/path"}) == (Path("/usr/bin"),)


@pytest.mark.parametrize(
    "entry", ["*", "127.0.0.2", "*.0.0.2", ".0.0.2", "127.0.0.2:443", "127.0.0.2 other.example"]
)
def test_no_exception_of_the_operators_bypasses_the_index(
    entry: str, index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    settings = {**settings_for(index), "env": ["NO_PROXY"]}
    line = f"env; curl --silent --show-error --fail {index.address}/corporate"
    log = tmp_path / "setup.log"
    verifier = verifier_with(settings, more={"NO_PROXY": f"{entry},host.example"})
    result = verifier.set_up([line], tree, log)
    assert result.passed, result.digest
    entries = re.findall(r"^no_proxy=(.*)$", log.read_text(), re.MULTILINE)[0].split(",")
    assert {entry, *entry.split()} & {*entries} <= {"other.example"}
    assert "host.example" in entries


def test_programs_with_a_proxy_of_their_own_find_the_proxy(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    line = 'for each in $PIP_PROXY $NPM_CONFIG_HTTPS_PROXY $YARN_HTTPS_PROXY; do test "$each" ='
    line = f'{line} "$HTTPS_PROXY" || exit 1; done; test "$YARN_HTTPS_PROXY"'
    verifier = verifier_with(settings_for(index))
    assert verifier.set_up([line], tree, tmp_path / "log").passed
    again = verifier.set_up_again(SetUp(run=(line,)), tree, tmp_path / "log", "Why.")
    assert again.passed, again.digest


@contextmanager
def company_proxy(heads: list[str]) -> Generator[str]:
    """Open tunnels as a company's proxy does, and keep the heads of the requests."""

    def talk(line: socket.socket) -> None:
        head = head_of(line).decode()
        heads.append(head)
        host, _, port = head.split()[1].rpartition(":")
        with socket.create_connection((host, int(port))) as server:
            line.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=copy, args=(server, line))
            back.start()
            copy(line, server)
            back.join()

    with answering(talk) as (host, port):
        yield f"http://worker:proxy-password@{host}:{port}"


def copy(one: socket.socket, other: socket.socket) -> None:
    while part := one.recv(65536):
        other.sendall(part)
    other.shutdown(socket.SHUT_WR)


def test_the_password_of_the_companys_proxy_stays_outside(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = list[str]()
    with company_proxy(heads) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        settings = {"env": ["HTTPS_PROXY"], "ca_file": str(index.ca_file)}
        verifier = verifier_with(settings, more={"HTTPS_PROXY": proxy})
        log = tmp_path / "setup.log"
        line = f"env; curl --silent --fail --user {USER}:{PASSWORD} {index.address}/corporate"
        assert verifier.set_up([line], tree, log).passed
    assert "proxy-password" not in log.read_text()
    assert [head.split()[1] for head in heads] == [index.host]
    assert "Proxy-Authorization: Basic" in heads[0]
    assert verifier.network.exposed() == ()


@pytest.mark.parametrize(
    ("proxy", "why"),
    [
        ("http://127.0.0.1:1", "All connection attempts failed (through the proxy 127.0.0.1 of"),
        ("socks5://127.0.0.1:1", "HTTPS_PROXY or HTTP_PROXY does not name an HTTP proxy"),
    ],
)
def test_a_proxy_that_fails_is_named(
    proxy: str,
    why: str,
    index: PackageIndex,
    tree: PlainWorktree,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    line = f"curl --silent --fail {index.address}/corporate"
    verifier = verifier_with(settings_for(index))
    result = verifier.set_up([line], tree, tmp_path / "setup.log")
    assert result.digest.startswith(f"{index.address} could not be reached: {why}")
    (problem,) = verifier.network.problems()
    assert "HTTPS_PROXY" in problem


@pytest.mark.parametrize(
    ("registry", "why"),
    [
        ({"token": "two words"}, "a token has no spaces"),
        ({"token": "tökén-of-the-index"}, "no letters beyond ASCII"),
        ({"token": "a\nb"}, "control characters"),
        ({"user": "a:b", "password": "c"}, "a user name has no colon"),
        ({"user": "a"}, "name either the password or the token"),
    ],
)
def test_credentials_that_cannot_be_sent_are_refused(registry: dict[str, str], why: str) -> None:
    settings = {"registries": [{"host": "index.example", **registry}]}
    with pytest.raises(ValidationError, match=why):
        SandboxSettings.model_validate(settings)


def test_a_check_without_the_network_has_no_password_of_a_proxy(tree: PlainWorktree) -> None:
    proxy = "http://worker:proxy-password@127.0.0.1:9"
    verifier = verifier_with({"env": ["HTTPS_PROXY"]}, more={"HTTPS_PROXY": proxy})
    assert check(verifier, tree, "! env | grep proxy-password", network=False).passed


def test_certificates_of_mulligans_own_environment_are_trusted_inside(
    index: PackageIndex, tree: PlainWorktree, tmp_path: Path
) -> None:
    """What the operator's programs trust on this machine, setup commands trust too."""
    verifier = verifier_with({}, more={"CURL_CA_BUNDLE": str(index.ca_file)})
    line = f"curl --silent --show-error --fail --user {USER}:{PASSWORD} {index.address}/corporate"
    assert verifier.set_up([line], tree, tmp_path / "setup.log").passed
    assert check(verifier, tree, 'test -z "$CURL_CA_BUNDLE"', network=False).passed


def test_a_password_in_another_variable_is_reported_as_exposed(index: PackageIndex) -> None:
    more = {INDEX_VARIABLE: "https://a:secret-word@a.example/"}
    assert verifier_with(settings_for(index), Unconfined(), more).network.exposed() == (
        INDEX_VARIABLE,
    )
