"""Reports of several packages, whose tests have the same names, are told apart (CHECK-6)."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from mulligan.checks.compare import subtract_baseline
from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Check
from mulligan.domain.result import CheckKind, CheckResult
from world.trees import plain_worktree

VERIFIER = CommandVerifier({"PATH": os.environ["PATH"]})
PYTEST = f"{sys.executable} -m pytest -p no:randomly -p no:cacheprovider"
NODE = shutil.which("node")
FAILS, PASSES = "1 == 2", "1 == 1"


def in_packages(test: str, file: str, *failing: str) -> dict[str, str]:
    return {
        f"packages/{name}/{file}": test.replace("{}", FAILS if name in failing else PASSES)
        for name in ("a", "b")
    }


def in_each(command: str) -> str:
    """Run a command in each package, and fail at the end if it failed in one."""
    parts = "; ".join(f"(cd packages/{name} && {command}) || r=1" for name in ("a", "b"))
    return f"r=0; {parts}; exit $r"


def run(root: Path, files: Mapping[str, str], line: str, report: str | None = None) -> CheckResult:
    subprocess.run(("rm", "-rf", root), check=True)
    tree = plain_worktree(root)
    for name, content in files.items():
        (tree.path / name).parent.mkdir(parents=True, exist_ok=True)
        (tree.path / name).write_text(content)
    timeout = timedelta(seconds=25)
    check = Check(name="it", run=line, kind=CheckKind.TEST, timeout=timeout, report=report)
    return VERIFIER.check(check, tree, tree.private / "check.log", lambda: None)


PY_TEST = "def test_discount():\n    assert {}\n\n\ndef test_other():\n    pass\n"
NODE_TEST = (
    "import test from 'node:test'; import assert from 'node:assert';\n"
    "test('discount', () => { assert.ok({}); });\n"
)
JUNIT = f"{PYTEST} -q --junitxml=report.xml"
TOOLS = {
    "pytest": (PY_TEST, "tests/test_cart.py", in_each(JUNIT), "packages/*/report.xml"),
    "pytest, any depth": (PY_TEST, "tests/test_cart.py", in_each(JUNIT), "**/report.xml"),
    "pytest, together": (
        PY_TEST,
        "tests/test_cart.py",
        in_each(f"{PYTEST} -q --junitxml=../../reports/$(basename $PWD).xml"),
        "reports/*.xml",
    ),
    "node": (NODE_TEST, "test/cart.test.mjs", in_each("node --test"), None),
}


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(each, marks=pytest.mark.skipif(each == "node" and not NODE, reason="no node"))
        for each in TOOLS
    ],
)
def test_a_failing_test_of_one_package_excuses_none_of_another(tmp_path: Path, tool: str) -> None:
    test, file, line, report = TOOLS[tool]

    def result(*failing: str) -> tuple[CheckResult, dict[str, str]]:
        files = in_packages(test, file, *failing)
        return run(tmp_path / "x", files, line, report), files

    (base, files), (other, _), (both, _) = result("a"), result("b"), result("a", "b")
    if tool == "pytest, together":
        # Such a report has no directory of its package.
        assert (base.findings[0].test_id or "").startswith("[reports/a] ")
    else:
        assert [found.file for found in base.findings] == [f"packages/a/{file}"]
        assert base.source[0].file == f"packages/a/{file}"
    assert subtract_baseline(base, base, files).preexisting
    assert not subtract_baseline(other, base, files).known
    left = subtract_baseline(both, base, files)
    assert [found.test_id for found in left.known] == [found.test_id for found in base.findings]
    assert [found.test_id for found in left.findings] == [found.test_id for found in other.findings]
    assert base.tests is not None
    assert len({*base.tests.ran}) == len(base.tests.ran)


def test_a_report_that_the_run_did_not_write_does_not_count(tmp_path: Path) -> None:
    files = in_packages(PY_TEST, "tests/test_cart.py")
    old = (
        '<testsuites><testsuite><testcase name="old"><failure/></testcase></testsuite></testsuites>'
    )
    tree = {**files, "packages/c/report.xml": old}
    line = f"touch -d '2020-01-01' packages/c/report.xml; {in_each(JUNIT)}"
    result = run(tmp_path / "x", tree, line, "packages/*/report.xml")
    assert result.passed
    assert result.tests is not None
    assert {name.partition(" ")[0] for name in result.tests.ran} == {"[packages/a]", "[packages/b]"}


def test_a_package_of_json_reports_has_its_directory(tmp_path: Path) -> None:
    rows = [{"name": "discount", "status": "failed", "file": "cart.test.ts", "line": 3}]
    files = {"web/cart.test.ts": "\n" * 5, "write.py": f"print({json.dumps(json.dumps(rows))})"}
    line = f"{sys.executable} write.py > web/out.json; exit 1"
    (found,) = run(tmp_path / "x", files, line, "*/out.json").findings
    assert (found.file, found.line) == ("web/cart.test.ts", 3)
    assert (found.test_id or "").startswith("[web] ")


@pytest.mark.parametrize("report", ["../*/report.xml", "/srv/*.xml", "a//*.xml"])
def test_a_pattern_stays_inside_the_worktree(report: str) -> None:
    with pytest.raises(ValidationError):
        Check(name="it", run="x", report=report)
