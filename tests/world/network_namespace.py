"""Run a Python program in a network of its own: loopback, one more host on it, and nothing else."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

SET_FLAGS = 0x8914
"""SIOCSIFFLAGS (netdevice(7))."""

UP = 1

PREPARE = 'python=$1; shift; mount --bind "$HOSTS_FILE" /etc/hosts && exec "$python" "$@"'


def run_in_namespace(
    program: Path, arguments: list[str], directory: Path, host: str, address: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in which `host` is at an address of loopback; skip where that is impossible."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("only root can make such a network")
    hosts = directory / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{address} {host}\n")
    return subprocess.run(
        [
            *("unshare", "--net", "--mount", "/bin/sh", "-c", PREPARE, "sh"),
            *(sys.executable, str(program), *arguments),
        ],
        cwd=directory,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "HOSTS_FILE": str(hosts),
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def bring_loopback_up() -> None:
    """Switch on loopback, as `ip link set lo up` does."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))
