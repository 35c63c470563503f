"""Links on the PATH show programs in the sandbox, and open nothing that is private."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.sandbox.process import Command
from mulligan.sandbox.programs import variables_of_managers
from mulligan.sandbox.sandbox import CommandAccess
from world.confined import sandbox

SECRET = "the-secret"

PRIVATE = (
    *(".ssh/id_ed25519", ".ssh/agent", ".netrc", ".config/gh/hosts.yml", ".cargo/credentials.toml"),
    *(".local/share/keyrings/login", ".local/state/history", "src/project/.env", "notes"),
    *("src/service/.env", "../opt/state/mulligan.db", "../opt/state/bin/token", "brew/var/db/data"),
)
"""Files, as seen from HOME; those in `state` are Mulligan's own."""

MARKS = (
    *(".local/bin/node", "bin/node", "src/project/bin/node", "src/project/pyvenv.cfg"),
    *(".cargo/bin/node", ".cargo/bin/rustup", ".ssh/pyvenv.cfg", "../opt/state/bin/node"),
    *(".local/lib/python3.12/os.py", "lib/python3.12/os.py", "pyvenv.cfg", "versions/file"),
    *("brew/Cellar/tool/1/bin/tool", "src/project/bin/deploy", "src/service/shims/run"),
    *(
        ".ssh/bin/proxy",
        ".config/bin/tool",
        "state/bin/tool",
        "src/service/.git/HEAD",
        "src/service/versions/1",
        "../opt/bin/tool",
        "../opt/pyvenv.cfg",
    ),
)
"""What makes each place look like an installation."""

LINKS = {
    "key": ".ssh/id_ed25519",
    "ssh": ".ssh",
    "home": "",
    "up": "..",
    "proxy": ".ssh/bin/proxy",
    "config": ".config/bin/tool",
    "deploy": "src/project/bin/deploy",
    "node": "src/project/bin/node",
    "local": ".local/bin/node",
    "own": "bin/node",
    "cargo": ".cargo/bin/rustup",
    "mine": "../opt/state/bin/tool",
    "token": "../opt/state/bin/token",
    "brewed": "brew/Cellar/tool/1/bin/tool",
    "around": "src/project/../../../opt/state/bin/tool",
    "again": "alias/bin/tool",
}
"""Where links on the PATH lead, below HOME."""

PATHS = ("tools", "bin", ".local/bin", ".cargo/bin", "src/service/shims", "linked", "")
"""Directories of the PATH below HOME."""

VARIABLES = {"RUSTUP_HOME": ".cargo", "PYENV_ROOT": "", "VOLTA_HOME": ".ssh", "NVM_DIR": "../opt"}
"""Version managers that are said to have their files in private places."""


def test_no_link_of_the_path_opens_home_keys_projects_or_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    for name in (*PRIVATE, *MARKS):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("" if name in MARKS else SECRET)
        file.chmod(0o755 if name in MARKS or "token" in name else 0o644)
    (home / "src/project/.git").mkdir()
    (home / "alias").symlink_to(tmp_path / "opt")
    (home / "linked").symlink_to(home / ".ssh/bin")
    (home / "tools").mkdir()
    for name, target in LINKS.items():
        (home / "tools" / name).symlink_to(home / target)
    monkeypatch.setenv("HOME", str(home))
    path = ":".join([*(str(home / each) for each in PATHS), os.defpath])
    named = {name: os.path.normpath(home / place) for name, place in VARIABLES.items()}
    managers = variables_of_managers({"PATH": path, "HOME": str(home), **named})
    line = f"find {tmp_path} -type f -exec grep -l {SECRET} {{}} +; find / -xdev -name .env"
    run = Command(
        argv=("/bin/sh", "-c", line),
        directory=work,
        environment={"PATH": path, "HOME": str(work), **managers, **named},
        timeout=timedelta(seconds=20),
    )
    ended = sandbox((home.with_name("opt") / "state",)).run(run, CommandAccess(write=(work,)))
    assert [line for line in ended.text.splitlines() if line.startswith("/")] == []
    shown = start_anyway(home, work, path)
    assert shown == ["deploy is there"]


def start_anyway(home: Path, work: Path, path: str) -> list[str]:
    """Start the program in the work tree: the file alone is shown."""
    run = Command(
        argv=("/bin/sh", "-c", "deploy && echo deploy is there"),
        directory=work,
        environment={"PATH": path, "HOME": str(work)},
        timeout=timedelta(seconds=20),
    )
    ended = sandbox((home.with_name("opt") / "state",)).run(run, CommandAccess(write=(work,)))
    return ended.text.splitlines()


def test_a_link_that_a_command_made_shows_nothing_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory of the PATH that commands can write to is a mistake, and shows no more for it."""
    home, cache, work = (tmp_path / name for name in ("home", "cache", "work"))
    for place in (home / "venv/bin", cache, work):
        place.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    (home / "venv/pyvenv.cfg").write_text(SECRET)
    (home / "venv/bin/tool").write_text("#!/bin/sh\n")
    (home / "venv/bin/tool").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/indirect").symlink_to(cache / "made")
    walls = sandbox()
    walls = replace(walls, common=replace(walls.common, write=(cache,)))
    cache.chmod(0o777)

    def run(line: str) -> str:
        path = f"{cache}:{tmp_path}/bin:{os.defpath}"
        command = Command(("/bin/sh", "-c", line), work, {"PATH": path}, timedelta(seconds=20))
        return walls.run(command, CommandAccess(write=(work,))).text

    assert run(f"ln -s {home}/venv/bin/tool {cache}/made && echo made") == "made\n"
    assert (cache / "made").is_file()
    assert "Permission denied" not in run(f"cat {home}/venv/pyvenv.cfg")
    assert SECRET not in run(f"cat {home}/venv/pyvenv.cfg; ls {home}")
