"""Turn git's error messages into errors: who must act, and whether our copy is damaged. Pure."""

import re
from dataclasses import dataclass

from mulligan.domain.errors import (
    CertificateError,
    DeniedError,
    ForbiddenError,
    MisconfiguredError,
    UnavailableError,
    WorldError,
)
from mulligan.text.certificates import GITHUB_TRUST, certificate_fault_in

MAX_MESSAGE_CHARS = 300
"""Length to which an error cuts git's own message."""
TELLING = re.compile(r"(?:(?:remote|fatal|error|env|ssh): *)+|! .*(?=\[)")
"""Beginning of a line with the reason; the reason follows."""
NOISE = re.compile(r"failed to push some refs|Done$")


class TookTooLongError(UnavailableError):
    """A local git command reached its time limit."""


class DamagedError(UnavailableError):
    """A repository of Mulligan's own is damaged on this disk; it must be recreated."""


@dataclass(frozen=True, slots=True)
class FaultPattern:
    """A pattern of an error message from git 2.x or a server, and the advice for it."""

    fault: type[WorldError]
    words: str
    advice: str

    def shows_in(self, output: str) -> bool:
        """Return whether the message matches; a remote's damage does not count as our own."""
        if self.fault is DamagedError:
            output = "\n".join(
                line for line in output.splitlines() if not line.startswith("remote:")
            )
        return bool(re.search(self.words, output, re.IGNORECASE | re.MULTILINE))


FULL_DISK = FaultPattern(
    UnavailableError, r"no space left on device|disk quota exceeded", "free some space on that disk"
)
FAULT_PATTERNS = (
    FaultPattern(
        MisconfiguredError,
        r"is not a git command|unable to find remote helper",
        "install the complete git package",
    ),
    FULL_DISK,
    FaultPattern(
        MisconfiguredError,
        r"empty ident name|consists only of disallowed characters",
        "set commit.name and commit.email in the policy",
    ),
    FaultPattern(
        ForbiddenError,
        r"returned error: 403|permission to \S+ denied|write access to \S+ not granted",
        "check the credential and its permissions",
    ),
    FaultPattern(
        DeniedError,
        r"authentication failed|could not read (?:username|password)|permission denied \(|"
        r"invalid username or|host key verification failed|returned error: 401|access denied",
        "check the credential and its permissions",
    ),
    FaultPattern(
        # GitHub answers so in an outage, too: no proof that the repository is gone.
        UnavailableError,
        r"repository (?:'[^']*' )?not found|returned error: 404",
        "check the repository's name, and that the credential can read it; it is tried again later",
    ),
    FaultPattern(
        DeniedError,
        r"detected dubious ownership",
        "run Mulligan as the owner of that directory, or give an ssh:// URL as clone_url",
    ),
    FaultPattern(
        DeniedError,
        r"remote: .*'[^']*' exists; cannot create|\(directory file conflict\)",
        "delete or rename the branch that is in the way",
    ),
    FaultPattern(
        # GitHub's and other servers' outages, of which some come as a rejection.
        UnavailableError,
        r"\[remote rejected\].*\((?:failed to (?:update ref|lock)|cannot lock ref|unpacker error|"
        r"unpack failed|[^)]*internal server error)|"
        r"^remote: (?:fatal: |error: )*internal server error|"
        r"error in commit_refs|hook (?:execution )?timed out|unable to determine if ",
        "it is tried again later",
    ),
    FaultPattern(
        DeniedError,
        r"\bGH001\b|exceeds GitHub's file size limit",
        "leave files over 100 MB out of the change, or store them with Git LFS",
    ),
    FaultPattern(
        DeniedError,
        r"push cannot contain secrets|push protection",
        "remove the secret from the change, or allow it in GitHub's secret scanning",
    ),
    FaultPattern(
        DeniedError,
        r"refusing to allow an? .* to create or update workflow",
        "give the token the permission 'Workflows: write' (a classic token: the scope 'workflow'), "
        "or ask for a change without workflows",
    ),
    FaultPattern(
        DeniedError,
        r"\[(?:remote )?rejected\]|hook declined",
        "change that rule or allow Mulligan's branch",
    ),
    FaultPattern(
        DamagedError,
        r"not a git repository|bad (?:object|signature|config|ref|tree object|index file)|"
        r"object file .* is empty|is corrupt|corrupt index|index file corrupt|data stream error|"
        r"unable to (?:read|unpack|parse|resolve reference)|failed to read object|"
        r"missing (?:blob|tree|commit|object)|pack(?:file)? .* (?:cannot be accessed|not match)|"
        r"invalid (?:object|sha1 pointer)|could not parse|not a valid object|reference broken|"
        r"cannot lock ref|unable to update local ref|unable to create '.*\.lock'|"
        r"did not send all necessary objects|unresolved deltas",
        "Mulligan creates its copy again",
    ),
    FaultPattern(
        UnavailableError,
        r"does not appear to be a git repository",
        "make it reachable, or fix clone_url",
    ),
)
ANYTHING_ELSE = FaultPattern(UnavailableError, "", "it is tried again later")


MAY_PASS = re.compile(
    r"returned error: (?:403|404|408|429|5\d\d)|could not resolve host|failed to connect|"
    r"repository (?:'[^']*' )?not found|"
    r"connection (?:reset|refused|timed out|was reset)|early eof|rpc failed|"
    r"remote end hung up|unexpected disconnect|internal server error|gnutls_handshake|ssl_read",
    re.IGNORECASE,
)
"""What servers and networks say in an outage of seconds; GitHub answers 403 then, too."""


ADDRESS = re.compile(r"unable to access '[a-z]+://(?:[^/@'\s]*@)?([^/'\s]+)")
"""The host in a message of git."""


def may_pass(output: str) -> bool:
    """Return whether a message of git may be of an outage, so that a second try may succeed."""
    return bool(MAY_PASS.search(output))


def fault_of(output: str, doing: str) -> WorldError:
    """Return the error for a message of git: its class names who must act."""
    if refused := certificate_fault_in(output):
        named = ADDRESS.search(output)
        server = named[1] if named else "the server"
        # Git's own message names files of this machine.
        why = f"the certificate of {server} {refused.explain(GITHUB_TRUST)}"
        return CertificateError(f"{doing} failed: {why}.")
    sign = next((sign for sign in FAULT_PATTERNS if sign.shows_in(output)), ANYTHING_ELSE)
    return sign.fault(f"{doing} failed: {one_line(output)}; {sign.advice}.")


def one_line(output: str) -> str:
    """Shorten a message of git to one line without control characters or credentials."""
    lines = [re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", line).strip() for line in output.splitlines()]
    telling = [TELLING.sub("", line) for line in lines if TELLING.match(line)]
    lines_kept = [line for line in telling or lines if line and not NOISE.match(line)]
    words = "; ".join(dict.fromkeys(lines_kept)) or "git gave no reason"
    words = re.sub(r"://[^/@\s]+@", "://", words).rstrip(".")
    return words if len(words) <= MAX_MESSAGE_CHARS else f"{words[: MAX_MESSAGE_CHARS - 1]}…"
