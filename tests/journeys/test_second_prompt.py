"""The prompt of the second attempt: complete where it matters, and within its budget."""

import shutil
import socket
import sys
from pathlib import Path

import pytest

from mulligan.sandbox.bubblewrap import WORKTREE
from world.confined import usable_mode
from world.ledgers import url_of
from world.place import NAME, mulligan_installation
from world.repositories import git

TEST = """
import pytest

@pytest.mark.parametrize("number", range({before}))
def test_before(number):
    print("line of noise", number)

def test_total_of_the_invoice():
    from invoice import total
    assert total([10, 20]) == 36, "net 30 and 20 percent tax"

@pytest.mark.parametrize("number", range({after}))
def test_after(number):
    print("line of noise", number)
"""
BUDGET_BYTES = 4000 * 4


def test_with_a_mirror_the_prompt_after_a_lost_disk_names_what_failed_before(
    tmp_path: Path,
) -> None:
    failure = "FAILED test_tax.py::test_total - assert 34 == 36, net 30 and tax"
    check = f"grep one notes.txt || {{ echo '{failure}'; exit 1; }}"
    with mulligan_installation(
        tmp_path, {"notes.txt": "one\n"}, [{"name": "tests", "run": check, "kind": "test"}]
    ) as here:
        # GraphQL names a bot without the suffix that its login has; a machine user has none.
        here.world.users["mulligan-bot"].type = "User"
        here.configure(state={"url": url_of(tmp_path / "mulligan.db"), "mirror": "public"})
        here.agent("pathlib.Path('notes.txt').write_text('two')")
        ref = here.issue()
        assert here.run("once", "--attempts", "1").returncode == 0
        for disk in ("mulligan.db", "mulligan.db-wal", "mulligan.db-shm"):
            (tmp_path / disk).unlink(missing_ok=True)
        shutil.rmtree(tmp_path / "work")
        assert here.run("once", "--attempts", "1").returncode == 0
        assert "assert 34 == 36, net 30 and tax" in here.prompt(ref, 2)
        assert "refs/mulligan/state" in here.run("explain", str(ref)).stdout
        stored = git(here.bare, "cat-file", "blob", f"refs/mulligan/state:{NAME}/1.jsonl")
        assert not any(name in stored for name in (socket.gethostname(), str(tmp_path)))


@pytest.mark.deep
def test_one_failure_among_twenty_thousand_passing_lines_is_told(tmp_path: Path) -> None:
    files = {
        "invoice.py": "def total(lines):\n    return sum(lines)\n",
        "test_invoice.py": TEST.format(before=20, after=20),
        "noise.py": "for number in range(20_000):\n    print(f'test_{number} ... ok')\n",
        ".gitignore": "__pycache__/\n.pytest_cache/\n",
    }
    plain = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
    pytest = f"{plain} {sys.executable} -m pytest -v -p no:cacheprovider"
    run = f"{sys.executable} noise.py; {pytest}; code=$?; {sys.executable} noise.py; exit $code"
    with mulligan_installation(
        tmp_path, files, [{"name": "tests", "run": run, "kind": "test"}]
    ) as here:
        here.agent("""
        pathlib.Path('invoice.py').write_text('def total(lines):\\n    return 35\\n')
        subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b',
                        'commit', '-qam', 'one'], check=True)
        pathlib.Path('invoice.py').write_text('def total(lines):\\n    return 34\\n')
        """)
        ref = here.issue("The total has no tax", "x" * 500)
        assert here.run("once", "--attempts", "2").returncode == 0
        first, second = here.prompt(ref, 1), here.prompt(ref, 2)
        (attempt, _) = here.attempts(ref)
        assert attempt.commits == 2
    for told in (
        "test_invoice.py::test_total_of_the_invoice",
        "net 30 and 20 percent tax",
        "exit code 1",
        "2 commits",
        "return 34",
    ):
        assert told in second
    assert second.count("... ok") < 60
    added = len(second.encode()) - len(first.encode())
    assert added < BUDGET_BYTES
    assert "x" * 500 in second


def test_the_agent_sees_what_the_design_promises_and_nothing_else(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, {"a.txt": "a\n"}) as here:
        here.environment |= {"SECRET": "hidden", "WANTED": "passed on"}
        agent = here.settings["agent"]
        assert isinstance(agent, dict)
        here.configure(agent={**agent, "env": ["WANTED"]})
        here.agent("""
        import json
        pathlib.Path('seen.json').write_text(json.dumps(dict(os.environ)))
        pathlib.Path('cwd.txt').write_text(os.getcwd())
        """)
        ref = here.issue()
        assert here.run("once").returncode == 0
        seen = (here.worktree / "seen.json").read_text()
        place = here.worktree if usable_mode() == "off" else WORKTREE
        assert (here.worktree / "cwd.txt").read_text() == str(place)
    for name in ("MULLIGAN_ISSUE", "MULLIGAN_ATTEMPT", "MULLIGAN_FIX_ROUND", "MULLIGAN_REPORT"):
        assert name in seen
    assert f'"MULLIGAN_ISSUE": "{ref}"' in seen
    assert '"WANTED": "passed on"' in seen
    assert "hidden" not in seen
    assert here.environment["GITHUB_TOKEN"] not in seen
    assert "MULLIGAN_PREVIOUS_DIFF" not in seen


@pytest.mark.deep
def test_a_retry_finds_the_whole_discarded_diff(tmp_path: Path) -> None:
    with mulligan_installation(
        tmp_path, {"a.txt": "a\n"}, [{"name": "never", "run": "false"}]
    ) as here:
        here.agent("""
        before = os.environ.get('MULLIGAN_PREVIOUS_DIFF')
        found = pathlib.Path(before).read_text() if before else ''
        pathlib.Path('found.txt').write_text(found + 'mine')
        """)
        ref = here.issue()
        here.run("once", "--attempts", "2")
        done = here.run("inspect", str(ref), "--attempt", "2", "--diff")
    assert "+diff --git a/found.txt b/found.txt" in done.stdout
    assert "++mine" in done.stdout
