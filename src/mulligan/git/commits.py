"""Make commits of Mulligan's own, signed if the operator configures a key (COMMIT-3)."""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.signing import SigningKeyStatus
from mulligan.git.faults import fault_of, one_line
from mulligan.git.repository import PATH, Repository, version
from mulligan.sandbox.process import Command, run


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The private SSH key that signs each commit; git runs `ssh-keygen -Y sign` with it."""

    file: Path

    @property
    def variables(self) -> Mapping[str, str]:
        """Git's variables that set the key, and that keep ssh-keygen from asking for a passphrase.

        The settings stand in the environment (git-config(1), GIT_CONFIG_COUNT), so that errors
        name the command and not the path of the key.
        """
        settings = {"gpg.format": "ssh", "user.signingKey": str(self.file)}
        pairs = enumerate(settings.items())
        variables = {"GIT_CONFIG_COUNT": str(len(settings)), **NO_QUESTIONS}
        for number, (key, value) in pairs:
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return variables


NO_QUESTIONS = {"SSH_ASKPASS": "/bin/false", "SSH_ASKPASS_REQUIRE": "force"}
"""Variables with which the programs of OpenSSH fail instead of asking on a terminal."""


def commit_tree(
    git: Repository,
    tree: str,
    parents: Sequence[str],
    message: str,
    identity: Mapping[str, str],
    key: SigningKey | None = None,
) -> str:
    """Commit a tree with author and committer of `identity`; return the commit.

    MisconfiguredError if the key cannot sign.
    """
    signing: Mapping[str, str] = key.variables if key else {}
    work = replace(git, extra={**git.extra, **identity, **signing})
    onto = (part for parent in parents for part in ("-p", parent))
    options = ("-S",) if key else ()
    made = work.query("commit-tree", *options, tree, *onto, "-m", message)
    if made.exit_code and key and any(each in made.stderr for each in (str(key.file), KEYGEN)):
        # The message has the path of the file, which is nobody else's business.
        raise MisconfiguredError(CANNOT_SIGN)
    if made.exit_code:
        raise fault_of(made.stderr, f"git commit-tree for {git.name}")
    return made.text


CANNOT_SIGN = (
    "git cannot sign a commit with the key of github.signing_key_file; `mulligan doctor` has the "
    "reason."
)


KEYGEN = "ssh-keygen"

KEYGEN_TIMEOUT = timedelta(seconds=30)


def read_signing_key(file: Path, environment: Mapping[str, str]) -> SigningKeyStatus:
    """Read the facts about a private key; its passphrase is never asked for."""
    found, path = version(environment), environment.get("PATH", PATH)
    mode = file.stat().st_mode & 0o777 if os.access(file, os.R_OK) and file.is_file() else None
    if mode is None or not shutil.which(KEYGEN, path=path):
        return SigningKeyStatus(file, found, mode, has_program=mode is None)
    ended = run(
        Command(
            argv=(KEYGEN, "-y", "-P", "", "-f", str(file.absolute())),
            directory=Path("/"),
            environment={"PATH": path, "LC_ALL": "C.UTF-8", **NO_QUESTIONS},
            timeout=KEYGEN_TIMEOUT,
        )
    )
    if ended.exit_code:
        words = one_line(ended.last_line).rpartition(": ")[2]
        return SigningKeyStatus(file, found, mode, failure=words)
    return SigningKeyStatus(file, found, mode, public_key=" ".join(ended.text.split()[:2]))
