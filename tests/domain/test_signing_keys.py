"""A signing key that cannot sign is named with its fix, before a commit needs it (COMMIT-3)."""

from dataclasses import replace
from pathlib import Path

import pytest

from mulligan.domain.signing import FIRST_GIT_THAT_SIGNS, SigningKeyStatus, signing_problem

pytestmark = pytest.mark.pure

GOOD = SigningKeyStatus(
    Path("/srv/key"), FIRST_GIT_THAT_SIGNS, 0o600, public_key="ssh-ed25519 AAAA"
)


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ssh-rsa"])
def test_a_key_whose_signatures_repeat_is_good(kind: str) -> None:
    assert signing_problem(replace(GOOD, mode=0o400, public_key=f"{kind} AAAA")) is None


@pytest.mark.parametrize(
    ("status", "message", "fix"),
    [
        (replace(GOOD, mode=None), "The signing key /srv/key does not exist", "Create it: `ssh-"),
        (
            replace(GOOD, git_version=(2, 33)),
            "Git 2.33 cannot sign with an SSH key.",
            "Install git 2.34 or newer.",
        ),
        (replace(GOOD, has_program=False), "The program ssh-keygen", "Install OpenSSH."),
        (
            replace(GOOD, mode=0o640),
            "Other users have access to the signing key /srv/key",
            "Run `chmod 600 /srv/key`",
        ),
        (replace(GOOD, mode=0o604), "Other users have access", "Run `chmod 600 /srv/key`"),
        (
            replace(GOOD, public_key="", failure="incorrect passphrase supplied"),
            "The signing key /srv/key has a passphrase",
            "Remove it (`ssh-keygen -p -N '' -f /srv/key`)",
        ),
        (
            replace(GOOD, public_key="ecdsa-sha2-nistp256 AAAA"),
            "The signing key /srv/key has the type ecdsa-sha2-nistp256.",
            "Create another one: `ssh-keygen -t ed25519`.",
        ),
        (
            replace(GOOD, public_key="", failure="invalid format"),
            "The signing key /srv/key is not a private SSH key: invalid format.",
            "Name a private key",
        ),
        (
            replace(GOOD, public_key=""),
            "The signing key /srv/key is not a private SSH key: it is empty.",
            "Name a private key",
        ),
    ],
)
def test_each_fault_of_a_key_has_its_fix(status: SigningKeyStatus, message: str, fix: str) -> None:
    told = signing_problem(status)
    assert told
    assert told[0].startswith(message)
    assert told[1].startswith(fix)
