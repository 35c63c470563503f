"""An SSH key that signs commits, and a server that takes signed commits only."""

import subprocess
from pathlib import Path

from world.repositories import git, run_git

PRE_RECEIVE = """\
fail() { echo "remote: GH013: $1" >&2; exit 1; }
while read old new ref; do
  case $ref in refs/heads/*) ;; *) continue;; esac
  case $new in *[!0]*) ;; *) continue;; esac
  for commit in $(git rev-list $new --not --all); do
    git -c gpg.ssh.allowedSignersFile=ALLOWED verify-commit $commit || fail "unsigned $commit"
  done
  case $old in *[!0]*) git merge-base --is-ancestor $old $new || fail "forced $ref";; esac
done
"""


def make_key(file: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair as people do; give the file of the private key."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(file)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return file


def public_key(file: Path) -> str:
    """Give the public half of a key, without its comment."""
    return " ".join(file.with_name(f"{file.name}.pub").read_text().split()[:2])


def allowed_signers(key: Path) -> Path:
    """Write the file of signers that git trusts, with this key alone."""
    allowed = key.with_name(f"{key.name}.allowed")
    allowed.write_text(f"* {public_key(key)}\n")
    return allowed


def refuse_unsigned(remote: Path, key: Path) -> None:
    """Make a server refuse unsigned commits and forced pushes, as GitHub's rules do."""
    script = PRE_RECEIVE.replace("ALLOWED", str(allowed_signers(key)))
    (remote / "hooks").mkdir(exist_ok=True)
    (remote / "hooks" / "pre-receive").write_text(f"#!/bin/sh\n{script}")
    (remote / "hooks" / "pre-receive").chmod(0o755)


def is_signed(remote: Path, sha: str, key: Path) -> bool:
    """Say whether git verifies a commit's signature by this key."""
    setting = f"gpg.ssh.allowedSignersFile={allowed_signers(key)}"
    return run_git(remote, "-c", setting, "verify-commit", sha).returncode == 0


def unsigned_below(remote: Path, branch: str, base: str, key: Path) -> list[str]:
    """List the commits of a branch, without those of the base, that the key did not sign."""
    commits = git(remote, "rev-list", branch, f"^{base}").split()
    assert commits
    return [sha for sha in commits if not is_signed(remote, sha, key)]
