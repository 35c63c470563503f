"""Each commit that Mulligan pushes to a branch is signed, if the operator has a key (COMMIT-3)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.errors import DeniedError, MisconfiguredError, WorldError
from mulligan.domain.signing import FIRST_GIT_THAT_SIGNS, SigningKeyStatus, signing_problem
from mulligan.git.commits import SigningKey, commit_tree, read_signing_key
from mulligan.git.remote_ref import open_remote_ref
from mulligan.git.repository import Remote, Repository
from mulligan.git.worktrees.worktrees import GitWorktrees
from world.checkouts import REF, TEXT, calc_remote, run_in_worktree, worktrees_of
from world.repositories import branch_head, commit_to
from world.signing import is_signed, make_key, public_key, refuse_unsigned, unsigned_below

SETTINGS = CommitSettings()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "key")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_remote(tmp_path / "remote.git")


@pytest.fixture
def plain(tmp_path: Path, remote: Path) -> GitWorktrees:
    return worktrees_of(tmp_path / "work", remote)


@pytest.fixture
def signed(plain: GitWorktrees, key: Path) -> GitWorktrees:
    return replace(plain, signing_key=SigningKey(key))


def change(worktrees: GitWorktrees, line: str = "echo changed > README.md") -> str:
    with worktrees.open(REF) as tree:
        run_in_worktree(tree, line)
        return str(tree.capture(TEXT, SETTINGS).head_sha)


def test_a_server_that_wants_signatures_takes_the_change_and_its_update(
    signed: GitWorktrees, remote: Path, key: Path
) -> None:
    refuse_unsigned(remote, key)
    head = change(signed)
    signed.push(REF, head, None)
    # Somebody else moves the base branch; its commits are not Mulligan's to sign.
    base = commit_to(remote, {"other.py": "x = 1\n"})
    signed.fetch_base(REF.repository)
    merged = signed.merge(REF, base, head, SETTINGS)
    assert merged == signed.merge(REF, base, head, SETTINGS), "a repeated merge is the same commit"
    signed.push(REF, str(merged), head)
    assert branch_head(remote, REF.branch) == merged
    assert unsigned_below(remote, REF.branch, "main", key) == []
    assert not is_signed(remote, base, key)


def test_without_a_key_that_server_refuses_the_change(
    plain: GitWorktrees, remote: Path, key: Path
) -> None:
    refuse_unsigned(remote, key)
    with pytest.raises(DeniedError, match="GH013: unsigned"):
        plain.push(REF, change(plain), None)


def test_the_work_of_an_attempt_that_is_pushed_is_signed(
    signed: GitWorktrees, remote: Path, key: Path
) -> None:
    head = change(signed)
    signed.push_attempt(REF, head, 1)
    assert is_signed(remote, head, key)


def test_the_branch_that_proposes_a_policy_is_signed(remote: Path, key: Path) -> None:
    refuse_unsigned(remote, key)
    environment, ref = {"PATH": os.environ["PATH"]}, "refs/heads/set-up"
    with open_remote_ref(
        ref, "Add a policy", environment, lambda: Remote(str(remote)), SigningKey(key)
    ) as branch:
        sha = branch.add_to("main", {".github/mulligan.yml": b"checks: []\n"})
    assert branch_head(remote, "set-up") == sha
    assert unsigned_below(remote, "set-up", "main", key) == []


@pytest.mark.parametrize("broken", ["missing", "passphrase", "open"])
def test_a_key_that_cannot_sign_is_the_operators_fault_and_its_path_stays_private(
    plain: GitWorktrees, key: Path, broken: str
) -> None:
    if broken == "missing":
        key.unlink()
        key.with_name("key.pub").unlink()
    elif broken == "passphrase":
        key = make_key(key.with_name("other"), passphrase="secret words")
    else:
        key.chmod(0o644)
    with pytest.raises(MisconfiguredError, match=r"github\.signing_key_file") as refused:
        change(replace(plain, signing_key=SigningKey(key)))
    assert str(key) not in str(refused.value)


def test_another_failure_is_not_blamed_on_the_key(remote: Path, key: Path) -> None:
    git = Repository("octo/calc", remote, os.environ)
    with pytest.raises(WorldError, match=r"commit-tree for octo/calc failed: f+ is not a valid"):
        commit_tree(git, "f" * 40, [], "x", {}, SigningKey(key))


def read(key: Path, **environment: str) -> SigningKeyStatus:
    return read_signing_key(key, {"PATH": os.environ["PATH"], **environment})


def test_a_good_key_is_read_with_its_public_half(key: Path) -> None:
    found = read(key)
    assert found.public_key == public_key(key)
    assert signing_problem(found) is None


def test_each_fault_of_a_key_is_named_with_its_fix(tmp_path: Path, key: Path) -> None:
    locked = make_key(tmp_path / "locked", passphrase="secret words")
    wide = make_key(tmp_path / "wide")
    wide.chmod(0o640)
    curve = make_key(tmp_path / "curve", "ecdsa")
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "text").chmod(0o600)
    (tmp_path / "empty").mkdir()
    found = [
        read(tmp_path / "gone"),
        read(locked),
        read(wide),
        read(curve),
        read(tmp_path / "text"),
        read(key, PATH=f"{tmp_path}/empty:{_git_only(tmp_path)}"),
    ]
    problems = [signing_problem(each) or ("", "") for each in found]
    for (message, fix), words in zip(
        problems,
        [
            ("does not exist", "ssh-keygen -t ed25519"),
            ("has a passphrase", "ssh-keygen -p"),
            ("Other users have access", "chmod 600"),
            ("has the type ecdsa-sha2-nistp256", "ed25519"),
            ("is not a private SSH key", "Name a private key"),
            ("ssh-keygen, which signs commits, is missing", "Install OpenSSH"),
        ],
        strict=True,
    ):
        assert words[0] in message
        assert words[1] in fix
        assert message.endswith(".")
        assert fix.endswith(".")


def _git_only(tmp_path: Path) -> Path:
    place = tmp_path / "bin"
    place.mkdir()
    found = next(Path(each, "git") for each in os.environ["PATH"].split(":") if each)
    real = found if found.exists() else Path("/usr/bin/git")
    (place / "git").symlink_to(real)
    return place


def test_an_old_git_and_an_empty_answer_are_named(tmp_path: Path) -> None:
    new = SigningKeyStatus(tmp_path / "key", FIRST_GIT_THAT_SIGNS, 0o600)
    message, _ = signing_problem(new) or ("", "")
    assert "is not a private SSH key: it is empty" in message
    message, fix = signing_problem(replace(new, git_version=(2, 33))) or ("", "")
    assert message == "Git 2.33 cannot sign with an SSH key."
    assert fix == "Install git 2.34 or newer."
