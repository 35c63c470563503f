"""What git says is turned into the error of whoever must act, in one line."""

import pytest

from mulligan.domain.errors import (
    CertificateError,
    DeniedError,
    ForbiddenError,
    MisconfiguredError,
    UnavailableError,
    WorldError,
)
from mulligan.git.faults import MAX_MESSAGE_CHARS, DamagedError, fault_of, may_pass, one_line

pytestmark = pytest.mark.pure

SAID: list[tuple[type[WorldError], str]] = [
    (DeniedError, "fatal: Authentication failed for 'https://github.com/o/r/'"),
    (
        DeniedError,
        "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
    ),
    (DeniedError, "fatal: could not read Password for 'https://x@github.com': No such device"),
    (DeniedError, "git@github.com: Permission denied (publickey).\nfatal: Could not read from it"),
    (DeniedError, "Host key verification failed.\nfatal: Could not read from remote repository."),
    (ForbiddenError, "remote: Permission to o/r denied to bot.\nfatal: unable to access 'x': 403"),
    (ForbiddenError, "fatal: unable to access 'https://h/': The requested URL returned error: 403"),
    (UnavailableError, "remote: Repository not found.\nfatal: repository 'https://h/r/' not found"),
    (DeniedError, "fatal: detected dubious ownership in repository at '/srv/r.git'"),
    (DeniedError, "!\taaa:refs/heads/x\t[remote rejected] (pre-receive hook declined)"),
    (DeniedError, "remote: error: 'refs/heads/a' exists; cannot create 'x'\n!\t[remote rejected]"),
    (DeniedError, "!\tc:refs/heads/a/b\t[remote rejected] (directory file conflict)"),
    (DeniedError, "!\taaa:refs/heads/x\t[remote rejected] (protected branch hook declined)"),
    (DeniedError, "!\taaa:refs/heads/x\t[rejected] (stale info)"),
    (UnavailableError, "!\taaa:refs/heads/x\t[remote rejected] (failed to update ref)"),
    (UnavailableError, "! aaa -> x [remote rejected] (Internal Server Error)"),
    (UnavailableError, "!\taaa:refs/heads/x\t[remote rejected] (unpacker error)"),
    (UnavailableError, "!\ta:refs/heads/x\t[remote rejected] (fatal error in commit_refs)"),
    (UnavailableError, "remote: fatal error in commit_refs\n!\ta:x\t[remote rejected] (failure)"),
    (UnavailableError, "remote: hook execution timed out\n! a:x [remote rejected] (hook declined)"),
    (UnavailableError, "!\ta:refs/heads/x\t[remote rejected] (pre-receive hook timed out)"),
    (UnavailableError, ("remote: Unable to determine if the branch is protected\n"
     "!\ta:x\t[remote rejected] (protected branch hook declined)")),
    (UnavailableError, ("!\ta:x\t[remote rejected] (Unable to determine if workflow can be created "
     "or updated due to timeout; `workflows` scope may be required.)")),
    (UnavailableError, "remote: Internal Server Error\n!\ta:x\t[remote rejected] (hook declined)"),
    (UnavailableError, "fatal: unable to access 'https://h/': Could not resolve host: h"),
    (UnavailableError, "fatal: unable to access 'https://h/': URL returned error: 502"),
    (UnavailableError, "fatal: '/srv/r.git' does not appear to be a git repository"),
    (UnavailableError, "error: RPC failed; curl 28 Operation too slow"),
    (UnavailableError, "fatal: the remote end hung up unexpectedly"),
    (UnavailableError, "error: unable to write file x: No space left on device"),
    (UnavailableError, "remote: fatal: bad object HEAD\nfatal: protocol error: bad pack header"),
    (UnavailableError, ""),
    (MisconfiguredError, "fatal: empty ident name (for <a@b>) not allowed"),
    (MisconfiguredError, "git: 'remote-https' is not a git command. See 'git --help'."),
    (DamagedError, "error: object file objects/ab/cd is empty"),
    (DamagedError, "fatal: loose object abcd (stored in x) is corrupt"),
    (DamagedError, "fatal: not a git repository: '/srv/mirror.git'"),
    (DamagedError, "error: inflate: data stream error (unknown compression method)"),
    (DamagedError, "fatal: bad object refs/remotes/origin/main"),
    (DamagedError, "error: cannot lock ref 'refs/heads/a': 'refs/heads/a/b' exists"),
    (DamagedError, "fatal: unable to read tree 4b825dc"),
    (DamagedError, "fatal: bad config line 1 in file config"),
]  # fmt: skip


OWN_AUTHORITY = (
    "set github.ca_file to the certificates of that authority, or add them to the system's "
    "certificates."
)
NOT_TRUSTED = "is signed by an authority that this machine does not trust"
CERTIFICATES = {
    "fatal: unable to access 'https://me:secret@ghe.corp:8443/o/r.git/': SSL certificate problem: "
    "certificate has expired": (
        "the certificate of ghe.corp:8443 has expired; the server's operator must replace it."
    ),
    "fatal: unable to access 'https://ghe.corp/o/r.git/': server certificate verification failed. "
    "CAfile: /etc/ssl/own.crt CRLfile: none": (
        f"the certificate of ghe.corp has expired, or {NOT_TRUSTED}; "
        f"if it has not expired, {OWN_AUTHORITY}"
    ),
    "SSL certificate problem: self-signed certificate": (
        f"the certificate of the server {NOT_TRUSTED}; {OWN_AUTHORITY}"
    ),
}


@pytest.mark.parametrize(("said", "words"), CERTIFICATES.items())
def test_a_certificate_is_named_with_its_host_and_without_files_of_this_machine(
    said: str, words: str
) -> None:
    fault = fault_of(said, "git fetch for o/r")
    assert type(fault) is CertificateError
    assert str(fault) == f"git fetch for o/r failed: {words}"
    assert not may_pass(said)


@pytest.mark.parametrize(("kind", "said"), SAID)
def test_each_fault_reaches_whoever_must_act(kind: type[WorldError], said: str) -> None:
    fault = fault_of(said, "git fetch for o/r")
    assert type(fault) is kind
    assert str(fault).startswith("git fetch for o/r failed: ")
    assert str(fault).endswith(".")
    assert "\n" not in str(fault)


REFUSED_BY_GITHUB = [
    (
        (
            "remote: error: GH001: Large files detected.\n"
            "remote: error: File a is 120 MB; this exceeds GitHub's file size limit of 100.00 MB\n"
            "!\ta:x\t[remote rejected] (pre-receive hook declined)"
        ),
        "over 100 MB",
    ),
    (
        (
            "remote: error: GH013: Repository rule violations found for refs/heads/x.\n"
            "remote: - GITHUB PUSH PROTECTION\nremote:     - Push cannot contain secrets\n"
            "!\ta:x\t[remote rejected] (push declined due to repository rule violations)"
        ),
        "remove the secret",
    ),
    (
        (
            "!\ta:x\t[remote rejected] (refusing to allow a GitHub App to create or update "
            "workflow `.github/workflows/a.yml` without `workflows` permission)"
        ),
        "'Workflows: write'",
    ),
    (
        (
            "!\ta:x\t[remote rejected] (refusing to allow an OAuth App to create or update "
            "workflow `.github/workflows/a.yml` without `workflow` scope)"
        ),
        "'Workflows: write'",
    ),
    (
        (
            "remote: error: GH013: Repository rule violations found for refs/heads/x.\n"
            "remote: - Commits must have verified signatures.\n"
            "!\ta:x\t[remote rejected] (push declined due to repository rule violations)"
        ),
        "change that rule",
    ),
]


@pytest.mark.parametrize(("said", "advice"), REFUSED_BY_GITHUB)
def test_a_refused_push_names_its_fix(said: str, advice: str) -> None:
    fault = fault_of(said, "git push for o/r")
    assert type(fault) is DeniedError
    assert advice in str(fault).rpartition("; ")[2]


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("fatal: unable to access 'https://h/': The requested URL returned error: 403", True),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 502", True),
        ("fatal: unable to access 'https://h/': The requested URL returned error: 404", True),
        ("fatal: unable to access 'https://h/': Could not resolve host: h", True),
        ("send-pack: unexpected disconnect while reading sideband packet", True),
        ("fatal: Authentication failed for 'https://github.com/o/r/'", False),
        ("!\taaa:refs/heads/x\t[rejected] (stale info)", False),
        ("", False),
    ],
)
def test_what_may_be_an_outage_of_seconds_is_tried_again(said: str, passes: bool) -> None:  # noqa: FBT001 - a column of the table
    assert may_pass(said) is passes


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("", "git gave no reason"),
        ("hint: try x\nfatal: no", "no"),
        ("remote: error: GH006: x.\nremote: \nerror: failed to push some refs to 'u'", "GH006: x"),
        ("To u\n!\ta:b\t[rejected] (stale info)\nDone", "[rejected] (stale info)"),
        ("fatal: unable to access 'https://bot:s3cret@h/x'", "unable to access 'https://h/x'"),
        ("fatal: a\x1b[31m\0b\u0085", "a [31m b"),
        ("only this", "only this"),
        ("fatal: same\nfatal: same", "same"),
    ],
)
def test_gits_words_fit_on_a_line(said: str, line: str) -> None:
    assert one_line(said) == line


def test_long_words_are_cut() -> None:
    assert one_line("fatal: " + "x" * 1000) == "x" * (MAX_MESSAGE_CHARS - 1) + "…"
