"""Git over HTTP and Git LFS, with authentication as on GitHub."""

import base64
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
import requests

from github_simulator.app import running
from world.lfs import oid_of, pointer, store
from world.repositories import commit_to, git, run_git
from world.simulated import NAME, SimulatedGitHub, simulated_github

CONTENT = b"content\n" * 100
ACCEPT = {"accept": "application/vnd.git-lfs+json"}


@pytest.fixture
def here(tmp_path: Path) -> Generator[SimulatedGitHub]:
    with simulated_github(tmp_path, running, private=True) as made:
        yield made


@pytest.fixture
def public(tmp_path: Path) -> Generator[SimulatedGitHub]:
    with simulated_github(tmp_path, running) as made:
        yield made


def address(here: SimulatedGitHub, login: str | None) -> str:
    user = f"x-access-token:token-{login}@" if login else ""
    return f"{here.url.replace('://', f'://{user}')}/{NAME}.git"


@pytest.mark.parametrize("version", ["0", "2"])
def test_clone_and_push(here: SimulatedGitHub, tmp_path: Path, version: str) -> None:
    protocol = ("-c", f"protocol.version={version}")
    git(tmp_path, *protocol, "clone", "-q", address(here, "wes"), "clone")
    (tmp_path / "clone" / "new").write_text("new\n" * 40_000)
    git(tmp_path / "clone", "add", "-A")
    git(tmp_path / "clone", "commit", "-qm", "new")
    git(tmp_path / "clone", *protocol, "push", "-q", "origin", "HEAD:refs/heads/new")
    assert git(here.bare, "rev-parse", "new") == git(tmp_path / "clone", "rev-parse", "HEAD")
    refused = run_git(tmp_path / "clone", "push", address(here, "rea"), "HEAD:refs/heads/more")
    assert "403" in refused.stderr


def test_a_pinned_commit_can_be_fetched_alone(here: SimulatedGitHub, tmp_path: Path) -> None:
    old = git(here.bare, "rev-parse", "main")
    commit_to(here.bare, {"more": "more\n"})
    git(tmp_path, "init", "-q", "--bare", "one.git")
    git(tmp_path / "one.git", "fetch", "-q", "--depth=1", address(here, "wes"), old)
    git(tmp_path / "one.git", "cat-file", "-e", old)
    missing = run_git(tmp_path / "one.git", "fetch", address(here, "wes"), "1" * 40)
    assert "not our ref" in missing.stderr


def test_whoever_may_not_read_is_asked_to_sign_in(here: SimulatedGitHub, tmp_path: Path) -> None:
    for login, words in ((None, "could not read Username"), ("zoe", "not found")):
        done = run_git(tmp_path, "-c", "core.askPass=", "clone", address(here, login), "x")
        assert done.returncode
        assert words in done.stderr
    assert here.get(f"/{NAME}.git/info/refs?service=git-upload-pack", by=None).status_code == 401
    assert here.get(f"/{NAME}.git/info/refs?service=nonsense").status_code == 403


def test_anybody_reads_a_public_repository(public: SimulatedGitHub, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", address(public, None), "clone")
    path = f"/{NAME}.git/info/refs?service=git-receive-pack"
    answer = public.get(path, by=None)
    assert (answer.status_code, answer.headers["www-authenticate"][:5]) == (401, "Basic")


def ask(
    here: SimulatedGitHub, by: str | None, *oids: str, operation: str = "download"
) -> requests.Response:
    basic = base64.b64encode(f"x-access-token:token-{by}".encode()).decode()
    signed = {"authorization": f"Basic {basic}"} if by else {}
    body = {"operation": operation, "objects": [{"oid": oid, "size": 1} for oid in oids]}
    return here.session.post(
        f"{here.url}/{NAME}.git/info/lfs/objects/batch", json=body, headers={**ACCEPT, **signed}
    )


def test_lfs_objects_have_signed_addresses(here: SimulatedGitHub) -> None:
    store(here.bare, CONTENT)
    answer = ask(here, "rea", oid_of(CONTENT), "1" * 64, "../x")
    found, missing, odd = answer.json()["objects"]
    assert missing["error"]["code"] == odd["error"]["code"] == 404
    href = found["actions"]["download"]["href"]
    assert here.session.get(href).content == CONTENT
    assert here.session.get(href.partition("?")[0]).status_code == 404
    for by, status in ((None, 401), ("zoe", 404), ("nobody", 401)):
        refused = ask(here, by, oid_of(CONTENT))
        assert refused.status_code == status
    upload = ask(here, "wes", oid_of(CONTENT), operation="upload")
    assert upload.status_code == 422


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="needs the program git-lfs")
def test_the_real_git_lfs_downloads_from_it(here: SimulatedGitHub, tmp_path: Path) -> None:
    files = {".gitattributes": "*.bin filter=lfs\n", "a.bin": store(here.bare, CONTENT)}
    commit_to(here.bare, files)
    git(tmp_path, "clone", "-q", address(here, "wes"), "clone")
    assert (tmp_path / "clone/a.bin").read_text() == pointer(CONTENT)
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for words in (("install", "--local"), ("pull",)):
        subprocess.run(
            ["git", "lfs", *words],
            cwd=tmp_path / "clone",
            env=home,
            check=True,
            capture_output=True,
            timeout=60,
        )
    assert (tmp_path / "clone/a.bin").read_bytes() == CONTENT
