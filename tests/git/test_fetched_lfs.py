"""Git LFS files have their content in attempts, and are pointers in commits (WORKTREE-5)."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mulligan.config.operator import RepositorySettings
from mulligan.config.policy import CheckoutSettings, CommitSettings
from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.lfs import LfsObject
from mulligan.git.worktrees import fetch_lfs
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import (
    FILES,
    REF,
    REPOSITORY,
    TEXT,
    FixedToken,
    calc_remote,
    never_asked,
    run_in_worktree,
    set_up_in_worktree,
    worktrees_of,
)
from world.lfs import oid_of, place, pointer, store
from world.repositories import commit_to, git

SETTINGS = CommitSettings()
ON = CheckoutSettings(lfs=True)
LOGO, SOUND = b"\x89PNG\r\n\0" + b"logo" * 2000, b"RIFF" * 50_000
ATTRIBUTES = "*.png filter=lfs diff=lfs merge=lfs -text\n*.wav filter=lfs -text\n"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    made = calc_remote(tmp_path / "remote.git")
    files = {".gitattributes": ATTRIBUTES, "logo.png": store(made, LOGO)}
    commit_to(made, {**files, "a/b/sound.wav": store(made, SOUND), "raw.txt": pointer(LOGO)})
    return made


@pytest.fixture
def worktrees(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


def test_files_have_their_content_and_nothing_has_changed(
    worktrees: GitWorktrees, remote: Path
) -> None:
    with worktrees.open(REF) as opened:
        assert (opened.path / "logo.png").read_text() == pointer(LOGO)
        tree = opened.with_checkout(ON)
        assert (tree.path / "logo.png").read_bytes() == LOGO
        assert (tree.path / "a/b/sound.wav").read_bytes() == SOUND
        # Its attributes have no filter.
        assert (tree.path / "raw.txt").read_text() == pointer(LOGO)
        git_says = "export GIT_CONFIG_NOSYSTEM=1; git status --short; git add -A; git diff --cached"
        assert run_in_worktree(tree, git_says) == ""
        assert tree.changed_files(tree.start_sha) == ()
        change = tree.capture(TEXT, SETTINGS)
        assert (change.commits, change.head_sha) == (0, None)
        tree.check_out(tree.start_sha)
        assert (tree.path / "logo.png").read_bytes() == LOGO
        with tree.beside() as other:
            other.check_out(other.start_sha)
            assert (other.path / "logo.png").read_bytes() == LOGO
    # Nothing is fetched again.
    shutil.rmtree(remote / "lfs")
    with worktrees.open(REF) as opened:
        assert (opened.with_checkout(ON).path / "logo.png").read_bytes() == LOGO


@pytest.mark.parametrize(
    ("work", "changed", "raw"),
    [
        (":", [], []),
        ("touch logo.png a/b/sound.wav", [], []),
        ("printf 'x' >> logo.png", ["logo.png"], ["logo.png"]),
        ("printf 'X' | dd of=logo.png conv=notrunc status=none", ["logo.png"], ["logo.png"]),
        ("git mv logo.png new.png", ["new.png"], []),
        ("mv logo.png new.png", ["new.png"], []),
        ("cp logo.png copy.png", ["copy.png"], []),
        ("cp logo.png copy.bin", ["copy.bin"], []),
        ("rm logo.png", ["logo.png"], []),
        ("chmod +x logo.png", ["logo.png"], []),
        ("git checkout -q -- .", [], []),
        ("ln logo.png hard.png", ["hard.png"], []),
        ("rm logo.png; ln -s a/b/sound.wav logo.png", ["logo.png"], []),
        ("git rm -q --cached logo.png; git add -f logo.png; git commit -qm x", [], []),
        ("sed -i s/filter=lfs// .gitattributes; touch logo.png", [".gitattributes"], []),
    ],
)
def test_what_an_agent_does_with_them(
    work: str, changed: list[str], raw: list[str], worktrees: GitWorktrees
) -> None:
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, f"export GIT_CONFIG_NOSYSTEM=1; {work}; echo fixed > README.md")
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        assert {file.path for file in change.files} == {"README.md", *changed}
        assert sorted(change.raw_lfs_files) == sorted(raw)
        tree.check_out(change.head_sha)
        for path in ("logo.png", "new.png", "copy.png", "copy.bin", "hard.png"):
            found = tree.path / path
            if found.is_file() and path not in raw and not found.is_symlink():
                assert found.read_bytes() == LOGO
        assert tree.changed_files(change.head_sha) == ()
        (tree.path / "a/b/sound.wav").write_bytes(b"x")
        assert tree.changed_files(change.head_sha) == ("a/b/sound.wav",)


def test_a_link_in_the_way_is_not_followed(worktrees: GitWorktrees, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "sound.wav").write_bytes(SOUND)
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, f"rm -r a/b; ln -s {outside} a/b; ln {outside}/sound.wav hard.wav")
        change = tree.capture(TEXT, SETTINGS)
        assert change.raw_lfs_files == ()
    assert (outside / "sound.wav").read_bytes() == SOUND


def test_a_pointer_that_an_agent_writes_fetches_nothing(
    worktrees: GitWorktrees, remote: Path
) -> None:
    secret = b"of another repository"
    text = store(remote, secret).replace("\n", "\\n")
    line = f"printf '{text}' > new.png; printf '{text}' > logo.png"
    config = "printf '[lfs]\\n\\turl = https://evil.example/a/b' > .lfsconfig"
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, line, config)
        change = tree.capture(TEXT, SETTINGS)
        assert change.head_sha
        tree.check_out(change.head_sha)
        for name in ("new.png", "logo.png"):
            assert (tree.path / name).read_text() == pointer(secret)
        again = replace(tree, start_sha=tree.start_sha).with_checkout(ON)
        assert (again.path / "new.png").read_text() == pointer(secret)


def test_another_process_has_no_way_to_the_store(worktrees: GitWorktrees) -> None:
    with worktrees.open(REF) as opened:
        tree = opened.with_checkout(ON)
        run_in_worktree(tree, "echo x >> logo.png")
        tree.check_out(tree.start_sha)
        assert (tree.path / "logo.png").read_bytes() == LOGO


@pytest.mark.parametrize("kind", ["copied", "layered"])
def test_setup_commands_have_them_and_leave_none(kind: str, worktrees: GitWorktrees) -> None:
    with replace(worktrees, is_layered=kind == "layered").open(REF) as opened:
        tree = opened.with_checkout(ON)
        ready = set_up_in_worktree(tree, "mkdir build; cp logo.png build/logo.png; > x.log")
        assert ready.set_up_files
        left = ready.set_up_files / "tree"
        assert (left / "build/logo.png").read_bytes() == LOGO
        assert not (left / "logo.png").exists()
        assert (ready.path / "logo.png").read_bytes() == LOGO
        assert ready.capture(TEXT, SETTINGS).commits == 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("missing", "is not in"),
        ("other", "is not what the pointer names"),
        ("longer", "is not what the pointer names"),
        ("link", "is not in"),
    ],
)
def test_an_object_that_is_not_right_is_an_outage(
    damage: str, words: str, worktrees: GitWorktrees, remote: Path
) -> None:
    file = place(remote, oid_of(LOGO))
    if damage == "other":
        file.write_bytes(LOGO[::-1])
    elif damage == "longer":
        file.write_bytes(LOGO * 2)
    else:
        file.unlink()
    if damage == "link":
        file.symlink_to("/etc/passwd")
    with worktrees.open(REF) as opened, pytest.raises(UnavailableError, match=words):
        opened.with_checkout(ON)
    store(remote, LOGO)
    file.unlink(missing_ok=True)
    store(remote, LOGO)
    with worktrees.open(REF) as opened:
        assert (opened.with_checkout(ON).path / "logo.png").read_bytes() == LOGO


@pytest.mark.parametrize(("limit", "value"), [("MAX_OBJECTS", 1), ("MAX_BYTES", 200_000)])
def test_limits_of_objects(
    limit: str, value: int, worktrees: GitWorktrees, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_lfs, limit, value)
    with worktrees.open(REF) as opened, pytest.raises(MisconfiguredError, match="fetches at most"):
        opened.with_checkout(ON)


def test_objects_that_nobody_uses_are_removed(
    worktrees: GitWorktrees, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worktrees.open(REF) as opened:
        opened.with_checkout(ON)
    commit_to(remote, {"a/b/sound.wav": None})
    monkeypatch.setattr(fetch_lfs, "KEPT_SECONDS", -10)
    with worktrees.open(REF) as opened:
        opened.with_checkout(ON)
    stored = tmp_path / "work" / REPOSITORY / "lfs"
    assert [each.name for each in stored.glob("??/*")] == [oid_of(LOGO)]


# The address of the server.


@dataclass
class Recorder:
    """The port LfsServer; it has every object of the remote repository."""

    remote: Path
    asked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])

    def download(
        self,
        endpoint: str,
        token: str | None,
        wanted: Sequence[LfsObject],
        directory: Path,
        until: float,
    ) -> Iterator[tuple[LfsObject, Path]]:
        del until
        self.asked.append((endpoint, token))
        for each in wanted:
            file = directory / each.oid
            shutil.copyfile(place(self.remote, each.oid), file)
            yield each, file


OWN = "https://github.com/octo/calc"


@pytest.mark.parametrize(
    ("clone_url", "configured", "asked"),
    [
        (OWN, None, (f"{OWN}.git/info/lfs", "secret")),
        (f"{OWN}.git", None, (f"{OWN}.git/info/lfs", "secret")),
        ("git@github.com:octo/calc.git", None, (f"{OWN}.git/info/lfs", "secret")),
        ("ssh://git@github.com:22/octo/calc", None, (f"{OWN}.git/info/lfs", "secret")),
        (OWN, f"{OWN}.git/info/lfs", (f"{OWN}.git/info/lfs", "secret")),
        # Nobody here may know whether Mulligan's token reads that one.
        (OWN, "https://github.com/a/b.git/info/lfs", ("https://github.com/a/b.git/info/lfs", None)),
    ],
)
def test_the_server_is_the_repositorys_own(
    clone_url: str,
    configured: str | None,
    asked: tuple[str, str | None],
    remote: Path,
    tmp_path: Path,
) -> None:
    assert _asked(clone_url, configured, remote, tmp_path) == [asked]


@pytest.mark.parametrize(
    "configured",
    [
        "https://evil.example/octo/calc",
        "http://github.com/octo/calc",
        "https://github.com:8443/octo/calc",
        "https://github.com@evil.example/octo/calc",
        "file:///etc",
        "/etc",
        "ssh://git@github.com/octo/calc",
        "https://github.com/octo/../../calc",
    ],
)
def test_an_lfsconfig_of_another_place_is_refused(
    configured: str, remote: Path, tmp_path: Path
) -> None:
    with pytest.raises(MisconfiguredError, match=r"lfs\.url in \.lfsconfig is|no plain path"):
        _asked(OWN, configured, remote, tmp_path)


def _asked(
    clone_url: str, configured: str | None, remote: Path, tmp_path: Path
) -> list[tuple[str, str | None]]:
    if configured:
        commit_to(remote, {".lfsconfig": f"[lfs]\n\turl = {configured}\n"})
    recorder = Recorder(remote)
    settings = RepositorySettings(name=REPOSITORY, clone_url=str(remote), base_branch="main")
    trees = GitWorktrees(
        root=tmp_path / "work",
        repositories={REPOSITORY: settings},
        credentials=FixedToken("secret"),
        facts=never_asked,
        environment={"PATH": os.environ["PATH"]},
        lfs_server=recorder,
    )
    with trees.open(REF) as opened:
        source = replace(opened.source, lfs=replace(opened.source.lfs, url=clone_url))
        tree = replace(opened, source=source).with_checkout(ON)
        assert (tree.path / "logo.png").read_bytes() == LOGO
    return recorder.asked


# Real git-lfs.

HAS_GIT_LFS = shutil.which("git-lfs") is not None


@pytest.mark.skipif(not HAS_GIT_LFS, reason="needs the program git-lfs")
def test_a_repository_that_git_lfs_made(tmp_path: Path) -> None:
    remote, clone = calc_remote(tmp_path / "remote.git"), tmp_path / "clone"

    def run(*words: str) -> None:
        home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(words, cwd=clone, env=home, check=True, capture_output=True, timeout=60)

    git(tmp_path, "clone", "-q", str(remote), str(clone))
    run("git", "lfs", "install", "--local")
    run("git", "lfs", "track", "*.png")
    (clone / "logo.png").write_bytes(LOGO)
    run("git", "add", "-A")
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "logo")
    # The clone itself, as in a rehearsal, and the bare repository to which it is pushed.
    for place_of in (clone, remote):
        if place_of is remote:
            run("git", "push", "-q", "origin", "main")
        with worktrees_of(tmp_path / place_of.name[:5], place_of).open(REF) as opened:
            assert (opened.path / "logo.png").read_text() == pointer(LOGO)
            tree = opened.with_checkout(ON)
            assert (tree.path / "logo.png").read_bytes() == LOGO
            assert set(FILES) <= {str(each) for each in _files(tree.path)}
            assert tree.capture(TEXT, SETTINGS).commits == 0


def _files(tree: Path) -> Iterator[Path]:
    return (each.relative_to(tree) for each in tree.rglob("*"))
