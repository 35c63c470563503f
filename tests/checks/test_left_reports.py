"""Reports that tools leave in the tree without being asked are read, and no others."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mulligan.checks.ctest_log import Lists, as_junit
from mulligan.checks.digest.reports import read_report
from mulligan.checks.left_reports import left_reports
from world.tools import write_files

SINCE = 2 * 10**9
OLD = (1, 1)


def left(tree: Path, *, everywhere: bool = False) -> list[bytes]:
    return sorted(left_reports(tree, SINCE, everywhere=everywhere))


def test_reports_that_build_tools_wrote_in_this_run_are_read(tmp_path: Path) -> None:
    places = (
        "target/surefire-reports/TEST-a.xml",
        "m/target/failsafe-reports/TEST-b.xml",
        "m/build/test-results/test/TEST-c.xml",
    )
    others = ("target/surefire-reports/a.txt", "target/TEST-d.xml", "old/build/test-results/o.xml")
    write_files(tmp_path, {name: name for name in (*places, *others)})
    write_files(tmp_path, {"old/target/surefire-reports/TEST-e.xml": "old"})
    os.utime(tmp_path / "old/target/surefire-reports/TEST-e.xml", OLD)
    assert left(tmp_path) == sorted(name.encode() for name in places)


# A project's own

REPORT = '<testsuite name="{0}" time="{1}"><testcase name="{0}"/></testsuite>'


def at(path: Path, seconds: float) -> None:
    os.utime(path, (10 + seconds, 10 + seconds))


@pytest.mark.parametrize(
    "beginning",
    [
        "",
        "\ufeff",
        '<?xml version="1.0" encoding="utf-8"?>',
        "<?xml version='1.0'?>\n<!-- by > a -- tool -->\n\n",
        "<testsuites>",
        "<testsuites\n name='x'>",
    ],
)
def test_junit_xml_anywhere_is_read_if_the_project_sets_one(tmp_path: Path, beginning: str) -> None:
    content = beginning + REPORT.format("a", 1)
    write_files(tmp_path, {"out/own.xml": content})
    assert left(tmp_path) == []
    assert left(tmp_path, everywhere=True) == [content.encode()]


def test_other_files_of_xml_are_not_read(tmp_path: Path) -> None:
    report = REPORT.format("a", 1)
    others = {
        "coverage.xml": f"<coverage>{report}</coverage>",
        "comment.xml": f"<!-- {report}",
        "suite.xml": "<testsuiteX/>",
        "report.txt": report,
        "node_modules/a/report.xml": report,
        "old.xml": report,
    }
    write_files(tmp_path, others)
    os.utime(tmp_path / "old.xml", OLD)
    (tmp_path / "link.xml").symlink_to("report.txt")
    assert left(tmp_path, everywhere=True) == []


def test_a_report_that_a_test_wrote_meanwhile_is_not_the_projects(tmp_path: Path) -> None:
    own, sample, after = (REPORT.format(*each) for each in (("own", 8), ("s", 1), ("after", 1)))
    write_files(tmp_path, {"own.xml": own, "tests/sample.xml": sample, "after.xml": after})
    for name, seconds in (("own.xml", 9), ("tests/sample.xml", 5), ("after.xml", 11)):
        at(tmp_path / name, seconds)
    assert left(tmp_path, everywhere=True) == [after.encode(), own.encode()]


def test_a_report_of_a_build_tool_counts_once(tmp_path: Path) -> None:
    content = REPORT.format("a", 1)
    write_files(tmp_path, {"target/surefire-reports/TEST-a.xml": content})
    assert left(tmp_path, everywhere=True) == [content.encode()]


# ctest

SAMPLE = Path(__file__).parents[1] / "fixtures" / "ctest"
"""What ctest 3.25.1 left of the tests in `CTestTestfile.cmake` there."""


def outcomes(report: bytes) -> dict[str, str]:
    """Give how each test of a report ended."""
    found = re.findall(r'<testcase name="([^"]*)"[^>]*>(?:<(\w+))?', report.decode())
    return {name: outcome or "passed" for name, outcome in found}


EXPECTED = {
    "[b] passes": "passed",
    "[b] fails": "failure",
    "[b] slow": "failure",
    "[b] missing": "failure",
    "[b] skipped": "skipped",
    "[b] says that it skips": "skipped",
    "[b] will_fail": "passed",
    "[b] will_not_fail": "failure",
    "[b] disabled": "skipped",
    "[b] crashes": "failure",
    "[b] named &quot;so&quot;": "failure",
    "[b] says an error": "failure",
    "[b] lacks a word": "failure",
    "[b] bytes": "failure",
    "[b] no line end": "failure",
    "[b] a log in the output": "failure",
    "[b] two lines": "failure",
    "[b] fixture": "failure",
    "[b] needs the fixture": "failure",
    "[b] no directory": "failure",
    "[b] no file": "failure",
}


def sample(suite: str = "b") -> bytes:
    names = ("LastTest.log", "CTestCostData.txt", "LastTestsDisabled.log")
    log, costs, disabled = ((SAMPLE / name).read_bytes() for name in names)
    return as_junit(log, Lists.read(costs, disabled), suite)


def test_the_log_of_ctest_says_how_each_test_ended() -> None:
    assert outcomes(sample()) == EXPECTED


def test_a_failed_test_of_ctest_has_its_reason_and_output() -> None:
    messages = {
        found.finding.test_id: found.finding.message for found in read_report(sample()).found
    }
    assert messages["[b] fails"] == "a.c:3: expected 1, got 2"
    assert messages["[b] slow"] == "begins"
    assert messages["[b] missing"].startswith(
        "Not Run\nUnable to find executable: /no/such/program"
    )
    assert messages["[b] no directory"].startswith("Not Run\nFailed to change working directory")
    assert messages["[b] no file"] == "Not Run\nUnable to find required file: /no/such/file"
    assert messages["[b] needs the fixture"] == "Not Run\nFailed test dependencies: fixture"
    assert messages["[b] crashes"] == "Failed"
    assert messages["[b] says an error"].startswith("Error regular expression found in output.")
    assert messages["[b] bytes"] == "caf\ufffd red\n\ufffd\ufffd"
    assert "[b] inner" not in messages
    assert "[b] inner 2" not in messages


def test_a_long_output_has_the_lines_that_tell_first() -> None:
    output = [*(f"step {n}" for n in range(1000)), "a.c:7: Failure: it broke", *["fine"] * 1000]
    log = (SAMPLE / "LastTest.log").read_text(errors="replace")
    changed = log.replace("a.c:3: expected 1, got 2", "\n".join(output), 2).encode()
    report = as_junit(changed, Lists(), "b")
    failed = next(
        found for found in read_report(report).found if found.finding.test_id == "[b] fails"
    )
    assert "step 500" not in report.decode()
    assert (failed.finding.file, failed.finding.line) == ("a.c", 7)


@pytest.mark.parametrize(
    "end", ["", "Output:\n", "<end of output>\n", "<end of output>\nno time\n"]
)
def test_a_log_that_ends_in_a_test_has_the_others(end: str) -> None:
    log = (SAMPLE / "LastTest.log").read_bytes()
    first = log[: log.index(b"2/")]
    cut = f'2/21 Testing: x\n2/21 Test: x\nCommand: "x"\nDirectory: /\n"x" start time: \n{end}'
    assert outcomes(as_junit(first + cut.encode(), Lists(), "b")) == {"[b] passes": "passed"}
    assert as_junit(b"", Lists(), "b") == as_junit(b"\n" * 9, Lists(), "b") == b""


def block(number: str, name: str, output: str, verdict: str) -> str:
    """Give a test as ctest writes it into its log."""
    return (
        f'{number} Testing: {name}\n{number} Test: {name}\nCommand: "x"\nDirectory: /\n'
        f'"{name}" start time: Nov 27 00:07 UTC\nOutput:\n----\n{output}<end of output>\n'
        f"Test time =   0.00 sec\n----\n{verdict}\n"
        f'"{name}" end time: Nov 27 00:07 UTC\n"{name}" time elapsed: 00:00:00\n----\n\n'
    )


def test_a_log_of_a_test_of_the_same_name_adds_no_test() -> None:
    inner = block("1/2", "a", "", "Test Passed.") + block("2/2", "z", "", "Test Failed.")
    log = block("1/1", "a", inner, "Test Failed.")
    failed = Lists.read(b"a 0 0\n---\na\n", b"")
    assert outcomes(as_junit(log.encode(), failed, "b")) == {"[b] a": "failure"}


CTEST = pytest.mark.skipif(not shutil.which("ctest"), reason="ctest is not there")


def write_tests(build: Path, **lines: str) -> None:
    """Write a build directory with tests, each of which runs a line of shell."""
    added = (f'add_test({name} "sh" "-c" [==[{line}]==])\n' for name, line in lines.items())
    write_files(build, {"CTestTestfile.cmake": "".join(added)})


def ctest(build: Path, *options: str) -> None:
    subprocess.run(("ctest", *options), cwd=build, capture_output=True, check=False)


def of_ctest(tree: Path) -> list[dict[str, str]]:
    return [outcomes(report) for report in left(tree)]


@CTEST
@pytest.mark.parametrize("options", [(), ("-j2",), ("-T", "Test"), ("-Q",), ("-V",)])
def test_the_tests_of_the_sample_end_as_they_did(tmp_path: Path, options: tuple[str, ...]) -> None:
    shutil.copy(SAMPLE / "CTestTestfile.cmake", tmp_path)
    shutil.copy(SAMPLE / "inner.log", tmp_path)
    ctest(tmp_path, *options)
    (found,) = of_ctest(tmp_path)
    assert {name.replace("[.]", "[b]"): outcome for name, outcome in found.items()} == EXPECTED


@CTEST
def test_two_builds_are_told_apart(tmp_path: Path) -> None:
    for build, code in (("a/build", 1), ("b", 0)):
        write_tests(tmp_path / build, same=f"exit {code}")
        ctest(tmp_path / build)
    assert of_ctest(tmp_path) == [{"[a/build] same": "failure"}, {"[b] same": "passed"}]


@CTEST
def test_a_ctest_that_a_test_starts_in_its_build_does_not_count(tmp_path: Path) -> None:
    write_tests(tmp_path / "b/inner", bad="exit 1")
    write_tests(tmp_path / "b", outer="cd inner; ctest; exit 0", bad="exit 1")
    ctest(tmp_path / "b")
    assert of_ctest(tmp_path) == [{"[b] outer": "passed", "[b] bad": "failure"}]


@CTEST
def test_of_a_test_that_is_repeated_the_last_run_counts(tmp_path: Path) -> None:
    write_tests(tmp_path / "b", flaky="test -f seen || { touch seen; exit 1; }", bad="exit 1")
    ctest(tmp_path / "b", "--repeat", "until-pass:3")
    assert of_ctest(tmp_path) == [{"[b] flaky": "passed", "[b] bad": "failure"}]
    ctest(tmp_path / "b", "--rerun-failed")
    assert of_ctest(tmp_path) == [{"[b] bad": "failure"}]


@CTEST
def test_a_run_without_a_failure_does_not_have_those_of_an_earlier_one(tmp_path: Path) -> None:
    write_tests(tmp_path / "b", flaky="test -f seen || { touch seen; exit 1; }")
    ctest(tmp_path / "b")
    assert of_ctest(tmp_path) == [{"[b] flaky": "failure"}]
    ctest(tmp_path / "b")
    assert of_ctest(tmp_path) == [{"[b] flaky": "passed"}]
    os.utime(tmp_path / "b/Testing/Temporary/LastTest.log", OLD)
    assert of_ctest(tmp_path) == []


@CTEST
def test_a_test_that_was_skipped_before_this_check_is_not_skipped_now(tmp_path: Path) -> None:
    write_tests(tmp_path / "b", late="test -f seen || { touch seen; exit 77; }")
    with (tmp_path / "b/CTestTestfile.cmake").open("a") as tests:
        tests.write("set_tests_properties(late PROPERTIES SKIP_RETURN_CODE 77)\n")
    ctest(tmp_path / "b")
    assert of_ctest(tmp_path) == [{"[b] late": "skipped"}]
    ctest(tmp_path / "b")
    os.utime(tmp_path / "b/Testing/Temporary/LastTestsDisabled.log", OLD)
    assert of_ctest(tmp_path) == [{"[b] late": "passed"}]
