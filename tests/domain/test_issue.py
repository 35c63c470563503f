"""Names of issues, and what people may do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.domain.errors import LeaseLostError, UsageError
from mulligan.domain.issue import REPOSITORY, IssueRef, Lease, Permission, lease_lost

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "repository", "number"),
    [
        ("octocat/hello-world#1", "octocat/hello-world", 1),
        ("o/r#12", "o/r", 12),
        ("O-c/_.-#4294967295", "O-c/_.-", 4294967295),
        ("a/.github#7", "a/.github", 7),
        ("a/...#7", "a/...", 7),
    ],
)
def test_a_name_reads_as_it_is_written(text: str, repository: str, number: int) -> None:
    ref = IssueRef.parse(text)
    assert ref == IssueRef(repository, number)
    assert str(ref) == text
    assert ref.branch == f"mulligan/issue-{number}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "#12",
        "octo/hello",
        "octo/hello#",
        "octo/hello#0",
        "octo/hello#012",
        "octo/hello#-1",
        "octo/hello#1.0",
        "octo/hello#12345678901",
        "octo/hello# 1",
        "octo/hello#1\n",
        "octo/hello#٣",
        "octo/hello#1٣",
        "hello#1",
        "/hello#1",
        "octo/#1",
        "octo/.#1",
        "octo/..#1",
        "../hello#1",
        "octo/he/llo#1",
        "octo/he llo#1",
        "octo/hello\n#1",
        "-octo/hello#1",
        "oc_to/hello#1",
        "octo/hello#1#2",
        f"octo/{'x' * 101}#1",
        f"{'x' * 40}/hello#1",
        "https://github.com/octo/hello/issues/1",
    ],
)
def test_anything_else_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageError, match="write OWNER/NAME#NUMBER"):
        IssueRef.parse(text)


@given(repository=st.from_regex(REPOSITORY, fullmatch=True), number=st.integers(1, 10**10 - 1))
def test_every_name_survives_being_written_and_read(repository: str, number: int) -> None:
    ref = IssueRef(repository, number)
    assert IssueRef.parse(str(ref)) == ref


def test_issues_sort_by_repository_then_by_number() -> None:
    names = ["b/a#1", "a/b#10", "a/b#9"]
    assert [str(ref) for ref in sorted(map(IssueRef.parse, names))] == ["a/b#9", "a/b#10", "b/a#1"]


@pytest.mark.parametrize("needed", Permission)
@pytest.mark.parametrize("held", Permission)
def test_a_permission_reaches_itself_and_all_below(held: Permission, needed: Permission) -> None:
    order = ["none", "read", "triage", "write", "maintain", "admin"]
    assert held.reaches(needed) is (order.index(held) >= order.index(needed))


def test_a_lost_lease_names_the_issue() -> None:
    error = lease_lost(Lease(IssueRef("octo/hello", 12), "vm:4711", 3))
    assert isinstance(error, LeaseLostError)
    assert str(error).startswith("Another worker has taken over octo/hello#12;")
