"""Programs that are links on the PATH start in the sandbox, whoever installed them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp

import pytest

from mulligan.sandbox.process import Command, Finished
from mulligan.sandbox.programs import variables_of_managers
from mulligan.sandbox.sandbox import CommandAccess
from world.confined import sandbox

WORKS = "it works"

BESIDE = '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/{}"\n'
"""A program that needs a file beside itself, as an interpreter needs its library."""


def executable(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(0o755)
    return place


def needs(place: Path, beside: str) -> Path:
    """Make a program that prints a file, whose path is relative to it."""
    file = Path(os.path.normpath(place.parent / beside))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{WORKS}\n")
    return executable(place, BESIDE.format(beside))


def link(place: Path, target: Path | str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return place


def venv_with_tool(venv: Path) -> Path:
    """Make a virtual environment with a tool and its module, and return the tool."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    (packages / "its_module.py").write_text(f"said = {WORKS!r}\n")
    text = f"#!{venv}/bin/python\nimport its_module\nprint(its_module.said)\n"
    return executable(venv / "bin" / "tool", text)


def pipx(home: Path) -> Path:
    tool = venv_with_tool(home / ".local/share/pipx/venvs/tool")
    return link(home / ".local/bin/tool", tool).parent


def uv_tool(home: Path) -> Path:
    """uv has Pythons of its own: a link with the minor version leads to each."""
    share = home / ".local/share/uv"
    needs(share / "python/cpython-3.12.1/bin/python3.12", "../lib/python3.12/os.py")
    link(share / "python/cpython-3.12", "cpython-3.12.1")
    venv = share / "tools/tool"
    link(venv / "bin/python", share / "python/cpython-3.12/bin/python3.12")
    (venv / "pyvenv.cfg").write_text(f"home = {share}/python/cpython-3.12/bin\n")
    tool = executable(venv / "bin/tool", f'#!/bin/sh\nexec "{venv}/bin/python"\n')
    return link(home / ".local/bin/tool", tool).parent


def npm_prefix(home: Path) -> Path:
    needs(home / ".npm-global/lib/node_modules/tool/cli.js", "../dependency/index.js")
    return link(home / ".npm-global/bin/tool", "../lib/node_modules/tool/cli.js").parent


def pnpm_store(home: Path) -> Path:
    modules = home / ".pnpm-global/5/node_modules"
    needs(modules / ".pnpm/tool@1/node_modules/tool/cli.js", "../dependency/index.js")
    link(modules / "tool", ".pnpm/tool@1/node_modules/tool")
    return link(home / "bin/tool", "../.pnpm-global/5/node_modules/tool/cli.js").parent


def yarn_global(home: Path) -> Path:
    modules = home / ".config/yarn/global/node_modules"
    needs(modules / "tool/cli.js", "../dependency/index.js")
    link(modules / ".bin/tool", "../tool/cli.js")
    return link(home / ".yarn/bin/tool", modules / ".bin/tool").parent


def node_beside_others(home: Path) -> Path:
    """Node in ~/.local, which has much else."""
    executable(home / ".local/bin/node", "#!/bin/sh\n")
    needs(home / ".local/lib/node_modules/tool/cli.js", "../dependency/index.js")
    return link(home / ".local/bin/tool", "../lib/node_modules/tool/cli.js").parent


def current_version(home: Path) -> Path:
    executable(home / "opt/tool-1.2/bin/tool", f"#!/bin/sh\necho {WORKS}\n")
    link(home / "opt/current", home / "versions/tool")
    link(home / "versions/tool", "../opt/tool-1.2")
    return link(home / "bin/tool", home / "opt/current/bin/tool").parent


def linked_directory(home: Path) -> Path:
    """As SDKMAN puts a JDK on the PATH, here without its variable."""
    java = home / "jdks/java"
    needs(java / "21/bin/tool", "../lib/modules")
    return link(java / "current", "21") / "bin"


def directory_of_one_shell(home: Path) -> Path:
    """As fnm puts Node on the PATH."""
    node = home / "fnm/node-versions/v20/installation"
    executable(node / "bin/node", "#!/bin/sh\n")
    needs(node / "lib/node_modules/tool/cli.js", "../dependency/index.js")
    link(node / "bin/tool", "../lib/node_modules/tool/cli.js")
    return link(home / "run/fnm_multishells/1_2", node) / "bin"


def shims(home: Path) -> Path:
    needs(home / "pyenvs/versions/3.12/bin/tool", "../lib/file")
    text = f'#!/bin/sh\nexec "{home}/pyenvs/versions/3.12/bin/tool"\n'
    return executable(home / "pyenvs/shims/tool", text).parent


def homebrew(home: Path) -> Path:
    prefix = home / ".linuxbrew"
    needs(prefix / "Cellar/tool/1.2/bin/tool", "../../../../opt/library/share/file")
    return link(prefix / "bin/tool", "../Cellar/tool/1.2/bin/tool").parent


def rustup(home: Path) -> Path:
    (home / ".rustup").mkdir()
    (home / ".rustup/settings.toml").write_text(f"{WORKS}\n")
    executable(home / ".cargo/bin/rustup", '#!/bin/sh\ncat "$RUSTUP_HOME/settings.toml"\n')
    return link(home / ".cargo/bin/tool", "rustup").parent


def asdf(home: Path) -> Path:
    """Before 0.16, asdf is a program of shell files; its shims start it."""
    needs(home / ".asdf/installs/tool/1.2/bin/tool", "../share/file")
    executable(
        home / ".asdf/bin/asdf",
        '#!/bin/sh\nexec "${ASDF_DATA_DIR:-$HOME/.asdf}/installs/$2/1.2/bin/$2"\n',
    )
    text = f'#!/bin/sh\nexec {home}/.asdf/bin/asdf exec "tool" "$@"\n'
    return executable(home / ".asdf/shims/tool", text).parent


def mise(home: Path) -> Path:
    """The shims of mise are links to mise, which looks at its name."""
    share = home / ".local/share/mise"
    needs(share / "installs/tool/1.2/bin/tool", "../share/file")
    program = executable(
        home / ".local/bin/mise",
        '#!/bin/sh\nname=$(basename "$0")\n'
        'exec "${MISE_DATA_DIR:-$HOME/.local/share/mise}/installs/$name/1.2/bin/$name"\n',
    )
    return link(share / "shims/tool", program).parent


LAYOUTS: tuple[Callable[[Path], Path], ...] = (
    *(pipx, uv_tool, npm_prefix, pnpm_store, yarn_global, node_beside_others, current_version),
    *(linked_directory, directory_of_one_shell, shims, homebrew, rustup, asdf, mise),
)


def start(line: str, home: Path, path: Path) -> Finished:
    """Run a line in the sandbox of a Mulligan that has this HOME and PATH."""
    work = home.with_name("work")
    work.mkdir(exist_ok=True)
    environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(home)}
    managers = variables_of_managers(environment)
    run = Command(
        argv=("/bin/sh", "-c", line),
        directory=work,
        environment={**environment, **managers, "HOME": str(work)},
        timeout=timedelta(seconds=20),
    )
    return sandbox().run(run, CommandAccess(write=(work,)))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_a_program_of_the_path_starts(layout: Callable[[Path], Path], home: Path) -> None:
    ran = start("tool", home, layout(home))
    assert (ran.text.strip(), ran.exit_code) == (WORKS, 0)


def test_an_upgrade_is_seen_at_once(home: Path) -> None:
    path = pipx(home)
    assert start("tool", home, path).text.strip() == WORKS
    (home / ".local/share/pipx").rename(home / ".local/share/moved")
    (home / ".local/share/pipx").mkdir()
    shutil.rmtree(home / ".local/share/moved")
    assert start("tool", home, path).exit_code == 127
    venv_with_tool(home / ".local/share/pipx/venvs/tool")
    assert start("tool", home, path).text.strip() == WORKS


def test_one_package_of_opt_is_shown_and_no_other(home: Path) -> None:
    if not os.access("/opt", os.W_OK):
        pytest.skip("needs a writable /opt")
    package, other = (Path(mkdtemp(prefix="mulligan-test-", dir="/opt")) for _ in range(2))
    try:
        for each in (package, other):
            each.chmod(0o755)
            needs(each / "bin/tool", "../lib/file")
        path = link(home / "bin/tool", package / "bin/tool").parent
        assert start("tool && ls /opt", home, path).text.split("\n")[:2] == [WORKS, package.name]
    finally:
        shutil.rmtree(package)
        shutil.rmtree(other)


def test_links_beyond_all_measure_do_not_stop_the_sandbox(home: Path) -> None:
    for number in range(3000):
        tool = executable(home / f"tools/{number}/tool", "#!/bin/sh\n")
        link(home / f"bin/tool-{number}", tool)
    assert start(f"echo {WORKS}", home, home / "bin").text.strip() == WORKS


@pytest.mark.parametrize("target", ["/proc/self/exe", "/dev/fd/0", "nowhere/x", "./loop", "/sys/x"])
def test_a_link_to_no_file_of_its_own_does_not_stop_the_sandbox(target: str, home: Path) -> None:
    path = link(home / "bin/loop", target).parent
    assert start(f"echo {WORKS}", home, path).text.strip() == WORKS
