"""Whatever keeps commands from being confined is one sentence, and its cure another."""

import pytest

from mulligan.sandbox.probe import (
    APPARMOR,
    CONTAINER,
    FULL_DISK,
    NONE_ALLOWED,
    NOT_INSTALLED,
    TOO_OLD,
    UNIT,
    USERS_MAY_NOT,
    NamespaceSupport,
    SandboxProblem,
    explain_problem,
)

pytestmark = pytest.mark.pure
DENIED = "bwrap: Creating new namespace failed: Operation not permitted\n"
OPENING = "The sandbox for /bin/sh cannot be set up: "
LOOPBACK = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
UID_MAP = "bwrap: setting up uid map: Permission denied"
PROC = f"{OPENING}Can't mount proc on /newroot/proc: Operation not permitted."
LIMIT = (
    "bwrap: Creating new namespace failed: nesting depth or "
    "/proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
)


@pytest.mark.parametrize(
    ("said", "around", "found"),
    [
        ("bwrap: Unknown option --disable-userns", NamespaceSupport(), TOO_OLD),
        (LIMIT, NamespaceSupport(), NONE_ALLOWED),
        ("cat: write error: No space left on device\n", NamespaceSupport(), FULL_DISK),
        (DENIED, NamespaceSupport(none_allowed=True), NONE_ALLOWED),
        (UID_MAP, NamespaceSupport(apparmor_restricts=True), APPARMOR),
        (LOOPBACK, NamespaceSupport(apparmor_restricts=True, unit=True), APPARMOR),
        (DENIED, NamespaceSupport(apparmor_restricts=True), APPARMOR),
        (DENIED, NamespaceSupport(container=True, apparmor_restricts=True), CONTAINER),
        (PROC, NamespaceSupport(container=True), CONTAINER),
        (PROC, NamespaceSupport(unit=True), UNIT),
        (DENIED, NamespaceSupport(users_may_not=True), USERS_MAY_NOT),
    ],
)
def test_every_reason_has_its_cure(
    said: str, around: NamespaceSupport, found: SandboxProblem
) -> None:
    assert explain_problem(said, around) == found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (f"{OPENING}Odd things happen.", "does not work here: Odd things happen."),
        ("", "does not work here: it says nothing."),
    ],
)
def test_what_nobody_foresaw_is_told_as_it_was_said(said: str, words: str) -> None:
    assert words in explain_problem(said, NamespaceSupport()).message


@pytest.mark.parametrize(
    "trouble",
    [NOT_INSTALLED, TOO_OLD, APPARMOR, USERS_MAY_NOT, NONE_ALLOWED, CONTAINER, UNIT, FULL_DISK],
)
def test_it_reads_as_two_sentences(trouble: SandboxProblem) -> None:
    assert trouble.message.endswith(".")
    assert trouble.fix.endswith(".")
    assert str(trouble) == f"{trouble.message} {trouble.fix}"
