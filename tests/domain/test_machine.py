"""Whether there is room to work, by what was found on the disks."""

from pathlib import Path

import pytest

from mulligan.domain.host import LEAST_FILES, MIB, Room, is_shortage, shortage

pytestmark = pytest.mark.pure

WORK, STATE = Path("/work"), Path("/state")
ENOUGH = Room(STATE, 512 * MIB, writable=True, files=LEAST_FILES)


@pytest.mark.parametrize(
    ("rooms", "said"),
    [
        ([], None),
        ([ENOUGH, Room(WORK, 512 * MIB, writable=True)], None),
        (
            [ENOUGH, Room(WORK, 512 * MIB - 1, writable=True)],
            "Less than 512 MiB are free for /work; make room on that disk.",
        ),
        (
            [Room(WORK, 512 * MIB, writable=True, files=LEAST_FILES - 1), ENOUGH],
            "Hardly any more files can be made on the disk of /work; make room on that disk.",
        ),
    ],
)
def test_a_disk_with_little_room_is_named(rooms: list[Room], said: str | None) -> None:
    assert shortage(rooms, 512 * MIB) == said
    assert said is None or is_shortage(said)
    assert not is_shortage("The agent refused its key.")
