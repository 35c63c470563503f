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
    SandboxProblem,
    Surroundings,
    explain,
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
        ("bwrap: Unknown option --disable-userns", Surroundings(), TOO_OLD),
        (LIMIT, Surroundings(), NONE_ALLOWED),
        ("cat: write error: No space left on device\n", Surroundings(), FULL_DISK),
        (DENIED, Surroundings(none_allowed=True), NONE_ALLOWED),
        (UID_MAP, Surroundings(apparmor_restricts=True), APPARMOR),
        (LOOPBACK, Surroundings(apparmor_restricts=True, unit=True), APPARMOR),
        (DENIED, Surroundings(apparmor_restricts=True), APPARMOR),
        (DENIED, Surroundings(container=True, apparmor_restricts=True), CONTAINER),
        (PROC, Surroundings(container=True), CONTAINER),
        (PROC, Surroundings(unit=True), UNIT),
        (DENIED, Surroundings(users_may_not=True), USERS_MAY_NOT),
    ],
)
def test_every_reason_has_its_cure(said: str, around: Surroundings, found: SandboxProblem) -> None:
    assert explain(said, around) == found


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (f"{OPENING}Odd things happen.", "does not work here: Odd things happen."),
        ("", "does not work here: it says nothing."),
    ],
)
def test_what_nobody_foresaw_is_told_as_it_was_said(said: str, words: str) -> None:
    assert words in explain(said, Surroundings()).said


@pytest.mark.parametrize(
    "trouble",
    [NOT_INSTALLED, TOO_OLD, APPARMOR, USERS_MAY_NOT, NONE_ALLOWED, CONTAINER, UNIT, FULL_DISK],
)
def test_it_reads_as_two_sentences(trouble: SandboxProblem) -> None:
    assert trouble.said.endswith(".")
    assert trouble.cure.endswith(".")
    assert str(trouble) == f"{trouble.said} {trouble.cure}"
