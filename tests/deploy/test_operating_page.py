"""What docs/operating.md tells an operator to do is done here, line by line, in a place of its own.

Mulligan, Python, pip and install(1) are real. What would change the machine, or is not on it, has
a stand-in that looks at what it is told and refuses what the page does not show.
"""

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

import mulligan
from mulligan.domain.events import Decided
from world.deployment import DEPLOY, ROOT, read_yaml
from world.place import BIN, TOKEN, MulliganInstallation, mulligan_installation

PAGE = (ROOT / "docs" / "operating.md").read_text()
OURS = PAGE.partition("## When an issue is not worked on")[0]
BLOCKS = re.findall(r"^```console\n(.*?)^```$", OURS, re.MULTILINE | re.DOTALL)
STAND_INS = Path(__file__).with_name("stand_ins.sh")
SOURCE = Path(mulligan.__file__).parent
MOVED = re.compile(r"/(?:opt/mulligan|etc|var/lib/mulligan|run/credentials|run/secrets)\b")
BUILT = ("LICENSE", "README.md", "pyproject.toml")


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    """Set up the repository that the page begins in, its examples edited as the page asks."""
    with mulligan_installation(tmp_path / "github", {"notes.txt": "one\n"}) as made:
        made.agent("")
        checkout = tmp_path / "checkout"
        shutil.copytree(DEPLOY, checkout / "deploy")
        shutil.copytree(ROOT / "requirements", checkout / "requirements")
        for name in BUILT:
            shutil.copy(ROOT / name, checkout / name)
        (checkout / "src").symlink_to(ROOT / "src")
        (tmp_path / "etc/systemd/system").mkdir(parents=True)
        for example in ("systemd/mulligan.yml", "compose/config/mulligan.yml"):
            edit(checkout / "deploy" / example, made, tmp_path)
        yield made


def edit(path: Path, made: MulliganInstallation, root: Path) -> None:
    path.write_text(moved(path.read_text(), root))
    content = read_yaml(path)
    github = content["github"]
    assert isinstance(github, dict)
    content["github"] = {**github, "api_url": made.url}
    content |= {name: made.settings[name] for name in ("repositories", "agent")}
    path.write_text(yaml.safe_dump(content))


def moved(text: str, root: Path) -> str:
    return MOVED.sub(lambda found: f"{root}{found[0]}", text)


def do(block: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of a block, without what they print; whatever asks for the token gets it."""
    lines = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    script = "\n".join([f". {STAND_INS}", *(moved(line, root) for line in lines)])
    return subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=root / "checkout",
        env={"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(root), "HERE": str(root), "BIN": str(BIN)},
        input=TOKEN,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.deep
def test_every_line_that_the_page_shows_can_be_typed(
    here: MulliganInstallation, tmp_path: Path
) -> None:
    assert sum(block.count("$ ") for block in BLOCKS) > 20
    for block in BLOCKS:
        done = do(block, tmp_path)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "etc/systemd/system/mulligan.service").is_file()
    assert (tmp_path / "etc/mulligan/github-token").stat().st_mode & 0o077 == 0
    assert here.url in (tmp_path / "etc/mulligan/mulligan.yml").read_text()
    state = tmp_path / "var/lib/mulligan"
    assert tables(state / "backup.db") == tables(state / "mulligan.db") != set()


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


def test_a_line_that_is_mistyped_would_be_noticed(
    here: MulliganInstallation, tmp_path: Path
) -> None:
    del here
    for block in ("$ sudo systemctl halt mulligan\n", "$ docker compose exec worker mulligan x\n"):
        assert do(block, tmp_path).returncode != 0


def test_the_log_lines_that_the_page_explains_are_written() -> None:
    written = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    section = OURS.partition("## The log")[2].partition("\n## ")[0]
    explained = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)))
    assert "not_polled" in explained
    names = [name for name in explained if name != "event"]
    assert [name for name in names if not re.search(rf'log\.\w+\("{name}"', written)] == []
    assert f"action={Decided.model_fields['kind'].default} " in section


def test_every_directory_and_file_of_deploy_that_is_named_exists() -> None:
    named = re.findall(r"\bdeploy/[\w./-]*\w", OURS)
    assert [path for path in named if not (ROOT / path).exists()] == []
