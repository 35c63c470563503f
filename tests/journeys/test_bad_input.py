"""Input that nobody meant: one sentence that says what to do, no traceback, and nothing is lost."""

import os
import sqlite3
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from pydantic import JsonValue
from typer.testing import CliRunner

from mulligan.domain.outcome import Outcome
from mulligan.interfaces.cli.app import app
from mulligan.storage.database import open_database
from world.issue_names import ref_of
from world.place import MAINTAINER, NAME, MulliganInstallation, mulligan_installation
from world.repositories import make_remote

FILES = {"notes.txt": "one\n"}
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"
EVIL = "--upload-pack=x; ../../$(touch pwned) `touch pwned` | touch pwned"
TITLES = {
    'it\'s "quoted" `and` [more](x)': 'it\'s "quoted" `and` [more](x)',
    "two\nlines\r\nhere": "two lines here",
    "\U0001f426 \U0001d518\U0001d52b\U0001d526": "\U0001f426 \U0001d518\U0001d52b\U0001d526",
    EVIL: EVIL,
    "\x1b[31mred\x1b[0m\u202e \x07": "red",
}
"""What people write, and what the pull request is called then."""


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES) as made:
        made.agent(WRITE)
        yield made


def test_each_repository_that_is_not_right_has_its_sentence(
    here: MulliganInstallation, tmp_path: Path
) -> None:
    good = here.issue()
    wrong: list[JsonValue] = []
    for name, branch in (("acme/empty", None), ("acme/old", None), ("acme/branchless", "trunk")):
        bare = make_remote(tmp_path / name, {} if name == "acme/empty" else FILES)
        roles = {MAINTAINER: "admin", "mulligan-bot": "write"}
        added = here.world.add_repository(name, bare, "main", roles)
        added.archived = name == "acme/old"
        wrong.append({"name": name, "clone_url": str(bare), "base_branch": branch})
    right = here.settings["repositories"]
    assert isinstance(right, list)
    here.configure(repositories=[{"name": "acme/none"}, *wrong, *right])
    done = here.run("once")
    assert done.returncode == 1
    for sentence in (
        "acme/none: GitHub does not find the repository acme/none (404 Not Found)",
        "acme/empty: acme/empty has no branch 'main'; push a first commit to it",
        "acme/branchless: acme/branchless has no branch 'trunk'; push a first commit to it",
    ):
        assert sentence in done.stderr
    assert here.world.labels_of(good) == ["mulligan:review"]
    looked = here.run("doctor").stdout
    assert "The repository is archived" in looked


@pytest.mark.deep
def test_titles_are_words_and_nothing_else(here: MulliganInstallation) -> None:
    here.configure(limits={"per_repository": 2})
    for title in TITLES:
        here.issue(title)
    blank = ref_of(here.world.open_issue(NAME, "\u200b\u3164", "\u2060", "zoe"))
    here.world.label(blank, "mulligan", MAINTAINER)
    done = here.run("once")
    assert (done.returncode, done.stderr) == (3, "")
    assert {pull.title for pull in here.world.pulls_of(NAME)} == set(TITLES.values())
    (meta,) = here.attempts(blank)
    assert meta.outcome is Outcome.BLOCKED
    assert here.world.labels_of(blank) == ["mulligan:hitl"]
    assert [*here.directory.rglob("pwned")] == []
    assert "\x1b" not in done.stdout + here.run("status").stdout


def test_names_and_words_that_are_not_utf_8_are_kept_and_shown(here: MulliganInstallation) -> None:
    here.agent(
        "os.mkdir(b'caf\\xe9'); open(b'caf\\xe9/\\xff\\n', 'wb').write(b'\\xff\\xfe\\n')\n"
        "sys.stdout.buffer.write(b'Made caf\\xe9.\\n')\n"
    )
    ref = here.issue()
    done = here.run("once")
    assert (done.returncode, done.stderr) == (0, "")
    (meta,) = here.attempts(ref)
    assert [change.path for change in meta.files_modified] == ["caf\ufffd/\ufffd\n"]
    (pull,) = here.world.pulls_of(NAME)
    assert "Made caf\ufffd." in (pull.body or "")
    (diff,) = here.directory.rglob("changes.diff")
    assert b"caf\xe9/\xff" in diff.read_bytes()


@pytest.mark.deep
def test_a_check_whose_program_is_missing_is_named(here: MulliganInstallation) -> None:
    (known,) = here.operator().repositories
    checks: JsonValue = [{"name": "tests", "run": "no-such-program --all"}]
    here.configure(
        repositories=[
            {"name": NAME, "clone_url": str(known.clone_url), "policy": {"checks": checks}}
        ]
    )
    ref = here.issue()
    assert here.run("once").returncode == 3
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.MISCONFIGURED
    assert meta.error == (
        "The check 'tests' cannot start on the base branch either (exit code 127). "
        "'no-such-program' not found. It is the program of the check 'tests'; install it in a "
        "setup command, or change the check's com…"
    )


@pytest.mark.deep
def test_200_megabytes_of_log_are_kept_and_read_in_seconds(here: MulliganInstallation) -> None:
    here.agent(
        f"block = (b'x' * 99 + b'\\n') * 20_000\nfor _ in range(100): os.write(1, block)\n{WRITE}"
    )
    ref = here.issue()
    assert here.run("once").returncode == 0
    assert [meta.outcome for meta in here.attempts(ref)] == [Outcome.SUCCEEDED]
    (log,) = here.directory.rglob("agent.log")
    assert log.stat().st_size == 200_000_000
    log.unlink()


def garbage(place: Path) -> None:
    place.write_bytes(b"garbage" * 1000)


def damaged(place: Path) -> None:
    open_database(f"sqlite:///{place}").close()
    whole = place.read_bytes()
    place.write_bytes(whole[:4096] + bytes(byte ^ 0x55 for byte in whole[4096:]))


def newer(place: Path) -> None:
    open_database(f"sqlite:///{place}").close()
    database = sqlite3.connect(place)
    with database:
        database.execute("UPDATE mulligan_version SET version_num = '9999'")
    database.close()


def somebody_elses(place: Path) -> None:
    database = sqlite3.connect(place)
    with database:
        database.execute("CREATE TABLE bookmarks (url TEXT)")
    database.close()


def a_directory(place: Path) -> None:
    place.mkdir()


def unreadable(place: Path) -> None:
    open_database(f"sqlite:///{place}").close()
    place.chmod(0)
    if os.access(place, os.R_OK):
        pytest.skip("this user may read everything")


@pytest.mark.parametrize(
    ("spoil", "code", "sentence"),
    [
        (garbage, 2, "is not a database; name another file in state.url."),
        (damaged, 2, "is damaged; restore a backup."),
        (newer, 2, "was written by a newer Mulligan; use that version or a later one."),
        (somebody_elses, 2, "is the database of another program; name another one in state.url."),
        (a_directory, 1, "give Mulligan write access to it and its directory."),
        (unreadable, 1, "give Mulligan write access to it and its directory."),
    ],
)
def test_a_database_that_is_not_ours_is_left_as_it_is(
    tmp_path: Path, spoil: Callable[[Path], None], code: int, sentence: str
) -> None:
    where = tmp_path / "mulligan.db"
    spoil(where)
    before = where.read_bytes() if where.is_file() else b""
    config = tmp_path / "mulligan.yml"
    config.write_text(
        f"repositories: [{{name: {NAME}}}]\nagent: {{command: [{sys.executable}]}}\n"
        f"state: {{url: 'sqlite:///{where}'}}\nworkspace: {{root: {tmp_path}/work}}\n"
    )
    for command in (["status"], ["inspect", f"{NAME}#1"]):
        done = CliRunner().invoke(app, [*command, "--config", str(config)])
        assert done.exit_code == code, done.output
        assert done.stdout == ""
        assert done.stderr.startswith(f"mulligan: {where} ")
        assert done.stderr.endswith(f"{sentence}\n")
        assert done.stderr.count("\n") == 1
    assert (where.read_bytes() if where.is_file() else b"") == before
