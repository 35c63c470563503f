"""Tools are asked for reports through their environment, and nothing else of a check changes."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from mulligan.checks.asked_reports import (
    MAX_REPORTS,
    NO_TOOL,
    Report,
    Tool,
    ask_for_reports,
    outermost,
    plan_reports,
)
from mulligan.checks.digest.reports import LARGEST_REPORT
from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.sandbox.operator_network import OperatorNetwork
from world.confined import sandbox
from world.trees import plain_worktree

PATH = {"PATH": os.environ["PATH"]}
VERIFIER = CommandVerifier(PATH)
PYTEST = f"{sys.executable} -m pytest -p no:randomly -p no:cacheprovider"
NOT_ASKED = "no-such-report.xml"
"""With a `report` of its own, a check is not asked."""

PASSES = "def test(): pass"
UNREPORTED = f"{PYTEST} -p no:junitxml\n"
TESTS = "def test_ok():\n    assert 1\n\ndef test_bad():\n    assert 1 == 2\n"
OUTER = """\
import subprocess, sys
def test_outer():
    inner = [sys.executable, "-m", "pytest", "inner.py"]
    said = subprocess.run(inner, capture_output=True, text=True).stdout
    assert "1 failed, 1 passed" in said{0}
def test_bad():
    assert {1}
"""


def run(
    root: Path,
    files: Mapping[str, str],
    line: str,
    *,
    asks: bool = True,
    verifier: CommandVerifier = VERIFIER,
) -> tuple[CheckResult, str, list[str], int]:
    """Run a check on new files; give its result, its output, the files, and how often it ran."""
    subprocess.run(("rm", "-rf", root), check=True)
    tree, runs = plain_worktree(root), list[None]()
    write(tree.path, files)
    check = Check(
        name="it",
        run=line,
        kind=CheckKind.TEST,
        timeout=timedelta(seconds=25),
        report=None if asks else NOT_ASKED,
    )
    log = tree.private / "check.log"
    result = verifier.check(check, tree, log, lambda: runs.append(None))
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    return result, TIMES.sub("", log.read_text()), names, len(runs)


TIMES = re.compile(r"gw\d|\d+\.\d+s|=+|Ran 1 test in .*|(?<=duration_ms).*|\(\d+\.\d+ms\)")


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


TRIALS = {
    "plain": ({"test_a.py": TESTS}, PYTEST, 1),
    "quiet": ({"test_a.py": TESTS}, f"{PYTEST} -q", 1),
    "isolated": ({"test_a.py": TESTS}, PYTEST.replace(" -m", " -I -m"), 1),
    "path": (
        {"src/m.py": "", "test_a.py": f"import m\n{TESTS}"},
        f"PYTHONPATH=src {PYTEST}",
        1,
    ),
    "xdist": ({"test_a.py": "def test_bad():\n    assert 0\n"}, f"{PYTEST} -q -n 2", 1),
    "no report": ({"test_a.py": TESTS, "run.sh": UNREPORTED}, "sh run.sh", 2),
    "no report, passes": ({"test_a.py": PASSES, "run.sh": UNREPORTED}, "sh run.sh", 2),
    "no report, says nothing": (
        {"test_a.py": PASSES, "run.sh": UNREPORTED},
        "sh run.sh 2>/dev/null",
        2,
    ),
    "no report, by the command": ({"test_a.py": TESTS}, f"{PYTEST} -p no:junitxml", 1),
    "its own": ({"test_a.py": TESTS}, f"{PYTEST} --junitxml=own.xml", 1),
    "its own, in an ini": (
        {"test_a.py": TESTS, "pytest.ini": "[pytest]\naddopts = --junit-xml=own.xml\n"},
        f"{PYTEST}; test -f own.xml && exit 7",
        1,
    ),
    "twice": (
        {"test_a.py": TESTS, "test_b.py": TESTS},
        f"{PYTEST} test_a.py; {PYTEST} test_b.py",
        1,
    ),
    "inside a test": ({"test_a.py": OUTER.format("", 0), "inner.py": TESTS}, PYTEST, 1),
    "inside a test that reads all": (
        {"test_a.py": OUTER.format(" and 'generated' not in said", 1), "inner.py": TESTS},
        PYTEST,
        2,
    ),
    "pytester": (
        {
            "conftest.py": "pytest_plugins = 'pytester'\n",
            "test_a.py": "def test_inner(pytester):\n"
            "    pytester.makepyfile('def test(): assert 0')\n"
            "    assert 'xml' not in str(pytester.runpytest_subprocess().stdout)\n"
            "def test_bad():\n    assert 0\n",
        },
        PYTEST,
        1,
    ),
    "make": ({"test_a.py": TESTS, "Makefile": f"test:\n\t{PYTEST}\n"}, "make test", 1),
    "unittest": (
        {
            "test_a.py": "import unittest\n\nclass A(unittest.TestCase):\n"
            "    def test(self):\n        self.assertEqual(1, 2)\n"
        },
        f"{sys.executable} -m unittest",
        1,
    ),
    "failures do not count": ({"test_a.py": TESTS}, f"{PYTEST} || true", 1),
    "broken": ({"test_a.py": TESTS, "conftest.py": "import nothing_here\n"}, PYTEST, 2),
    "no test": ({"a.c": ""}, "echo 'a.c:1:1: error: no'; exit 3", 1),
}


@pytest.mark.parametrize("trial", TRIALS)
def test_asking_leaves_exit_code_output_and_files_as_they_are(tmp_path: Path, trial: str) -> None:
    files, line, expected_runs = TRIALS[trial]
    plain, plain_output, plain_files, _ = run(tmp_path / "it", files, line, asks=False)
    asked, output, names, runs = run(tmp_path / "it", files, line)
    assert (asked.exit_code, output, names) == (plain.exit_code, plain_output, plain_files)
    assert runs == expected_runs
    failed = [found.test_id for found in plain.findings]
    # Only a report tells of failures that a command hides.
    hidden = ["test_a.py::test_bad"] if trial == "failures do not count" else []
    assert [found.test_id for found in asked.findings] == failed + hidden
    assert asked.passed == (plain.passed and not hidden)


def raw_reports(tmp_path: Path, files: Mapping[str, str], line: str) -> list[str]:
    """Run a line as it is asked; give its reports."""
    write(tmp_path / "tree", files)
    with ask_for_reports(tmp_path, PATH, frozenset(Tool)) as asked:
        given = {**PATH, **asked.variables({})}
        argv = ("/bin/sh", "-c", line)
        subprocess.run(argv, cwd=tmp_path / "tree", env=given, capture_output=True, check=False)
        reports = [report.decode() for report in asked.collect()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree"]
    return reports


def reports_of(tmp_path: Path, files: Mapping[str, str], line: str) -> list[str]:
    """Give the names of the tests in each report."""
    reports = raw_reports(tmp_path, files, line)
    return [" ".join(re.findall(r'<testcase [^>]*?\bname="([^"]*)"', each)) for each in reports]


def test_two_runs_of_pytest_do_not_overwrite_each_other(tmp_path: Path) -> None:
    files = {"test_a.py": "def test_a(): pass", "test_b.py": "def test_b(): assert 0"}
    line = f"{PYTEST} test_a.py; TOX_ENV_NAME=b {PYTEST} test_b.py; {PYTEST} test_b.py"
    assert reports_of(tmp_path, files, line) == ["test_a", "test_b", "test_b"]


def test_a_pytest_that_a_test_runs_is_not_the_checks(tmp_path: Path) -> None:
    files = {"test_a.py": OUTER.format("", 1), "inner.py": TESTS}
    assert reports_of(tmp_path, files, PYTEST) == ["test_outer test_bad"]


def test_a_run_within_another_one_of_its_name_does_not_count() -> None:
    outer, inner = Report("r", 10, 20, b"outer"), Report("r", 12, 15, b"inner")
    after, beside = Report("r", 21, 22, b"after"), Report("other", 12, 15, b"beside")
    assert [*outermost((inner, outer, after, beside))] == [outer, after, beside]


def test_what_is_not_a_file_or_too_much_is_not_read(tmp_path: Path) -> None:
    lines = "; ".join(
        (
            "cd reports; ln -s /etc/passwd link; mkfifo pipe; mkdir directory",
            f"head -c {LARGEST_REPORT + 1} /dev/zero > large; echo fine > fine",
        )
    )
    with ask_for_reports(tmp_path, PATH, NO_TOOL) as asked:
        subprocess.run(("sh", "-c", lines), cwd=tmp_path, check=True)
        assert asked.collect() == (b"fine\n",)
    with ask_for_reports(tmp_path, PATH, NO_TOOL) as asked:
        many = f"cd reports; for n in $(seq {MAX_REPORTS + 5}); do echo $n > $n; done"
        subprocess.run(("sh", "-c", many), cwd=tmp_path, check=True)
        assert len(asked.collect()) == MAX_REPORTS


def test_options_of_the_operator_stay(tmp_path: Path) -> None:
    own = {"PYTEST_ADDOPTS": "--maxfail=1", "TOX_OVERRIDE": "own"}
    verifier = replace(VERIFIER, network=OperatorNetwork(variables=own))
    line = f'echo "$TOX_OVERRIDE"; {PYTEST} -q'
    files = {"test_a.py": TESTS + TESTS.replace("bad", "worse")}
    result, output, _, _ = run(tmp_path / "it", files, line, verifier=verifier)
    assert output.startswith("own\n")
    assert "stopping after 1 failures" in output
    assert [found.test_id for found in result.findings] == ["test_a.py::test_bad"]


PYTEST_ONLY, NODE_ONLY = frozenset({Tool.PYTEST}), frozenset({Tool.NODE})


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("pytest.ini", "[pytest]\naddopts = --junitxml=x.xml", NO_TOOL),
        ("packages/a/pyproject.toml", "addopts = ['--junit-xml', 'x.xml']", NO_TOOL),
        ("setup.cfg", "[tool:pytest]\njunit_family = xunit2", PYTEST_ONLY),
        ("README.md", "pytest --junitxml=x.xml; node --test", PYTEST_ONLY),
        ("node_modules/a/tox.ini", "--junitxml", PYTEST_ONLY),
        ("packages/a/package.json", '{"scripts": {"test": "node --test"}}', frozenset(Tool)),
        ("package.json", '{"scripts": {"test": "c8 tsx --no-warnings --test x"}}', frozenset(Tool)),
        ("package.json", '{"scripts": {"test": "node --test-only"}}', PYTEST_ONLY),
        ("package.json", '{"scripts": {"test": "node lint.js && jest --test"}}', PYTEST_ONLY),
        ("package.json", '{"scripts": {"test": "node --test --test-reporter=tap"}}', PYTEST_ONLY),
        ("node_modules/a/package.json", '{"scripts": {"test": "node --test"}}', PYTEST_ONLY),
    ],
)
def test_only_a_tool_whose_start_shows_no_report_is_asked(
    tmp_path: Path, name: str, content: str, expected: frozenset[Tool]
) -> None:
    write(tmp_path, {name: content})
    plan = plan_reports(tmp_path, "make test")
    assert (plan.tools, plan.writes_own) == (expected, Tool.PYTEST not in expected)


@pytest.mark.parametrize(
    ("command", "tools", "writes_own"),
    [
        ("pytest", PYTEST_ONLY, False),
        ("pytest --junitxml=x.xml", frozenset[Tool](), True),
        ("cd a && node --test", frozenset(Tool), False),
        ("node --test --test-reporter dot", PYTEST_ONLY, False),
    ],
)
def test_the_command_of_a_check_says_what_is_asked(
    tmp_path: Path, command: str, tools: frozenset[Tool], *, writes_own: bool
) -> None:
    plan = plan_reports(tmp_path, command)
    assert (plan.tools, plan.writes_own) == (tools, writes_own)


# Node's test runner

NODE = pytest.mark.skipif(not shutil.which("node"), reason="node is not there")

PACKAGE = '{"scripts": {"test": "node --test"}}'
SCRIPT = """\
const { test, describe, it } = require('node:test');
const assert = require('node:assert');
console.log('options:', process.env.NODE_OPTIONS);
test('ok', () => {});
describe('cart', () => {
  it('adds', () => { assert.strictEqual(1, 2); });
  it('waits', { skip: 'no db' }, () => {});
  it('plans', { todo: true }, () => { throw new Error('later'); });
});
test('sums', async (t) => {
  await t.test('<1> & "2"', () => { throw 'three \\u0001\\x1b[31m'; });
});
"""
PASSING = "const { test } = require('node:test'); test('ok', () => { console.log('in it'); });\n"
STARTS_NODE = """\
const { test } = require('node:test');
const { spawnSync } = require('node:child_process');
test('outer', () => {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const inner = spawnSync('node', ['--test', 'inner.js'], { env, encoding: 'utf8' });
  require('node:assert').ok(inner.stdout.includes('three'), inner.stdout);
});
"""
OWN_REPORTER = """\
const { spawnSync } = require('node:child_process');
const line = ['--test', '--test-reporter=spec'];
process.exit(spawnSync('node', line, { stdio: 'inherit' }).status);
"""
WORKER = """\
const { Worker } = require('node:worker_threads');
new Worker('process.exitCode = 3', { eval: true, env: { ...process.env } })
  .on('error', console.log).on('exit', (code) => console.log('exit', code));
"""
OLD_NODE = """\
case "$NODE_OPTIONS" in *--test-reporter*)
  echo 'node: --test-reporter= is not allowed in NODE_OPTIONS' >&2; exit 9;;
esac
echo not ok 1 - old; exit 1
"""
NODE_TRIALS = {
    "plain": ({"a.test.js": SCRIPT, "b.test.js": PASSING}, "node --test", 1),
    "a script": ({"a.test.js": SCRIPT}, "npm test", 1),
    "passes": ({"a.test.js": PASSING}, "node --test", 1),
    "breaks": ({"a.test.js": "throw new Error('at once');", "b.test.js": PASSING}, "npm test", 1),
    "exits": ({"a.test.js": PASSING + "process.exit(5);"}, "node --test", 1),
    "only": ({"a.test.js": SCRIPT}, "node --test --test-only", 1),
    "coverage": ({"a.test.js": PASSING}, "node --test --experimental-test-coverage", 1),
    "direct": ({"a.js": PASSING}, "node a.js", 1),
    "direct, exits": (
        {"a.js": f"{PASSING}process.on('exit', (c) => console.log(c));"},
        "node a.js",
        1,
    ),
    "direct, coverage": ({"a.js": PASSING}, "node --experimental-test-coverage a.js", 1),
    "a test starts node": ({"a.test.js": STARTS_NODE, "inner.js": SCRIPT}, "node --test", 1),
    "a worker": ({"a.js": WORKER}, "node a.js; exit 1", 1),
    "another program": ({"a.js": "console.log('a.js:1:1: error no')"}, "node a.js; exit 1", 1),
    "options of its own": ({"a.test.js": SCRIPT}, "NODE_OPTIONS=--no-warnings node --test", 1),
    "a reporter in a program": ({"a.test.js": SCRIPT, "run.js": OWN_REPORTER}, "node run.js", 2),
    "an old node": ({"node": OLD_NODE}, "sh node 2>&1", 2),
    "an old node that says nothing": ({"node": OLD_NODE}, "sh node 2>/dev/null", 2),
    "an old node in a script": ({"node": OLD_NODE}, "sh node || exit 3", 2),
}


@NODE
@pytest.mark.parametrize("trial", NODE_TRIALS)
def test_asking_node_leaves_exit_code_output_and_files_as_they_are(
    tmp_path: Path, trial: str
) -> None:
    added, line, expected_runs = NODE_TRIALS[trial]
    files = {"package.json": PACKAGE, **added}
    plain, plain_output, plain_files, _ = run(tmp_path / "it", files, line, asks=False)
    asked, output, names, runs = run(tmp_path / "it", files, line)
    assert (asked.exit_code, output, names) == (plain.exit_code, plain_output, plain_files)
    assert runs == expected_runs


ASSERTION = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal"
THREE = '<failure message="three "></failure>'


@NODE
def test_a_report_of_node_has_each_test_with_its_suites_and_place(tmp_path: Path) -> None:
    (report,) = raw_reports(tmp_path, {"a.test.js": SCRIPT}, "node --test")
    cases = report.replace(str(tmp_path / "tree/"), "").split("<testcase ")[1:]
    starts = [re.sub(r' time="[^"]*"', "", case).partition("&#10;")[0] for case in cases]
    starts = [start.partition("\n")[0] for start in starts]
    file = 'file="/a.test.js"'
    assert starts == [
        f'name="ok" {file} line="4"></testcase>',
        f'name="cart › adds" {file} line="6"><failure message="{ASSERTION}:',
        f'name="cart › waits" {file} line="7"><skipped type="skip" message="no db"/></testcase>',
        f'name="cart › plans" {file} line="8"><skipped type="todo" message=""/></testcase>',
        f'name="sums › &lt;1&gt; &amp; &quot;2&quot;" {file} line="11">{THREE}</testcase>',
    ]
    assert "1 !== 2" in report
    assert "a.test.js:6:" in report


@NODE
def test_a_node_that_a_test_starts_is_not_the_checks(tmp_path: Path) -> None:
    files = {"a.test.js": STARTS_NODE, "inner.js": SCRIPT}
    assert reports_of(tmp_path, files, "node --test a.test.js") == ["outer"]


@NODE
def test_a_run_of_node_beside_a_longer_one_counts(tmp_path: Path) -> None:
    slow = PASSING + "test('waits', () => new Promise((end) => setTimeout(end, 1500)));"
    files = {"slow.js": slow, "b.js": PASSING.replace("'ok'", "'fine'")}
    line = "node --test slow.js & sleep 0.3; node --test b.js; wait"
    assert reports_of(tmp_path, files, line) == ["fine", "ok waits"]


@NODE
def test_options_of_the_operator_for_node_stay(tmp_path: Path) -> None:
    own = {"NODE_OPTIONS": "--no-warnings"}
    verifier = replace(VERIFIER, network=OperatorNetwork(variables=own))
    files = {"a.test.js": SCRIPT.replace("throw new Error('later');", "")}
    result, output, _, _ = run(tmp_path / "it", files, "node --test", verifier=verifier)
    assert "options: --no-warnings\n" in output
    names = [found.test_id for found in result.findings]
    assert names == ["a.test.js › cart › adds", 'a.test.js › sums › <1> & "2"']


# What a check left by itself

SUREFIRE = (
    '<testsuite name="CartTest" tests="1" failures="1"><testcase name="adds"'
    ' classname="com.x.CartTest"><failure message="expected: 2">at CartTest.java:7</failure>'
    "</testcase></testsuite>"
)


def test_a_check_of_a_build_tool_has_the_names_of_its_report(tmp_path: Path) -> None:
    directory = "target/surefire-reports"
    line = f"mkdir -p {directory}; echo '{SUREFIRE}' > {directory}/TEST-CartTest.xml; exit 1"
    result, _, _, _ = run(tmp_path / "it", {}, line)
    assert [found.test_id for found in result.findings] == ["com.x.CartTest::adds"]


@pytest.mark.skipif(not shutil.which("ctest"), reason="ctest is not there")
def test_a_check_of_ctest_has_the_names_of_its_log(tmp_path: Path) -> None:
    files = {"build/CTestTestfile.cmake": 'add_test("so bad" sh "-c" "exit 1")\n'}
    result, _, _, _ = run(tmp_path / "it", files, "cd build && ctest -Q")
    assert [found.test_id for found in result.findings] == ["[build] so bad"]


@pytest.mark.parametrize(
    ("files", "option", "expected"),
    [
        ({"pytest.ini": "[pytest]\naddopts = --junit-xml=build/own.xml\n"}, "", "test_a"),
        ({}, " --junitxml=build/own.xml", "test_a"),
    ],
)
def test_the_report_that_a_project_sets_is_read(
    tmp_path: Path, files: dict[str, str], option: str, expected: str
) -> None:
    line = f"{PYTEST}{option} >/dev/null"
    result, _, names, runs = run(tmp_path / "it", {"test_a.py": TESTS, **files}, line)
    assert [found.test_id for found in result.findings] == [f"{expected}::test_bad"]
    assert ([name for name in names if name.endswith(".xml")], runs) == (["tree/build/own.xml"], 1)


def test_a_run_that_is_repeated_has_the_reports_that_it_left(tmp_path: Path) -> None:
    directory = "target/surefire-reports"
    line = f"mkdir -p {directory}; echo '{SUREFIRE}' > {directory}/TEST-CartTest.xml"
    line += "; echo $PYTEST_ADDOPTS; exit 1"
    result, _, _, runs = run(tmp_path / "it", {}, line)
    assert ([found.test_id for found in result.findings], runs) == (["com.x.CartTest::adds"], 2)


LONG_ID = "x" * 80


def goal(expected: int) -> dict[str, str]:
    """Return a test that always fails, and one with a long id that must get fixed."""
    return {
        "test_a.py": "import pytest\n\ndef test_old():\n    assert 'a' == 'old'\n\n"
        f"@pytest.mark.parametrize('v', ['{LONG_ID}'])\n"
        f"def test_goal(v):\n    assert 1 == {expected}\n"
    }


def test_a_right_change_passes_beside_a_test_with_a_long_id(tmp_path: Path) -> None:
    base = [run(tmp_path / "it", goal(2), PYTEST)[0] for _ in range(2)]
    before = VERIFIER.merge_baseline_runs(*base)
    assert [found.line for found in before.findings] == [4, 8]
    change, _, _, _ = run(tmp_path / "it", goal(1), PYTEST)
    judged = VERIFIER.subtract_baseline(change, before, ["test_a.py"])
    assert (judged.preexisting, judged.findings) == (True, ())


def confined(*readable: Path) -> CommandVerifier:
    walls = sandbox()
    read = (*walls.common.read, Path(sys.prefix), Path(sys.base_prefix), *readable)
    return CommandVerifier(PATH, replace(walls, common=replace(walls.common, read=read)))


def test_a_confined_check_is_asked_too(tmp_path: Path) -> None:
    result, output, names, _ = run(tmp_path / "it", goal(2), PYTEST, verifier=confined())
    assert (result.exit_code, [found.line for found in result.findings]) == (1, [4, 8]), output
    assert [name for name in names if "reports" in name] == []


@NODE
def test_a_confined_check_of_node_is_asked_too(tmp_path: Path) -> None:
    program = Path(shutil.which("node") or "").resolve()
    files = {"package.json": PACKAGE, "a.test.js": SCRIPT}
    line = f"{program} --test >/dev/null"
    verifier = confined(program.parent)
    result, output, names, _ = run(tmp_path / "it", files, line, verifier=verifier)
    assert [found.line for found in result.findings] == [6, 11], output
    assert [name for name in names if "reports" in name] == []


def test_a_directory_of_reports_that_the_check_removes_does_no_harm(tmp_path: Path) -> None:
    place = tmp_path / "it/private/reports"
    result, _, _, _ = run(tmp_path / "it", {}, f"rm -rf {place}; exit 3")
    assert result.exit_code == 3
