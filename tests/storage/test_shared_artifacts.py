"""What one worker of a fleet keeps of an attempt, another finds on its own machine."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.storage.artifacts import FileArtifacts, SharedArtifacts
from mulligan.storage.database import open_database
from mulligan.text.redact import Redactor
from world.ledgers import TickingClock, url_for

REF = IssueRef("octo/tools", 7)
BUNDLE = bytes(range(256)) * 4096
Pair = tuple[SharedArtifacts, SharedArtifacts]


@pytest.fixture(params=["sqlite", "postgres"])
def workers(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Pair]:
    """Give the artifacts of two workers that have nothing in common but the database."""
    url, filter_ = url_for(request, tmp_path), Redactor(("hunter2hunter2",))
    with open_database(url) as first, open_database(url) as second:
        clock = TickingClock()
        yield (
            SharedArtifacts(FileArtifacts(tmp_path / "one", filter_), first, clock, 2 << 20),
            SharedArtifacts(FileArtifacts(tmp_path / "two", filter_), second, clock, 2 << 20),
        )


def test_what_one_writes_the_other_finds_without_secrets(workers: Pair) -> None:
    one, two = workers
    name = one.write(REF, 1, "changes.diff", b"+ hunter2hunter2")
    assert two.find(REF, 1, "changes.diff") == name
    assert two.read(name) == one.read(name)
    assert b"hunter2" not in two.read(name)
    assert two.find(REF, 2, "changes.diff") is None


def test_a_bundle_that_git_wrote_is_put_on_the_other_machine_byte_for_byte(workers: Pair) -> None:
    one, two = workers
    place = one.path(REF, 1, "verified.bundle")
    place.write_bytes(BUNDLE)
    assert not two.path(REF, 1, "verified.bundle").exists()
    for _ in range(2):
        one.share(place)
    assert two.path(REF, 1, "verified.bundle").read_bytes() == BUNDLE


def test_what_is_too_large_stays_where_it_was_made(workers: Pair) -> None:
    one, two = workers
    name = one.write(REF, 1, "changes.diff", BUNDLE * 3)
    assert one.read(name) == BUNDLE * 3
    with pytest.raises(UnavailableError, match="no longer exists"):
        two.read(name)


def test_any_worker_removes_what_another_left_for_all(workers: Pair) -> None:
    one, two = workers
    name = one.write(REF, 3, "prompt.md", b"12345")
    (found,) = two.attempts()
    assert (found.issue, found.number, found.size) == (REF, 3, 5)
    two.remove(REF, 3)
    assert two.attempts() == ()
    assert one.read(name) == b"12345"
    assert [each.number for each in one.attempts()] == [3]
