"""Structured reports: read whatever their shape, joined with the output, never trusted too far."""

import json
from pathlib import Path

import pytest

from mulligan.checks.digest import digest
from mulligan.checks.digest.documents import BufferedOutput, documents
from mulligan.checks.digest.reports import LARGEST_REPORT, PackageReport, read_report
from mulligan.domain.result import RanTests

pytestmark = pytest.mark.pure

REPORTS = Path(__file__).parents[1] / "fixtures" / "digest_reports"
TOLD = {
    "ruff.json": ["/repo/src/a.py:1:8: F401 `os` imported but unused"],
    "eslint.json": [
        "/repo/src/a.js:3:5: no-undef 'x' is not defined",
        "/repo/src/a.js:9:2: semi Missing semicolon",
    ],
    "pyright.json": ['/repo/a.py:3:7: reportUndefinedVariable "nope" is not defined'],
    "cargo.jsonl": ["src/main.rs:2:18: E0308 mismatched types"],
    "mypy.jsonl": [
        "app/a.py:4:9: assignment Incompatible types",
        "app/a.py:5:9: assignment Incompatible types",
    ],
    "shellcheck.json": ["a.sh:2:10: SC2086 Quote"],
    "pylint.json": ["app/m.py:2:0: E0401 Unable to import 'x'"],
    "rubocop.json": ["lib/a.rb:4:7: Naming/MethodName Use snake_case"],
    "golangci.json": ["main.go:8:2: errcheck Error return value is not checked"],
    "gcc.json": ["a.cpp:2:12: 'x' was not declared"],
    "sarif.json": ["src/a.js:7:3: js/xss Unsafe text"],
    "jest.json": [
        "/repo/src/sum.test.js › sum › total › adds (/repo/src/sum.test.js:5:9)",
        "/repo/src/gone.test.js",
    ],
    "mocha.json": ["/repo/test/cart.js › cart adds (/repo/test/cart.js:4:8)"],
    "rspec.json": ["spec/cart_spec.rb › Cart adds (./spec/cart_spec.rb:9)"],
    "pytest_json.json": ["tests/test_a.py::test_x (tests/test_a.py:5)"],
    "pytest_reportlog.jsonl": ["tests/test_prices.py::test_total (tests/test_prices.py:6)"],
    "junit.xml": [
        "tests.test_a::test_x (tests/test_a.py:5)",
        "test/b.php › goes wrong (test/b.php:7)",
        "s::Cart total (cart.py:3)",
    ],
    "checkstyle.xml": ["src/A.java:2:5: MissingJavadoc Missing Javadoc"],
    "go.jsonl": ["example.com/a.TestSum/one (a_test.go:6)", "example.com/b (package) (b/b.go:3:9)"],
}


def report_of(name: str) -> bytes:
    return (REPORTS / name).read_bytes()


RUFF, GCC = report_of("ruff.json").decode(), report_of("gcc.json").decode()
JUNIT = report_of("junit.xml")


@pytest.mark.parametrize(("name", "told"), TOLD.items())
def test_a_report_is_read_whatever_its_shape(name: str, told: list[str]) -> None:
    assert [found.heading for found in read_report(report_of(name)).found] == told


def test_a_report_of_pytest_tells_the_values_as_pytest_prints_them() -> None:
    (found,) = read_report(report_of("pytest_reportlog.jsonl")).found
    assert found.finding.message.startswith("assert 3 == 4")
    assert "E       assert 3 == 4" in found.detail
    broken = '{"nodeid": "a.py::t", "outcome": "failed", "longrepr": {"reprentries": [{}, %s]}}'
    entries = '{"data": {"lines": 1, "reprfileloc": null}}', '{"data": {"lines": ["E   no"]}}'
    for entry, told in zip(entries, ("failed", "no"), strict=True):
        (found,) = read_report((broken % entry).encode()).found
        assert found.finding.message == told


@pytest.mark.parametrize(
    "report",
    [
        "",
        "no report at all",
        "{",
        '{"a": ',
        "[" * 100_000,
        '{"a": 1}\n{"b": 2}',
        "<testsuites><testcase",
        "<?xml version='1.0'?><html/>",
        '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><testsuites>&a;</testsuites>',
        '[{"message": "no place", "severity": "error"}]',
        '[{"message": "a file alone", "file": "a.py"}]',
        '[{"message": "x", "line": true, "file": 3}]',
        '{"Action": "fail"}',
        '{"runs": [{"results": []}]}',
        '{"status": "failed"}',
        '{"name": "x", "status": "passed"}',
        "[" + '{"a": [' * 30 + '{"message": "deep", "file": "a", "line": 1}' + "]}" * 30 + "]",
    ],
)
def test_what_is_no_report_says_nothing(report: str) -> None:
    assert read_report(report.encode()).found == ()


def test_suites_may_nest_without_end() -> None:
    case = "<testcase name='t'><failure message='m'/></testcase>"
    deep = f"<?xml version='1.0'?>{'<testsuite>' * 3000}{case}{'</testsuite>' * 3000}"
    assert read_report(deep.encode()).count == 1


def test_a_report_that_is_too_large_is_left_alone() -> None:
    report = RUFF.encode()
    assert read_report(report + b" " * (LARGEST_REPORT - len(report))).found
    assert not read_report(report + b" " * LARGEST_REPORT).found


def test_an_output_that_is_a_report_is_read_as_one() -> None:
    found = digest(f"warming up\n{RUFF}\ndone", exit_code=1)
    assert [finding.code for finding in found.findings] == ["F401"]
    assert found.findings[0].line == 1
    assert found.count == 1


def test_what_stands_beside_a_report_in_an_output_is_told_too() -> None:
    found = digest(RUFF + "src/b.py:3:5: error: other trouble [arg]\n", exit_code=1)
    assert [finding.file for finding in found.findings] == ["/repo/src/a.py", "src/b.py"]


def test_two_documents_in_one_output_are_both_read() -> None:
    found = digest(f"{RUFF}\n> next\n{GCC}\n", exit_code=1)
    assert [finding.file for finding in found.findings] == ["/repo/src/a.py", "a.cpp"]


def test_lines_that_only_look_like_json_do_not_hide_a_report_behind_them() -> None:
    log = "[ok] one step more\n{ that is no object }\n" * 1000
    told = digest(f"{log}{RUFF}", exit_code=1).text
    assert "F401 `os` imported but unused" in told


def test_an_output_too_long_for_a_report_keeps_nothing() -> None:
    kept = BufferedOutput(room=100)
    assert list(kept.passing([b"{" * 60, b"}" * 60])) == [b"{" * 60, b"}" * 60]
    assert kept.text == ""


def test_ordinary_output_is_not_kept() -> None:
    kept = BufferedOutput()
    assert list(kept.passing([b"plain", b"{}"]))
    assert kept.text == ""


OUTPUT = """\
=================================== FAILURES ===================================
____________________________________ test_x ____________________________________

    def test_x():
>       assert total() == 2
E       assert 1 == 2

tests/test_a.py:5: AssertionError
=========================== short test summary info ============================
FAILED tests/test_a.py::test_x - assert 1 == 2
1 failed, 1 passed in 0.1s
"""


def test_a_report_and_its_output_tell_one_failure_once() -> None:
    found = digest(OUTPUT, exit_code=1, report=JUNIT)
    ids = [finding.test_id for finding in found.findings]
    assert ids == ["tests/test_a.py::test_x", "test/b.php › goes wrong", "s::Cart total"]
    assert "> assert total() == 2" in found.text
    assert "1 failed, 1 passed" in found.text


def test_an_empty_report_leaves_the_output_to_speak() -> None:
    found = digest(OUTPUT, exit_code=1, report=b"<testsuites/>")
    assert [finding.test_id for finding in found.findings] == ["tests/test_a.py::test_x"]


def test_a_report_lends_its_message_to_a_name_alone() -> None:
    output = """\
tests/test_a.py::test_x FAILED
tests/test_a.py::test_y PASSED
src/own.c:3:1: error: beside it
"""
    found = digest(output, exit_code=1, report=JUNIT)
    assert found.findings[0].message == "assert 1 == 2"
    assert found.findings[0].line == 5
    assert found.findings[-1].file == "src/own.c"


def test_the_place_comes_from_the_output_where_the_report_has_none() -> None:
    report = (
        b'<testsuites><testcase name="adds"><failure message="5 != 6"/></testcase></testsuites>'
    )
    output = "not ok 3 - adds\n  ---\n  at: test/sum.js:4:9\n"
    found = digest(output, exit_code=1, report=report)
    assert (found.findings[0].file, found.findings[0].line) == ("test/sum.js", 4)
    assert found.findings[0].message == "5 != 6"
    assert len(found.findings) == 1
    assert "5 != 6" in found.text


def test_a_crash_beside_the_report_is_told_too() -> None:
    output = "KeyError: 'ada'\nSegmentation fault (core dumped)\n"
    found = digest(output, exit_code=139, report=JUNIT)
    assert [finding.message for finding in found.findings[3:]] == [
        "Segmentation fault (core dumped)"
    ]


def test_a_place_is_looked_for_a_few_levels_deep() -> None:
    row = '"message": "no", "severity": "error", "file": "a.c"'
    deep = '{"range": {"start": {"pos": {"loc": {"caret": {"line": 3}}}}}, ROW}'.replace("ROW", row)
    assert read_report(f"[{deep}]".encode()).found[0].heading == "a.c: no"


def test_numbers_may_be_written_as_text_and_broken_lines_are_left_out() -> None:
    row = '{"message": "no", "severity": "error", "file": "a.c", "line": "12", "column": "x"}'
    report = f"{row}\n{{broken}}\n{row.replace('a.c', 'b.c')}\n"
    assert [f.heading for f in read_report(report.encode()).found] == ["a.c:12: no", "b.c:12: no"]
    assert read_report(b'[{"message": "no file", "line": 3}]').found == ()


def test_a_complaint_of_report_and_output_is_told_once() -> None:
    output = "src/a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n"
    found = digest(output, exit_code=1, report=RUFF.encode())
    assert len(found.findings) == 1


def test_complaints_beyond_those_that_are_listed_are_counted() -> None:
    """Else a new one among them would pass as one of the base branch."""
    rows = [
        {"file": "a.py", "line": n, "message": f"bad {n}", "severity": "error"} for n in range(6000)
    ]
    found = digest(json.dumps(rows), exit_code=1)
    assert (len(found.findings), found.count) == (1000, 6000)


def test_text_that_only_begins_like_documents_is_read_once() -> None:
    assert documents("[\n" * 100) == []


PROPERTIES = b"""\
<testsuites><testsuite name="s"><properties><property name="a"/></properties>
<testcase classname="t" name="x"><failure message="boom"/></testcase></testsuite></testsuites>"""


def test_a_complaint_about_a_line_is_not_the_failed_test_of_the_report() -> None:
    found = digest("src/a.py:3:1: boom\n", exit_code=1, report=PROPERTIES).findings
    assert [(each.test_id, each.file) for each in found] == [("s::t x", None), (None, "src/a.py")]


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ('file="t/test_a.py" classname="t.test_a" name="test_x[1]"', "t/test_a.py::test_x[1]"),
        ('file="t/test_a.py" classname="t.test_a.A.B" name="test_x"', "t/test_a.py::A::B::test_x"),
        ('file="t/test_a.py" classname="" name="t.test_a"', "t/test_a.py"),
        ('file="base.py" classname="t.test_a.A" name="test_x"', "t.test_a.A::test_x"),
        ('file="a.js" classname="a.js" name="test_x"', "a.js::test_x"),
    ],
)
def test_a_report_of_pytest_has_its_names(case: str, name: str) -> None:
    report = f"<testsuite><testcase {case}><failure message='no'/></testcase></testsuite>"
    assert [each.finding.test_id for each in read_report(report.encode()).found] == [name]


MIXED_UP = """\
=================================== FAILURES ===================================
___________________________________ test_old ___________________________________

E       assert 1 == 2

test_a.py:9: AssertionError
=========================== short test summary info ============================
FAILED test_a.py::test_old - assert 3 == 4
============================== 1 failed in 0.02s ===============================
"""
EXACT = """<testsuite><testcase classname="test_a" name="test_old" file="test_a.py" line="0">
<failure message="assert 3 == 4">E   assert 3 == 4

test_a.py:2: AssertionError</failure></testcase></testsuite>
"""


def test_a_report_wins_over_an_output_that_mixes_two_tests_up() -> None:
    (found,) = digest(MIXED_UP, exit_code=1, report=EXACT.encode()).findings
    assert (found.test_id, found.line, found.message) == ("test_a.py::test_old", 2, "assert 3 == 4")


def test_a_report_of_a_package_names_the_package_and_paths_from_the_root() -> None:
    package = PackageReport(JUNIT, "shop", lambda file: f"packages/shop/{file}")
    found = package.read(package.content)
    located = [(each.finding.test_id, each.finding.file) for each in found.found]
    assert located == [
        ("[shop] tests.test_a::test_x", "packages/shop/tests/test_a.py"),
        ("[shop] test/b.php › goes wrong", "packages/shop/test/b.php"),
        ("[shop] s::Cart total", "packages/shop/cart.py"),
    ]
    assert all(each.heading.startswith("[shop] ") for each in found.found)
    assert "(packages/shop/cart.py" in found.found[2].heading
    assert found.tests
    assert found.tests.ran[1] == "[shop] tests.test_a::test_fine"


def test_a_report_of_a_package_has_findings_without_a_test_or_a_file_too() -> None:
    package = PackageReport(report_of("ruff.json"), "shop", lambda file: f"shop{file}")
    (found,) = package.read(package.content).found
    assert (found.finding.test_id, found.finding.file) == (None, "shop/repo/src/a.py")
    nowhere = PackageReport(
        b"<testsuite><testcase name='x'><failure/></testcase></testsuite>", "shop", str
    )
    (found,) = nowhere.read(nowhere.content).found
    assert (found.finding.test_id, found.finding.file) == ("[shop] x", None)


def test_each_subtest_is_a_failure_of_its_own() -> None:
    report = (
        "<testsuite><testcase classname='a.A' name='test_x'><failure message='0 != 1'/>"
        "<failure message='2 != 1'/></testcase></testsuite>"
    )
    found = [each.finding for each in read_report(report.encode()).found]
    names = [(each.test_id, each.message) for each in found]
    assert names == [("a.A::test_x", "0 != 1"), ("a.A::test_x", "2 != 1")]


def test_a_report_of_one_run_does_not_hide_what_another_run_counted() -> None:
    output = "Tests:       5 failed, 1 passed, 6 total\n"
    assert digest(output, exit_code=1, report=EXACT.encode()).count == 5


# The tests that ran

TESTS = {
    "pytest": (
        (
            b'<testsuites><testsuite name="pytest">'
            b'<testcase classname="tests.test_a.TestX" name="test_y[1]" file="tests/test_a.py"/>'
            b'<testcase classname="tests.test_a" name="test_z" file="tests/test_a.py">'
            b'<failure message="no"/></testcase>'
            b'<testcase classname="tests.test_a" name="test_s" file="tests/test_a.py"><skipped/>'
            b'</testcase><testcase classname="" name="tests.test_b">'
            b'<error message="collection failure"/></testcase></testsuite></testsuites>'
        ),
        ("tests/test_a.py::TestX::test_y[1]", "tests/test_a.py::test_z"),
        ("tests/test_a.py::test_s",),
    ),
    "surefire": (
        (
            b'<testsuite name="app.CartTest"><testcase classname="app.CartTest" name="adds"/>'
            b'<testcase classname="app.CartTest" name="sums"><skipped/></testcase></testsuite>'
        ),
        ("app.CartTest::adds",),
        ("app.CartTest::sums",),
    ),
    "ctest": (
        (
            b'<testsuite name="(empty)"><testcase name="wrap" classname="wrap" status="disabled"/>'
            b'<testcase name="push" classname="push" status="run"/></testsuite>'
        ),
        ("(empty)::push",),
        ("(empty)::wrap",),
    ),
    "an empty one": (b'<testsuites><testsuite name="pytest" tests="0"/></testsuites>', (), ()),
    "jest": (
        (
            b'{"testResults":[{"name":"/w/a.test.js","status":"passed","assertionResults":['
            b'{"ancestorTitles":["Cart"],"fullName":"Cart adds","title":"adds","status":"passed"},'
            b'{"ancestorTitles":["Cart"],"fullName":"Cart sums","title":"sums","status":"pending"},'
            b'{"ancestorTitles":["Cart"],"fullName":"Cart ends","title":"ends",'
            b'"status":"failed"}]}]}'
        ),
        ("/w/a.test.js › Cart adds", "/w/a.test.js › Cart ends"),
        ("/w/a.test.js › Cart sums",),
    ),
    "mocha": (
        (
            b'{"tests":[{"title":"adds","fullTitle":"Cart adds","file":"/w/a.js","duration":1},'
            b'{"title":"sums","fullTitle":"Cart sums","file":"/w/a.js","err":{}},'
            b'{"title":"ends","fullTitle":"Cart ends","file":"/w/a.js","err":{"message":"no"}}],'
            b'"pending":[{"title":"sums","fullTitle":"Cart sums","file":"/w/a.js","err":{}}]}'
        ),
        ("/w/a.js › Cart adds", "/w/a.js › Cart ends"),
        ("/w/a.js › Cart sums",),
    ),
    "go": (
        (
            b'{"Action":"run","Package":"m/a","Test":"TestX"}\n'
            b'{"Action":"pass","Package":"m/a","Test":"TestX"}\n'
            b'{"Action":"fail","Package":"m/a","Test":"TestY/one"}\n'
            b'{"Action":"skip","Package":"m/a","Test":"TestZ"}\n{"Action":"fail","Package":"m/a"}\n'
        ),
        ("m/a.TestX", "m/a.TestY/one"),
        ("m/a.TestZ",),
    ),
    "pytest-json-report": (
        (
            b'{"tests":[{"nodeid":"a.py::test_x","outcome":"passed","setup":{"outcome":"passed"},'
            b'"call":{"outcome":"passed"}},{"nodeid":"a.py::test_y","outcome":"xfailed"}]}'
        ),
        ("a.py::test_x",),
        (),
    ),
}


@pytest.mark.parametrize("tool", TESTS)
def test_a_report_names_the_tests_that_ran(tool: str) -> None:
    report, ran, skipped = TESTS[tool]
    stopped = ("tests.test_b",) if tool == "pytest" else ()
    failed = tuple(name for name in ran if name.endswith(("ends", "TestY/one", "test_z")))
    tests = RanTests(ran=ran, skipped=skipped, stopped=stopped, failed=failed)
    assert digest(b"", exit_code=1, report=report).tests == tests


@pytest.mark.parametrize(
    ("message", "fails_itself"),
    [
        ("IllegalStateException: no", True),
        ("collection failure", False),
        ("failed on setup with &quot;no&quot;", False),
        ("failed on teardown with &quot;no&quot;", False),
    ],
)
def test_an_error_around_a_test_is_none_of_the_test(message: str, *, fails_itself: bool) -> None:
    report = (
        f'<testsuite><testcase classname="a.B" name="x"><error message="{message}"/></testcase>'
        '<testcase name="/w/b.js" file="/w/b.js"><failure message="test failed"/></testcase>'
        "</testsuite>"
    )
    tests = digest(b"", exit_code=1, report=report.encode()).tests
    assert tests is not None
    assert tests.failed == (("a.B::x",) if fails_itself else ())


@pytest.mark.parametrize(
    "report", [None, b"", b"<x/>", b'{"a": 1}', b"<checkstyle/>", b"<testsuite"]
)
def test_what_is_no_report_of_tests_names_none(report: bytes | None) -> None:
    assert digest(b"", exit_code=0, report=report).tests is None


def test_a_check_is_red_by_its_report() -> None:
    assert not digest(b"", exit_code=0, report=TESTS["jest"][0]).passed
    assert digest(b"", exit_code=0, report=TESTS["surefire"][0]).passed
    # A linter's report may list what does not fail it.
    sarif = b'{"runs":[{"results":[{"ruleId":"a","level":"error","message":{"text":"no"}}]}]}'
    assert digest(b"", exit_code=0, report=sarif).passed


def test_what_a_failed_test_printed_is_its_message_if_the_report_has_none() -> None:
    report = (
        b'<testsuite name="x"><testcase name="flags" classname="flags" status="fail">'
        b'<failure message=""/><system-out>FAIL: want 0x1, got 0x20\n</system-out></testcase>'
        b"</testsuite>"
    )
    (found,) = digest(b"", exit_code=8, report=report).findings
    assert found.message == "FAIL: want 0x1, got 0x20"
