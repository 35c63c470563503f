"""Whether there is room to work, by what was found on the disks."""

from pathlib import Path

import pytest

from mulligan.domain.host import MIB, MIN_FREE_FILES, DiskSpace, disk_shortage

pytestmark = pytest.mark.pure

WORK, STATE = Path("/work"), Path("/state")
ENOUGH = DiskSpace(STATE, 512 * MIB, writable=True, free_files=MIN_FREE_FILES)


@pytest.mark.parametrize(
    ("rooms", "said"),
    [
        ([], ""),
        ([ENOUGH, DiskSpace(WORK, 512 * MIB, writable=True)], ""),
        (
            [ENOUGH, DiskSpace(WORK, 512 * MIB - 1, writable=True)],
            "Less than 512 MiB are free for /work. Free some space on that disk.",
        ),
        (
            [DiskSpace(WORK, 512 * MIB, writable=True, free_files=MIN_FREE_FILES - 1), ENOUGH],
            "Almost no free inodes are left on the disk of /work. Free some space on that disk.",
        ),
    ],
)
def test_a_disk_with_little_room_is_named(rooms: list[DiskSpace], said: str) -> None:
    assert disk_shortage(rooms, 512 * MIB) == said
