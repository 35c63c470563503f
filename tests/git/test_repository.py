"""Git is called with what Mulligan says and nothing else."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.git.repository import Remote, Repository
from world.repositories import git, make_remote

SOON = timedelta(seconds=20)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    remote = make_remote(tmp_path / "kept.git", {"a.txt": "a\n"})
    return Repository("octo/calc", remote, {"PATH": os.environ["PATH"]})


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Surround Mulligan with an environment and a home that would lead git astray."""
    marker = tmp_path / "started"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    (tmp_path / ".gitconfig").write_text(
        f"[core]\n\tfsmonitor = {program}\n\thooksPath = {tmp_path}\n[user]\n\tname = Eve\n"
    )
    for name, value in {
        "HOME": str(tmp_path),
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/",
        "GIT_INDEX_FILE": "/nowhere/index",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Eve",
        "GIT_SSH_COMMAND": str(program),
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_EXEC_PATH": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    return marker


def test_the_environment_around_mulligan_reaches_no_git(
    repository: Repository, hostile: Path
) -> None:
    head = git(repository.git_dir, "rev-parse", "main")
    assert repository.line("rev-parse", "main") == head
    assert repository.query("config", "user.name").exit_code == 1
    assert repository.attempt("config", "user.name", timeout=SOON).exit_code == 1
    assert repository.attempt("rev-parse", "main", timeout=SOON).text.strip() == head
    assert not hostile.exists()


def test_output_comes_as_it_is(repository: Repository) -> None:
    assert repository.read("cat-file", "blob", "main:a.txt") == b"a\n"
    assert repository.query("cat-file", "-e", "1" * 40).exit_code == 1


def test_a_colon_in_a_path_is_part_of_it(repository: Repository, tmp_path: Path) -> None:
    other = make_remote(tmp_path / 'o:t"her\\x.git', {"b.txt": "b\n"})
    blob = git(other, "rev-parse", "main:b.txt")
    borrowing = Repository(
        "octo/calc", repository.git_dir, repository.outer, alternates=(other / "objects",)
    )
    assert borrowing.read("cat-file", "blob", blob) == b"b\n"


def test_a_missing_git_needs_the_operator(tmp_path: Path) -> None:
    repository = Repository("octo/calc", tmp_path, {"PATH": str(tmp_path)})
    with pytest.raises(MisconfiguredError, match="git"):
        repository.read("version")
    with pytest.raises(MisconfiguredError, match="git"):
        repository.run("version", timeout=SOON)


def test_git_that_does_not_end_is_ended(repository: Repository, tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    slow = Repository("octo/calc", repository.git_dir, {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    started = time.monotonic()
    with pytest.raises(UnavailableError, match="git fetch for octo/calc took longer than 200ms"):
        slow.run("fetch", timeout=timedelta(seconds=0.2))
    assert time.monotonic() - started < 50


@pytest.mark.parametrize(
    "url", ["ext::touch {marker}", "--upload-pack=touch {marker}", "fd::7", "http://127.0.0.1:1/x"]
)
def test_no_url_starts_a_program(repository: Repository, tmp_path: Path, url: str) -> None:
    marker = tmp_path / "started"
    with pytest.raises(UnavailableError):
        Remote(url.format(marker=marker)).fetch(repository, ["+refs/heads/main:refs/heads/x"])
    assert not marker.exists()


def test_a_proxy_is_used_for_remotes_only(repository: Repository) -> None:
    outer = {"PATH": os.environ["PATH"], "http_proxy": "http://127.0.0.1:9", "SECRET": "x"}
    proxied = Repository("octo/calc", repository.git_dir, outer)
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1 port 9"):
        Remote("http://git.example.invalid/x").head_of(proxied, "refs/heads/main")
    shown = proxied.attempt("-c", "alias.e=!env", "e", timeout=SOON).text
    assert "SECRET" not in shown
    assert "http_proxy" not in shown
    assert "GIT_TERMINAL_PROMPT=0" in shown
