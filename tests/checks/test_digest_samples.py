"""What must be named of outputs of many tools, alone and among thousands of lines.

The outputs in tests/fixtures/digest/ stand for tools without a reader of their own: the generic
path finds them. The names are what somebody who has to mend the failure would want to read.
"""

from pathlib import Path

import pytest

from mulligan.checks.digest import MAX_CHARS, digest
from world.tools import PASSING

pytestmark = pytest.mark.pure

OUTPUTS = Path(__file__).parents[1] / "fixtures" / "digest"

NAMES: dict[str, tuple[str, ...]] = {
    "actionlint": (".github/workflows/ci.yml:7:9", 'unexpected key "step"'),
    "alembic": ("versions/abc_add.py", "Can't locate revision identified by 'deadbeef1234'"),
    "angular": ("src/app/app.component.ts:5:3", "TS2339", "Property 'foo' does not exist"),
    "ansible": ("web1", "Failed to start nginx"),
    "argparse": ("the following arguments are required: --a",),
    "asan": ("heap-use-after-free", "san.c:2", "READ of size 4"),
    "ava": ("calc › adds", "test.js:5", "Difference"),
    "bash_unbound": ("NOPE: unbound variable",),
    "bats": ("adds numbers", "test/calc.bats, line 6", '[ "$result" -eq 4 ]'),
    "bazel": ("//calc:calc_test", "src/BUILD:3:8", "no such package 'missing'"),
    "behave": (
        "features/calc.feature:7",
        "adds numbers",
        "Assertion Failed",
        "features/steps/calc.py",
    ),
    "black": ("src/a.py", "tests/b.py", "2 files would be reformatted"),
    "black_err": ("src/bad.py", "Cannot parse", "1:4"),
    "boost": ("test.cpp(8)", "adds", "check add(1, 2) == 3 has failed"),
    "bun": ("calc > adds", "calc.test.ts:6", "Expected: 4", "Received: 3"),
    "busted": ("spec/calc_spec.lua", "calc adds numbers", "Expected objects to be equal"),
    "cabal": ("src/Lib.hs:3:1", "Could not find module ‘Data.Nope’"),
    "cargo_build": (
        "error[E0308]",
        "mismatched types",
        "src/main.rs:1:25",
        "E0425",
        "src/main.rs:1:30",
    ),
    "cargo_fmt": ("src/main.rs:1",),
    "cargo_test": (
        "tests::adds",
        "src/main.rs:5:20",
        "left: -1",
        "right: 3",
        "tests::unwraps",
        "src/main.rs:6:50",
        "tests::sp",
    ),
    "catch2": ("tests.cpp:6", "REQUIRE( add(1, 2) == 3 )", "-1 == 3"),
    "clang": ("main.c:4:9", "use of undeclared identifier 'y'", "1 error generated"),
    "clippy": ("unused variable: `unused`", "src/main.rs:2:25"),
    "cmake": ("CMakeLists.txt:3", 'Could not find a package configuration file provided by "Nope"'),
    "compose": ("sqlalchemy.exc.OperationalError", "/app/main.py:12"),
    "crystal": ("spec/calc_spec.cr:5", "Calc adds", "Expected: 4", "got: 3"),
    "cspell": ("docs/a.md:3:5", "Unknown word (teh)"),
    "ctest": ("bad", "assertion failed: 1 == 2", "slow", "2 tests failed out of 3"),
    "cucumber_js": (
        "features/calc.feature:8",
        "Expected values to be strictly equal",
        "adds numbers",
    ),
    "cypress": ("Login", "shows an error", "expected 'a' to equal 'b'", "login.cy.js:7:20"),
    "dart": ("adds numbers", "Expected: <4>", "Actual: <3>", "test/calc_test.dart 8:5"),
    "deno": ("adds numbers", "./calc_test.ts:5:6", "Values are not equal"),
    "disk": ("No space left on device",),
    "django": ("test_view (app.tests.ViewTest.test_view)", "app/tests.py", "404 != 200"),
    "docker": ("Dockerfile:4", "npm ci", "exit code: 1"),
    "dotnet": ("App.Tests.CalcTests.Adds", "CalcTests.cs:line 11", "CS0103", "Calc.cs(12,9)"),
    "dune": ("bin/main.ml", "line 3, characters 10-13", "This expression has type string"),
    "elm": ("src/Main.elm", "TYPE MISMATCH", "12|"),
    "esbuild": ("src/a.ts:1:18", 'Could not resolve "./b"'),
    "eslint": ("src/a.js", "3:5", "no-undef", "src/b.js", "1:10", "3 problems"),
    "exunit": ("adds (CalcTest)", "test/calc_test.exs", "left:  3"),
    "flake8": ("./a.py:1:1", "F401", "./pkg/b.py:20:80", "E501"),
    "gcc_header": ("a.c:2:10", "nothere.h: No such file or directory"),
    "gha": ("src/a.py:3", "Process completed with exit code 1"),
    "ghc": ("src/Main.hs:5:10", "Couldn't match expected type", "Int"),
    "git_checkout": ("pathspec 'nope' did not match",),
    "gleam": ("src/calc.gleam:3:3", "Unknown variable"),
    "go_plain": (
        "TestAdd",
        "calc_test.go:8",
        "Add(1, 2) = 4; want 3",
        "TestTable/zero",
        "calc_test.go:21",
    ),
    "go_v": ("TestAdd", "calc_test.go:8", "TestDiv", "integer divide by zero", "calc.go:14"),
    "go_vet": ("calc.go:5:2", "undefined: foo", "calc.go:9:15"),
    "golangci": ("main.go:10:6", "`unused` is unused", "main.go:15:2", "SA4006"),
    "gpp_template": ("t.cpp:6:92", "no match for ‘operator[]’", "no match for ‘operator<’"),
    "gradle": ("AppTest > testAdd()", "expected: <4> but was: <3>", "AppTest.java:12"),
    "groovy_spock": (
        "CalcSpec > adds numbers",
        "CalcSpec.groovy:8",
        "Condition not satisfied",
    ),
    "gtest": (
        "MathTest.Adds",
        "math_test.cc:7",
        "Expected equality of these values",
        "1 FAILED TEST",
    ),
    "hadolint": ("Dockerfile:3", "DL3006"),
    "hspec": ("test/Spec.hs:12:7", "Calc adds numbers", "expected: 4", "but got: 3"),
    "importlinter": (
        "app.domain is not allowed to import app.web",
        "app.domain.user -> app.web.views (l.3)",
    ),
    "isort": ("/home/u/p/a.py", "incorrectly sorted"),
    "jasmine": ("Calc adds", "Expected 3 to be 4.", "spec/calcSpec.js:5:21"),
    "java_cause": ("java.lang.RuntimeException: wrapped", "NullPointerException", "B.java:1"),
    "javac": ("j/A.java:1", "incompatible types", "cannot find symbol", "2 errors"),
    "jest": (
        "sum › adds",
        "src/sum.test.js:5:23",
        "Expected: 4",
        "Received: 3",
        "sum › throws",
        "src/sum.js:9:12",
        "2 failed",
    ),
    "julia": ("/home/u/test/runtests.jl:5", "add(1, 2) == 4", "3 == 4"),
    "karma": ("Chrome Headless", "Calc adds", "Expected 3 to be 4."),
    "kotlin": ("Main.kt", "12", "Unresolved reference: foo"),
    "ldclang": ("undefined symbol: foo()", "main.cpp"),
    "make_gcc": (
        "b.c:1:53",
        "‘y’ undeclared",
        "b.c:2:35",
        "expected ‘;’",
        "undefined reference to `foo'",
    ),
    "make_no_rule": ("No rule to make target 'missing.c'",),
    "markdownlint": ("README.md:3:81", "MD013"),
    "maven_compile": ("App.java", "12,9", "cannot find symbol"),
    "maven_test": (
        "AppTest.testAdd",
        "expected: <4> but was: <3>",
        "AppTest.java:12",
        "AppTest.testNull",
        "App.java:7",
        "Failures: 1",
    ),
    "minitest": ("TestCalc#test_add", "test/calc_test.rb:7", "Expected: 4"),
    "miri": ("src/main.rs:4:14", "Undefined Behavior"),
    "mix_compile": ("lib/calc.ex:3", "undefined function foo/0"),
    "mocha": ("Calculator adds", "test/calc.js:6:12", "3 !== 2"),
    "mypy": (
        "a.py:3",
        "Incompatible return value type",
        "return-value",
        "b.py:10",
        "Found 2 errors in 2 files",
    ),
    "node_import": ("ERR_MODULE_NOT_FOUND", "nope.mjs"),
    "node_oom": ("JavaScript heap out of memory",),
    "node_syntax": ("syn.js:1", "Unexpected token ';'"),
    "node_test_spec": ("adds", "t.test.js:2:44", "2 !== 3", "inner", "bad type"),
    "node_test_tap": ("adds", "t.test.js:2", "2 !== 3", "inner", "bad type"),
    "node_throw": ("n.js:1:30", "Cannot read properties of null"),
    "nox": ("lint", "ruff check . failed with exit code 1", "a.py:1:8"),
    "npm_eresolve": ("ERESOLVE", "unable to resolve dependency tree", "react@17.0.2"),
    "npm_no_script": ('Missing script: "nope"',),
    "nunit": ("Calc.Tests.AddTests.Adds", "Expected: 4", "But was:  3", "AddTests.cs:line 11"),
    "nx": ("src/app/a.spec.ts", "should work"),
    "oom": ("Killed",),
    "perl_die": ("lib/Calc.pm line 12", "Can't use an undefined value"),
    "perl_module": ("Can't locate Nope/Mod.pm",),
    "php_fatal": ("/home/u/a.php", "line 7", "Call to undefined function foo()"),
    "phpstan": (
        "src/Calc.php",
        "12",
        "Method Calc::add() should return int but returns string",
        "Found 1 error",
    ),
    "phpunit": (
        "CalcTest::testAdd",
        "CalcTest.php:12",
        "Failed asserting that 3 matches expected 4",
    ),
    "pip": ("No matching distribution found for nope-pkg",),
    "pip_audit": ("jinja2", "CVE-2024-22195"),
    "playwright": (
        "login.spec.ts:5:1",
        "can log in",
        "Timed out 5000ms waiting for expect",
        "login.spec.ts:8:40",
    ),
    "poetry": ("SolverProblemError", "depends on both"),
    "precommit": ("ruff", "a.py:1:8", "trailing-whitespace", "b.txt"),
    "prettier": ("src/a.ts", "src/b.css", "Code style issues"),
    "prettier_syntax": ("src/a.ts", "';' expected", "3:9"),
    "protoc": ("api.proto:5:3", '"Foo" is not defined.'),
    "prove": ("two is three", "p.t", "got: '2'", "expected: '3'", "deep"),
    "pylint": ("a.py:1:0", "C0114", "a.py:5:4", "E1101", "no-member"),
    "pyright": ("r.py:5:12", '"y" is not defined', "1 error"),
    "python_chain": ("RuntimeError: outer", "ValueError: inner"),
    "python_no_module": ("No module named nope_mod",),
    "python_syntax": ("bad.py", "line 1", "SyntaxError: invalid syntax"),
    "robot": ("Adds Numbers", "3 != 4"),
    "rollup": ("src/main.js", "Unexpected token", "3:7"),
    "rspec": ("Calc adds numbers", "spec/calc_spec.rb:6", "expected: 4", "got: 3"),
    "rubocop": ("app/a.rb:3:5", "Lint/UselessAssignment", "2 offenses"),
    "ruby_err": ("app.rb:3", "undefined method `foo' for nil:NilClass", "NoMethodError"),
    "ruff_concise": ("r.py:1:1: D100", "r.py:5:12: F821", "Found 13 errors"),
    "ruff_diff": ("r.py", "would be reformatted"),
    "ruff_format": ("r.py", "would be reformatted"),
    "ruff_full": ("D100", "r.py:1:1", "F401", "r.py:1:8", "F821", "r.py:5:12", "Found 13 errors"),
    "rustdoc": ("src/lib.rs - add (line 3)", "src/lib.rs:4:1", "left: 3"),
    "sbt": ("Calc.scala:5", "type mismatch"),
    "scalatest": ("adds numbers", "CalcSpec.scala:9", "3 did not equal 4"),
    "sh_not_found": ("foo_nope: not found",),
    "sh_syntax": ("s.sh: 4", "Syntax error"),
    "shellcheck": ("deploy.sh", "SC1046", "Couldn't find 'fi'"),
    "sql": ("42P01", 'relation "users" does not exist', "migrate.sql:3"),
    "stylelint": ("src/a.css", "3:10", "Unexpected invalid hex color", "color-no-invalid-hex"),
    "svelte_check": ("/home/u/src/App.svelte:3:7", "Type 'string' is not assignable"),
    "swift_test": ("CalcTests.testAdd", "CalcTests.swift:8", "XCTAssertEqual failed"),
    "swiftbuild": (
        "/home/u/p/Sources/App/main.swift:3:14",
        "cannot convert value of type 'String'",
    ),
    "tcltest": ("add-1.0", "adds big", "no cart", "Failed\t3"),
    "terraform": ("main.tf", "Missing required argument"),
    "terraform_val": ("main.tf line 5", "Unsupported argument"),
    "testify": (
        "TestName",
        "greet_test.go:14",
        "Not equal",
        'expected: "Hello"',
        'actual  : "hello"',
    ),
    "testthat": ("test-calc.R:3:3", "add works", "`add(1, 2)` not equal to 4"),
    "tox": ("py311", "test_a.py::test_x", "assert 1 == 2", "lint", "a.py:1:1: F401"),
    "tsc": ("src/a.ts(3,5)", "TS2322", "src/b.ts:10:7", "TS2304", "Found 2 errors"),
    "turbo": ("./src/page.tsx:3:7", "Type error"),
    "ubsan": ("calc.c:5:14", "signed integer overflow"),
    "unittest": (
        "test_cart.TestCart.test_lists",
        'cart.py", line 2',
        "Lists differ",
        "closed",
        "No module named 'nothere'",
        "failures=2, errors=4",
    ),
    "valgrind": ("Invalid read of size 4", "san.c:3", "definitely lost"),
    "vite": ("src/App.tsx", "./nope", "Could not resolve"),
    "vitest": ("src/sum.test.ts > sum > adds", "src/sum.test.ts:5:22", "expected 3 to be 4"),
    "vue_tsc": ("src/App.vue(3,7)", "TS2322"),
    "webpack": ("./src/index.js", "Module not found", "'./missing'"),
    "xcode": ("CalcTests.swift:8", "-[CalcTests testAdd]", "XCTAssertEqual failed"),
    "yamllint": ("a.yml", "3:1", "wrong indentation"),
    "yarn": ("src/a.test.js", "Command failed with exit code 1"),
    "zig": (
        "src/main.zig:5:9",
        "expected type 'u32', found '*const [1:0]u8'",
        "test.adds",
        "expected 4, found 3",
    ),
}
BEYOND = {"phpstan", "pip_audit"}
"""Their tables have no word that speaks of failure; alone they are shown whole."""


@pytest.mark.parametrize("tool", sorted(NAMES))
def test_what_matters_is_named(tool: str) -> None:
    found = digest((OUTPUTS / f"{tool}.txt").read_bytes(), exit_code=1)
    assert [name for name in NAMES[tool] if name not in found.text] == []
    assert len(found.text) <= MAX_CHARS
    assert not found.passed


FEW = sorted(set(NAMES) - BEYOND)[::12]
"""Of these long outputs every run makes a few, and `make test-deep` all."""


@pytest.mark.parametrize(
    "tool",
    [
        tool if tool in FEW else pytest.param(tool, marks=pytest.mark.deep)
        for tool in sorted(set(NAMES) - BEYOND)
    ],
)
def test_what_matters_is_found_among_thousands_of_lines(tool: str) -> None:
    noise = PASSING.encode()
    output = noise + (OUTPUTS / f"{tool}.txt").read_bytes() + noise
    found = digest(output, exit_code=1)
    assert [name for name in NAMES[tool] if name not in found.text] == []
    assert len(found.text) <= MAX_CHARS


def test_every_output_has_its_names() -> None:
    assert {file.stem for file in OUTPUTS.glob("*.txt")} == set(NAMES)


@pytest.mark.parametrize("tool", sorted(NAMES))
def test_summaries_are_short_lines(tool: str) -> None:
    for finding in digest((OUTPUTS / f"{tool}.txt").read_bytes(), exit_code=1).findings:
        assert 0 < len(finding.summary) <= 100
        assert "\n" not in finding.summary
