"""How much room the configuration asks for, before and while something runs."""

from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.domain.host import MIB
from mulligan.interfaces.bootstrap.sandbox import disk_full_error, disk_shortage_of
from mulligan.storage.state_directory import disk_space_for


def made(directory: Path, free_mib: int) -> Operator:
    return Operator.model_validate(
        {
            "repositories": [{"name": "acme/tools"}],
            "agent": {"command": ["agent"]},
            "state": {"url": f"sqlite:///{directory}/mulligan.db"},
            "workspace": {"root": str(directory / "work")},
            "limits": {"free_mib": free_mib},
        }
    )


def test_what_runs_is_stopped_at_half_of_what_it_takes_to_begin(tmp_path: Path) -> None:
    free = disk_space_for(tmp_path).free // MIB
    enough, little, full = (made(tmp_path, free_mib) for free_mib in (0, free * 3 // 2, free * 3))
    assert (disk_shortage_of(enough), disk_full_error(enough)) == ("", None)
    named = f"Less than {free * 3 // 2} MiB are free for the workspace (workspace.root)."
    assert named in disk_shortage_of(little)
    assert disk_full_error(little) is None
    assert disk_shortage_of(full)
    assert "The disk ran full, so the command was stopped." in str(disk_full_error(full))


def test_a_place_that_cannot_be_looked_at_stops_nothing() -> None:
    assert disk_full_error(made(Path("/", "x" * 300), 512)) is None
