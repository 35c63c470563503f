"""Judge the SSH key that signs Mulligan's commits (COMMIT-3). Pure."""

from dataclasses import dataclass
from pathlib import Path

SIGNED_COMMITS = "docs/github.md#signed-commits"

FIRST_GIT_THAT_SIGNS = (2, 34)
"""The first version of git that signs with SSH keys."""

REPEATABLE = ("ssh-ed25519", "ssh-rsa")
"""The types of keys with which the same commit has the same signature each time.

A merge that is repeated after a crash must yield the same commit.
"""

OTHERS_MAY = 0o077


@dataclass(frozen=True, slots=True)
class SigningKeyStatus:
    """The facts about the configured key.

    `mode` has the permission bits of the file; None if it does not exist. `public_key` is "TYPE
    BASE64", read without a passphrase; else `failure` has the last line of ssh-keygen.
    `has_program` is whether ssh-keygen exists.
    """

    file: Path
    git_version: tuple[int, int]
    mode: int | None
    has_program: bool = True
    public_key: str = ""
    failure: str = ""


def signing_problem(status: SigningKeyStatus) -> tuple[str, str] | None:
    """Return why the key cannot sign, and the fix; None if it can."""
    file = status.file
    if status.mode is None:
        return (
            f"The signing key {file} does not exist, or cannot be read.",
            f"Create it: `ssh-keygen -t ed25519 -N '' -f {file}`. {SIGNED_COMMITS} has the steps.",
        )
    if status.git_version < FIRST_GIT_THAT_SIGNS:
        found, first = (
            ".".join(map(str, each)) for each in (status.git_version, FIRST_GIT_THAT_SIGNS)
        )
        return f"Git {found} cannot sign with an SSH key.", f"Install git {first} or newer."
    if not status.has_program:
        return "The program ssh-keygen, which signs commits, is missing.", "Install OpenSSH."
    if status.mode & OTHERS_MAY:
        return (
            f"Other users have access to the signing key {file}, so ssh-keygen refuses it.",
            f"Run `chmod 600 {file}` as the user that runs Mulligan.",
        )
    if "passphrase" in status.failure:
        return (
            f"The signing key {file} has a passphrase, which Mulligan cannot enter.",
            f"Remove it (`ssh-keygen -p -N '' -f {file}`), or create a key for Mulligan alone.",
        )
    kind = status.public_key.partition(" ")[0]
    if kind in REPEATABLE:
        return None
    if kind:
        return (
            f"The signing key {file} has the type {kind}. Mulligan signs with Ed25519 or RSA keys.",
            "Create another one: `ssh-keygen -t ed25519`.",
        )
    return (
        f"The signing key {file} is not a private SSH key: {status.failure or 'it is empty'}.",
        f"Name a private key in github.signing_key_file. {SIGNED_COMMITS} has the steps.",
    )
