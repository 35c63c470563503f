"""Tests that a change deletes, empties or skips are told by name; others are left in peace."""

import pytest

from mulligan.checks.guards import violations
from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.result import GuardKind
from world.diffs import Files, change_of

pytestmark = pytest.mark.pure

PY = "tests/test_a.py"
TWO = "def test_one():\n    assert 1\n\n\ndef test_two():\n    assert 2\n"
MORE = TWO.replace("test", "test_b")
TABLE = "@pytest.mark.parametrize('x', [1, 2])\ndef test_all(x): ...\n"
CLASS = "class TestA(TestCase):\n    def test_one(self):\n        assert 1\n"
JS = "describe('a', () => {\n  it('adds', () => {\n    x();\n  });\n  it(`subs`, () => {});\n});\n"
GO = "package a\n\nfunc TestAdd(t *testing.T) {\n\tadd()\n}\n\nfunc TestSub(t *testing.T) {\n}\n"
RUST = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        x();\n    }\n}\n"
JAVA = (
    "class ATest {\n    @Test\n    void adds() {\n    }\n\n    @Test\n    void subs() {\n    }\n}\n"
)
RUBY = "describe A do\n  it 'adds' do\n    x\n  end\n\n  it 'subs' do\n  end\nend\n"
PHP = (
    "class ATest {\n    function testAdd() {\n        x();\n    }\n"
    "    #[Test]\n    function subs() {}\n}\n"
)


def told(
    before: Files, after: Files, moved: Files | None = None, scope: Scope | None = None
) -> list[str]:
    change = change_of(before, after, moved)
    return [broken.message for broken in violations(change, scope or Scope())]


def without(text: str, *parts: str) -> str:
    for part in parts:
        assert part in text
        text = text.replace(part, "")
    return text


def test_a_deleted_file_is_told_with_its_tests() -> None:
    assert told({PY: TWO}, {}) == [
        f"{PY} was deleted, with the tests test_one, test_two; keep them, or move them."
    ]


@pytest.mark.parametrize(
    ("path", "text", "part", "lost"),
    [
        (PY, TWO, "\n\ndef test_two():\n    assert 2\n", "test_two"),
        (PY, TWO, TWO, "test_one, test_two"),
        (PY, CLASS, "    def test_one(self):\n        assert 1\n", "test_one"),
        ("a.test.ts", JS, "  it('adds', () => {\n    x();\n  });\n", "adds"),
        ("src/__tests__/a.js", JS, "  it(`subs`, () => {});\n", "subs"),
        ("ATest.java", JAVA, "    @Test\n    void subs", "subs"),
        ("a_test.go", GO, "func TestSub(t *testing.T) {\n}\n", "TestSub"),
        ("src/lib.rs", RUST, "    #[test]\n", "adds"),
        ("src/test/java/ATest.java", JAVA, "    @Test\n    void subs() {\n    }\n", "subs"),
        ("spec/a_spec.rb", RUBY, "\n  it 'subs' do\n  end\n", "subs"),
        ("tests/ATest.php", PHP, "    #[Test]\n    function subs() {}\n", "subs"),
        ("tests/ATest.php", PHP, "    function testAdd() {\n        x();\n    }\n", "testAdd"),
    ],
)  # fmt: skip
def test_a_lost_test_is_named(path: str, text: str, part: str, lost: str) -> None:
    rest = text.replace(part, "")
    assert rest != text
    assert told({path: text}, {path: rest}) == [
        f"{path} no longer has the tests {lost}; restore or replace them."
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def test_two", "# def test_two"),
        ("def test_two", "def _test_two"),
        ("def test_two", "def check_two"),
        ("def test_two", "@pytest.mark.skip\ndef test_three"),
        ("def test_two", "@pytest.mark.xfail\ndef test_three"),
    ],
)
def test_a_test_that_only_looks_alive_is_lost(before: str, after: str) -> None:
    assert told({PY: TWO}, {PY: TWO.replace(before, after)}) == [
        f"{PY} no longer has the tests test_two; restore or replace them."
    ]


def test_many_tests_are_counted() -> None:
    text = "".join(f"def test_{number}{'x' * 100}():\n    pass\n" for number in range(8))
    (sentence,) = told({PY: text}, {})
    assert sentence.count("…") == 5
    assert "(+ 3 more)" in sentence


@pytest.mark.parametrize("path", ["a.test.js", "data_test.go", PY])
@pytest.mark.parametrize("after", [None, ""])
def test_a_file_of_tests_that_cannot_be_read_counts_as_one(path: str, after: str | None) -> None:
    (sentence,) = told({path: "makeTests(all)\n"}, {} if after is None else {path: after})
    assert path.rpartition("/")[2] in sentence


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({PY: TWO}, {PY: TWO.replace("assert 2", "assert 3")}, id="changed"),
        pytest.param({PY: TWO}, {PY: TWO.replace("test_two", "test_three")}, id="renamed"),
        pytest.param({PY: TWO}, {"tests/test_b.py": TWO}, id="moved to another file"),
        pytest.param({PY: TWO}, {"src/a_test.py": CLASS + TWO}, id="moved, and one more"),
        pytest.param({PY: TWO, "test_b.py": TWO}, {PY: TWO + MORE}, id="joined"),
        pytest.param({PY: TWO}, {PY: TABLE}, id="a table"),
        pytest.param({"src/a.py": TWO}, {}, id="no file of tests"),
        pytest.param({"tests/data.json": "{}\n"}, {}, id="data beside tests"),
        pytest.param({"tests/helper.py": "def make():\n    pass\n"}, {}, id="no tests in it"),
        pytest.param({"README.md": TWO}, {}, id="a text"),
        pytest.param({"a.test.js": JS}, {"a.test.ts": JS}, id="another ending"),
        pytest.param({PY: TWO}, {PY: TWO + "def test_three(): ...\n"}, id="more tests"),
        pytest.param({}, {PY: ""}, id="an empty file"),
        pytest.param({"tests/__init__.py": "x\n"}, {"tests/__init__.py": ""}, id="emptied"),
        pytest.param({"a.go": "func Run(s *S) {\n\ts.Skip()\n}\n"}, {}, id="no test of Go"),
    ],
)  # fmt: skip
def test_tests_that_are_still_there_are_not_lost(before: Files, after: Files) -> None:
    assert told(before, after) == []


def test_a_table_in_one_file_excuses_no_other() -> None:
    table = "@pytest.mark.parametrize('x', [1])\ndef test_one(x): ...\n"
    (sentence,) = told({PY: TWO, "test_b.py": TWO}, {PY: table})
    assert sentence.startswith("test_b.py was deleted")


@pytest.mark.parametrize("new", ["tests/disabled_a.py", "tests/test_a.py.off", "old/a.py"])
def test_a_file_that_no_runner_finds_any_more_is_told(new: str) -> None:
    assert told({PY: TWO}, {new: TWO}, {PY: new})[-1] == (
        f"{PY} became {new}, which no test runner finds; keep its name."
    )


def test_a_moved_file_is_looked_into() -> None:
    new = "tests/sub/test_b.py"
    assert told({PY: TWO}, {new: TWO}, {PY: new}) == []
    (sentence,) = told({PY: TWO}, {new: TWO.partition("\n\n")[0] + "\n"}, {PY: new})
    assert sentence.startswith(f"{new} no longer has the tests test_two")


def test_lost_and_skipped_tests_may_be_allowed() -> None:
    skipped = TWO.replace("def test_two", "@pytest.mark.skip\ndef test_two")
    moved = {"tests/disabled.py": TWO}
    assert told({PY: TWO}, {}, scope=Scope(allow_deleted_tests=True)) == []
    assert told({PY: TWO}, moved, {PY: "tests/disabled.py"}, Scope(allow_deleted_tests=True)) == []
    assert told({PY: TWO}, {PY: skipped}, scope=Scope(allow_skipped_tests=True)) == []


SKIPS = [
    (PY, TWO, "def test_two", "@pytest.mark.skip(reason='x')\ndef test_two", "test_two"),
    (PY, TWO, "def test_two", "@pytest.mark.skipif(True, reason='x')\ndef test_two", "test_two"),
    (PY, TWO, "def test_two", "@skip\n@other\ndef test_two", "test_two"),
    (PY, TWO, "def test_two", "@ pytest . mark . skip\ndef test_two", "test_two"),
    (PY, TWO, "def test_two", "@unittest.expectedFailure\ndef test_two", "test_two"),
    (PY, TWO, "def test_two", "@pytest.mark.xfail\ndef test_two", "test_two"),
    (PY, TWO, "    assert 2", "    pytest.skip('x')", "test_two"),
    (PY, TWO, "    assert 1", "    raise unittest.SkipTest('x')", "test_one"),
    (PY, CLASS, "        assert 1", "        self.skipTest('x')", "test_one"),
    (PY, CLASS, "class TestA", "@unittest.skip('x')\nclass TestA", "TestA"),
    (PY, TWO, "def test_two():", "@pytest.mark.skip\ndef test_two(new):", "test_two"),
    ("a.test.ts", JS, "it('adds'", "it.skip('adds'", "adds"),
    ("a.test.ts", JS, "it('adds'", "xit('adds'", "adds"),
    ("a.test.ts", JS, "it(`subs`", "it.todo(`subs`", "subs"),
    ("a.test.ts", JS, "it('adds',", "it('adds', { skip: true },", "adds"),
    ("a.test.ts", JS, "describe('a'", "describe.skip('a'", "a"),
    ("test/a.js", JS, "    x();", "    this.skip();", "adds"),
    ("a_test.go", GO, "\tadd()", '\tt.Skip("x")', "TestAdd"),
    ("src/lib.rs", RUST, "    #[test]", "    #[ignore]\n    #[test]", "adds"),
    ("src/lib.rs", RUST, "    #[test]", "    #[test]\n    #[ignore]", "adds"),
    ("ATest.java", JAVA, "    void subs", "    @Disabled\n    void subs", "subs"),
    ("ATest.kt", JAVA, "    @Test\n    void subs", "    @Ignore\n    @Test\n    void subs", "subs"),
    ("ATest.java", JAVA, "    void adds() {\n", "    void adds() {\n  assumeTrue(x);\n", "adds"),
    ("spec/a_spec.rb", RUBY, "it 'adds'", "xit 'adds'", "adds"),
    ("spec/a_spec.rb", RUBY, "it 'adds'", "it 'adds', skip: 'x'", "adds"),
    ("spec/a_spec.rb", RUBY, "    x\n", "    skip 'x'\n", "adds"),
    ("tests/ATest.php", PHP, "        x();", "        $this->markTestSkipped();", "testAdd"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "text", "old", "new", "name"), SKIPS, ids=lambda part: part[:20])
def test_a_newly_skipped_test_is_named(path: str, text: str, old: str, new: str, name: str) -> None:
    assert old in text
    (sentence,) = told({path: text}, {path: text.replace(old, new)})
    assert f" skips the test {name}, which ran before (" in sentence
    assert sentence.startswith(f"{path}:")
    back = told({path: text.replace(old, new)}, {path: text})
    assert back == [], "what is taken out is no matter"


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        (PY, TWO, "pytestmark = pytest.mark.skip('x')\n"),
        (PY, TWO, "pytestmark = pytest.mark.skipif(CI, reason='x')\n"),
        (PY, TWO, "pytest.skip('x', allow_module_level=True)\n"),
        (PY, TWO, "later = pytest.mark.skip(reason='x')\n"),
        (PY, TWO, "from unittest import skip as slow\n"),
        (PY, TWO, "@pytest.mark.skip\n" + "# x\n" * 20),
        ("a_test.go", GO, "//go:build ignore\n"),
    ],
)
def test_what_skips_without_naming_a_test_is_told(path: str, text: str, line: str) -> None:
    (sentence,) = told({path: text}, {path: line + text})
    assert sentence.startswith(f"{path}:1 skips tests that ran before (")
    assert told({path: line + text}, {path: line + text + "\n"}) == []


@pytest.mark.parametrize(
    ("path", "text", "old", "new"),
    [
        ("a.test.ts", JS, "it('adds'", "it.only('adds'"),
        ("a.test.ts", JS, "it('adds'", "fit('adds'"),
        ("a.test.ts", JS, "describe('a'", "describe.only('a'"),
        ("spec/a_spec.rb", RUBY, "it 'adds'", "fit 'adds'"),
        ("spec/a_spec.rb", RUBY, "it 'adds'", "it 'adds', :focus"),
    ],
)
def test_a_test_that_runs_alone_is_told(path: str, text: str, old: str, new: str) -> None:
    alone = text.replace(old, new)
    (sentence,) = told({path: text}, {path: alone})
    assert " keeps all other tests from running (" in sentence
    assert told({}, {path: alone}) == [sentence]
    assert told({path: alone}, {f"sub/{path}": alone}) == []


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        pytest.param(PY, "", TWO + "@pytest.mark.skipif(X)\ndef test_x(): ...\n", id="new file"),
        pytest.param(PY, TWO, TWO + "@pytest.mark.skip\ndef test_x(): ...\n", id="new test"),
        pytest.param(PY, TWO, TWO + "def test_x():\n    pytest.skip('x')\n", id="new test, inside"),
        pytest.param(PY, TWO, TWO + "def server():\n    pytest.skip('x')\n", id="a fixture"),
        pytest.param(PY, "", "pytestmark = pytest.mark.skipif(X)\n" + TWO, id="all of a new file"),
        pytest.param("a.test.js", JS, JS.replace("x();", "find({ skip: 10 });"), id="another skip"),
        pytest.param("a.test.js", JS, JS + "it.skip(name, () => {});\n", id="a name that varies"),
    ],
)  # fmt: skip
def test_new_tests_may_come_with_a_condition(path: str, before: str, after: str) -> None:
    assert told({path: before} if before else {}, {path: after}) == []


def test_a_skipped_test_may_be_moved_and_its_reason_changed() -> None:
    skipped = TWO.replace("def test_two", "@pytest.mark.skip('x')\ndef test_two")
    assert told({PY: skipped}, {"tests/test_b.py": skipped}) == []
    assert told({PY: skipped}, {PY: skipped.replace("'x'", "'y'")}) == []
    other = TWO.replace("def test_one", "@pytest.mark.skip('x')\ndef test_one")
    (sentence,) = told({PY: skipped}, {PY: other})
    assert "skips the test test_one" in sentence


def test_a_test_whose_head_is_not_shown_is_known_by_the_hunk() -> None:
    long = "def test_long():\n" + "    x()\n" * 20
    (sentence,) = told({PY: long}, {PY: long + "    pytest.skip('x')\n"})
    assert "skips the test test_long" in sentence
    helper = "def make():\n" + "    x()\n" * 20
    assert told({PY: helper}, {PY: helper + "    pytest.skip('x')\n"}) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("tests/conftest.py", "collect_ignore = ['test_a.py']"),
        ("pyproject.toml", 'addopts = "--deselect tests/test_a.py::test_one"'),
        ("pytest.ini", "addopts = --ignore=tests/slow"),
        ("package.json", '"jest": {"testPathIgnorePatterns": ["a.test.js"]}'),
        ("pom.xml", "<exclude>**/ATest.java</exclude>"),
        ("build.gradle", "excludeTestsMatching 'ATest'"),
    ],
)
def test_settings_that_leave_tests_out_are_told(path: str, line: str) -> None:
    assert told({path: "x\n"}, {path: f"x\n  {line}\n"}) == [
        f"{path} excludes tests ({line}); run all of them."
    ]
    assert told({path: f"{line}\nx\n"}, {path: f"x\n    {line}\n"}) == []


@pytest.mark.parametrize(
    "line", ["ruff check --ignore E501", "ignore = ['E501']", "testpaths = ['t']"]
)
def test_other_settings_are_no_matter(line: str) -> None:
    assert told({"pyproject.toml": "x\n"}, {"pyproject.toml": f"x\n{line}\n"}) == []


@pytest.mark.parametrize(
    "text",
    [
        "@Test " + "a " * 200_000 + "\n",
        "@skip" * 100_000 + "\n",
        "@Test\n" * 4_000,
        "@Test\n" + "@\n" * 4_000,
        "#[test]\n" * 4_000,
        "it(" * 4_000 + "\n" * 4_000,
        f"#[test]{' ' * 300}\n\n" * 20,
        f"@Test {'a ' * 190}\n" * 200,
        "\n" * 30_000,
        "func (\n" * 5_000,
        "func TestA(t *testing.T) {\n" + "t.Skip()\n" * 5_000,
        "it.skip('a', () => {\n" * 4_000,
    ],
    ids=range(12),
)
@pytest.mark.timeout(100)
def test_a_change_made_to_take_time_takes_none(text: str) -> None:
    for path in (PY, "a.test.js", "a_test.go", "a.rs", "ATest.java", "a_spec.rb", "ATest.php"):
        assert told({}, {path: text}) == []


@pytest.mark.timeout(100)
def test_the_tests_of_many_places_are_counted_at_once() -> None:
    places = "".join(
        f"@@ -{at},1 +{at},1 @@\n-def test_{at}():\n+def test_b{at}():\n" for at in range(10_000)
    )
    head = "diff --git a/test_a.py b/test_a.py\n--- a/test_a.py\n+++ b/test_a.py\n"
    change = Change("a" * 40, "b" * 40, 1, diff=f"{head}{places}".encode())
    assert violations(change, Scope()) == ()


def test_a_test_with_its_annotations_and_its_name_on_one_line_is_known() -> None:
    tests = "    @Test fun adds() {\n    }\n\n    @Test(a = b())\n\n    fun subs() {}\n"
    kotlin = "class ATest {\n}\n"
    (message,) = told({"ATest.kt": kotlin.replace("\n", f"\n{tests}", 1)}, {"ATest.kt": kotlin})
    assert "adds, subs" in message


def test_a_diff_that_is_none_is_no_matter() -> None:
    diff = b"diff --git a/t_test.go b/t_test.go\n+++ b/t_test.go\n@@ odd\n+func TestX(\n"
    assert violations(Change("a" * 40, "b" * 40, 1, diff=diff), Scope()) == ()


def test_a_file_of_too_many_lines_is_refused_and_not_read() -> None:
    lines = 200_001
    change = change_of({}, {"test_a.py": "\n" * lines, "data.csv": "\n" * lines})
    (found,) = violations(change, Scope())
    assert (found.kind, found.path) == (GuardKind.SIZE, "test_a.py")


def test_a_file_over_the_limit_of_bytes_is_refused_and_not_read() -> None:
    change = change_of({}, {"test_a.py": f"@skip\ndef test_a(): ...\n# AKIA{'Q' * 16}\n" * 9})
    found = violations(change, Scope(max_file_bytes=100))
    assert {each.kind for each in found} == {GuardKind.SIZE}
