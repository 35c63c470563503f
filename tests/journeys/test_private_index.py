"""A first day in a company: its index needs a password and has an authority of its own."""

import re
from pathlib import Path

from world.network_namespace import run_in_namespace
from world.package_index import ENCODED, HOST, PASSWORD, TARBALL_NAME, WHEEL_NAME

PROGRAM = Path(__file__).with_name("private_index_program.py")


def test_init_check_and_rehearse_work_beside_a_private_index(tmp_path: Path) -> None:
    done = run_in_namespace(PROGRAM, [str(tmp_path)], tmp_path, "packages.example.test", HOST)
    output = done.stdout + done.stderr
    assert re.findall(r"^exit code (\d)$", output, re.MULTILINE) == ["0", "0", "0"], output
    assert "denied: []" in output
    assert WHEEL_NAME in output.rpartition("requests: ")[2]
    assert TARBALL_NAME in output.rpartition("requests: ")[2]
    assert not re.search(r"certificate|\bssl\b|\btls\b", output, re.IGNORECASE), output
    for secret in (PASSWORD, ENCODED):
        assert secret not in output
        assert files_with(secret, tmp_path) == []


def files_with(secret: str, directory: Path) -> list[Path]:
    """List the files that contain a secret, in any directory that Mulligan wrote."""
    return [
        path
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink() and secret.encode() in path.read_bytes()
    ]
