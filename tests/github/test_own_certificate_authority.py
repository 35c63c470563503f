"""GitHub Enterprise with certificates of its own: trusted where github.ca_file names them."""

import http.server
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from mulligan.config.load import load_operator
from mulligan.domain.errors import CertificateError
from mulligan.git.repository import Remote, Repository
from mulligan.github.client import Client, RetrySettings
from mulligan.github.connection import Transport, fetch
from mulligan.interfaces.bootstrap.container import for_git, open_git, open_github
from mulligan.text.redact import Redactor
from world.fake_sleep import FakeSleep
from world.repositories import git, make_remote
from world.tls import Answers, Authority, serve_tls

NUMBER = TypeAdapter(dict[str, int])
NAME = "acme/tools"


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

    authority = Authority(tmp_path)
    with serve_tls(authority.certificate(), Files) as url:
        yield Enterprise(url, authority.ca_file)


def test_the_api_is_trusted_by_the_file(enterprise: Enterprise) -> None:
    quick = RetrySettings(attempts=1)
    known = Client(enterprise.url, lambda _: "t", quick, Transport(bundle=enterprise.ca_file))
    assert known.read(NUMBER, "/thing") == {"number": 1}
    known.close()


@pytest.mark.parametrize("given", ["ca_file", "SSL_CERT_FILE"])
def test_git_trusts_what_the_api_trusts(given: str, enterprise: Enterprise, tmp_path: Path) -> None:
    config = tmp_path / "mulligan.yml"
    ca_file = f", ca_file: {enterprise.ca_file}" if given == "ca_file" else ""
    config.write_text(
        f"""
github: {{api_url: {enterprise.url}{ca_file}}}
repositories: [{{name: {NAME}, clone_url: {enterprise.url}/tools.git, base_branch: main}}]
agent: {{command: [agent]}}
workspace: {{root: {tmp_path / "work"}}}
"""
    )
    operator = load_operator(config, {})
    outer = {} if ca_file else {"SSL_CERT_FILE": str(enterprise.ca_file)}
    with open_github(operator, outer, Redactor()) as github:
        worktrees, _ = open_git(operator, github, outer)
        worktrees.fetch_base(NAME)
        assert worktrees.base_file(NAME, "a.txt") == b"a"
    chosen = for_git(operator, {**outer, "GIT_SSL_CAINFO": "/own/choice.pem"})["GIT_SSL_CAINFO"]
    assert (chosen == "/own/choice.pem") is (not ca_file)


UNTRUSTED = (
    "is signed by an authority that this machine does not trust; set github.ca_file to the "
    "certificates of that authority, or add them to the system's certificates."
)
EXPIRED = "has expired; the server's operator must replace it."
OTHER_NAME = (
    "is for another host name; check the configured address, else the server's operator must fix"
    " it."
)


@dataclass
class Refused:
    """A server whose certificate is not accepted, and why."""

    host: str
    url: str
    bundle: Path
    words: str


CASES: dict[str, tuple[Callable[[Authority], Path], str]] = {
    "untrusted": (Authority.certificate, UNTRUSTED),
    "expired": (lambda known: known.certificate(expired=True), EXPIRED),
    "other name": (lambda known: known.certificate("other.example"), OTHER_NAME),
}


@pytest.fixture(params=CASES)
def refused(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Refused]:
    make, words = CASES[request.param]
    (tmp_path / "stranger").mkdir()
    known, stranger = Authority(tmp_path), Authority(tmp_path / "stranger")
    with serve_tls(make(stranger if words is UNTRUSTED else known), Answers) as url:
        yield Refused(url.removeprefix("https://"), url, known.ca_file, words)


def test_a_certificate_that_is_not_accepted_names_the_host_the_reason_and_the_fix(
    refused: Refused,
) -> None:
    naps = FakeSleep()
    client = Client(
        refused.url,
        lambda _: "t",
        RetrySettings(attempts=5, sleep=naps, now=naps.now),
        Transport(bundle=refused.bundle),
    )
    sentence = re.escape(f"The certificate of GitHub at {refused.host} {refused.words}")
    with pytest.raises(CertificateError, match=f"^{sentence}$"):
        client.read(NUMBER, "/thing")
    with pytest.raises(CertificateError, match=f"^{sentence}$"):
        client.write(NUMBER, "POST", "/thing", {})
    assert not naps.taken  # It does not pass within seconds.
    client.close()


def test_a_download_says_the_same(refused: Refused) -> None:
    sentence = re.escape(f"The certificate of localhost {refused.words}")
    with pytest.raises(CertificateError, match=f"^{sentence}$"):
        fetch(f"{refused.url}/log", refused.url, 60, refused.bundle)


def test_git_says_the_same_and_names_no_file_of_this_machine(
    refused: Refused, tmp_path: Path
) -> None:
    outer = {"PATH": "/usr/bin:/bin", "GIT_SSL_CAINFO": str(refused.bundle)}
    into = Repository(NAME, tmp_path / "mirror.git", outer)
    git(tmp_path, "init", "-q", "--bare", str(into.git_dir))
    remote = Remote(f"{refused.url}/tools.git")
    with pytest.raises(CertificateError) as raised:
        remote.head_of(into, "refs/heads/main")
    message = str(raised.value)
    assert message.startswith(
        f"git ls-remote for {NAME} failed: the certificate of {refused.host} "
    )
    # Git with GnuTLS gives the same reason for an authority and for an old certificate.
    assert message.endswith((refused.words, UNTRUSTED.rpartition("; ")[2]))
    assert str(tmp_path) not in message
