"""Submodules come from the host of their repository only (WORKTREE-5)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mulligan.domain.errors import MisconfiguredError
from mulligan.git.worktrees.fetch_submodules import SubmoduleSource
from mulligan.git.worktrees.mirror import Mirror
from mulligan.git.worktrees.naming import RepositoryPaths
from mulligan.git.worktrees.submodule_urls import Address, Refusal, allowed_address, resolve
from world.repositories import git
from world.submodules import FILE, GITLINK, gitmodules, library, put

HTTPS, SSH, LOCAL = "https://github.com/acme/tools.git", "git@github.com:acme/tools", "/srv/a/tools"


@pytest.mark.parametrize(
    "outer", [HTTPS, "https://github.com/acme/tools/", SSH, "ssh://git@h:22/acme/tools", LOCAL]
)
@pytest.mark.parametrize("url", ["../lib.git", "../../other/lib", "./in", "../x/../lib", HTTPS])
def test_relative_urls_are_those_of_git(outer: str, url: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "origin", outer)
    git(tmp_path, "config", "-f", ".gitmodules", "submodule.x.path", "x")
    git(tmp_path, "config", "-f", ".gitmodules", "submodule.x.url", url)
    git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},x")
    git(tmp_path, "submodule", "-q", "init")
    assert resolve(outer, url) == git(tmp_path, "config", "submodule.x.url")


@pytest.mark.parametrize(
    ("repository", "url", "fetched"),
    [
        (HTTPS, "https://github.com/acme/lib.git", "https://github.com/acme/lib.git"),
        (HTTPS, "https://GitHub.com/acme/lib/", "https://github.com/acme/lib/"),
        (HTTPS, "git@github.com:acme/lib.git", "https://github.com/acme/lib.git"),
        (HTTPS, "ssh://git@github.com/acme/lib.git", "https://github.com/acme/lib.git"),
        (HTTPS, "http://github.com/acme/lib", "https://github.com/acme/lib"),
        (HTTPS, "https://me:secret@github.com/acme/lib", "https://github.com/acme/lib"),
        (SSH, "https://github.com/acme/lib", "ssh://git@github.com/acme/lib"),
        ("ssh://git@h:22/a/b", "https://h/a/c", "ssh://git@h:22/a/c"),
        ("http://127.0.0.1:80/a/b", "http://127.0.0.1:80/a/c", "http://127.0.0.1:80/a/c"),
        (LOCAL, "/srv/a/lib.git", "/srv/a/lib.git"),
        (LOCAL, "file:///srv/a/lib.git", "/srv/a/lib.git"),
    ],
)
def test_the_address_has_the_form_of_the_repositorys(
    repository: str, url: str, fetched: str
) -> None:
    found = allowed_address(repository, url)
    assert isinstance(found, Address)
    assert found.url == fetched


@pytest.mark.parametrize(
    ("repository", "url"),
    [
        (HTTPS, "https://evil.example/acme/lib"),
        (HTTPS, "https://github.com.evil.example/acme/lib"),
        (HTTPS, "https://github.com@evil.example/acme/lib"),
        (HTTPS, "https://github.com:8443/acme/lib"),
        (HTTPS, "git@evil.example:acme/lib"),
        (HTTPS, resolve(HTTPS, "../../../evil.example/acme/lib")),
        (HTTPS, "https://github.com/acme/../lib"),
        (HTTPS, "https://github.com/acme/%2e%2e/lib"),
        (HTTPS, "https://github.com/lib"),
        (HTTPS, "https://github.com/acme/lib?service=x"),
        (HTTPS, "https://github.com/acme/l b"),
        (HTTPS, "https://[bad/acme/lib"),
        (HTTPS, "git://github.com/acme/lib"),
        (HTTPS, "ext::sh -c true"),
        (HTTPS, "-upload-pack=x:a/b"),
        (HTTPS, "file:///srv/a/lib"),
        (HTTPS, "/srv/a/lib"),
        (HTTPS, "C:/x/y"),
        (HTTPS, ""),
        (SSH, "git@evil.example:acme/lib"),
        (SSH, "git@github.com:lib"),
        (LOCAL, "/srv/b/lib"),
        (LOCAL, "/srv/a"),
        (LOCAL, "/srv/a/../b"),
        (LOCAL, "https://github.com/acme/lib"),
        ("git://github.com/acme/tools", "git://github.com/acme/lib"),
    ],
)
def test_only_the_same_host_is_allowed(repository: str, url: str) -> None:
    assert isinstance(allowed_address(repository, url), Refusal)


@pytest.mark.parametrize(
    ("name", "asked"),
    [("acme/tools", ["acme/tools"]), ("Acme/Lib", ["Acme/Lib"]), ("acme/secret", [])],
)
def test_a_credential_goes_only_to_repositories_that_the_operator_named(
    name: str, asked: list[str], tmp_path: Path
) -> None:
    """Nothing listens there, so that the fetch fails at once."""
    tokens = list[str]()

    def token(repository: str) -> str:
        tokens.append(repository)
        raise MisconfiguredError("enough")

    home = "http://127.0.0.1:9/acme/tools"
    source = _source(tmp_path, home, token, f"http://127.0.0.1:9/{name}.git")
    with pytest.raises(Exception, match="enough" if asked else "Connection refused|connect"):
        source.fetch(git(tmp_path / "mirror.git", "rev-parse", "main"), is_recursive=False)
    assert tokens == asked


def test_over_ssh_only_what_the_operator_named_is_fetched(tmp_path: Path) -> None:
    source = _source(tmp_path, SSH, nothing, "../secret")
    with pytest.raises(MisconfiguredError, match=r"must add acme/secret to `submodules`"):
        source.fetch(git(tmp_path / "mirror.git", "rev-parse", "main"), is_recursive=False)


def nothing(_: str) -> None:
    """Have no token."""


def _source(
    tmp_path: Path, home: str, token: Callable[[str], str | None], url: str
) -> SubmoduleSource:
    mirror = library(tmp_path, "mirror.git", {"README.md": "x\n"})
    put(mirror, {".gitmodules": (FILE, gitmodules(lib=url)), "lib": (GITLINK, "1" * 40)})
    outer = {"PATH": os.environ["PATH"]}
    return SubmoduleSource(
        Mirror("acme/tools", RepositoryPaths(tmp_path), outer), home, token, ("acme/lib",)
    )
