"""How tests look in the languages that Mulligan knows: their files, cases and skip marks. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import PurePosixPath


class Place(Enum):
    """What a mark is about, seen from the line that it stands on."""

    HERE = auto()
    """The test or group of tests that begins on the same line."""
    BELOW = auto()
    """The test or group of tests that follows."""
    AROUND = auto()
    """The test that it stands in."""
    FILE = auto()
    """All tests of the file."""
    OTHERS = auto()
    """All tests but this one."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What keeps a test from running, or from counting; `is_certain` where no condition does."""

    place: Place
    pattern: re.Pattern[str]
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Language:
    """The conventions of one language; patterns of cases and groups have a group `name`.

    `named` matches the names of files that hold tests wherever they are; other files with one of
    the `endings` do so only in a directory of tests. `tables` is what makes many tests of one.
    """

    endings: tuple[str, ...]
    named: re.Pattern[str]
    cases: tuple[re.Pattern[str], ...]
    groups: re.Pattern[str]
    tables: re.Pattern[str]
    marks: tuple[Mark, ...]


DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing", "e2e"})


def _re(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.MULTILINE)


def _marks(place: Place, certain: str = "", uncertain: str = "") -> tuple[Mark, ...]:
    both = ((certain, True), (uncertain, False))
    return tuple(Mark(place, _re(pattern), certain) for pattern, certain in both if pattern)


QUOTED = r"""(?P<quote>["'`])(?P<name>(?:(?!(?P=quote)).)*)"""

PYTHON = Language(
    endings=(".py",),
    named=_re(r"^test_.*\.py$", r"_test\.py$", r"^tests?\.py$"),
    cases=(_re(r"^[ \t]*(?:async )?def (?P<name>test\w*)"),),
    groups=_re(r"^[ \t]*class (?P<name>\w+)"),
    tables=_re(r"parametrize\b", r"subTest\b", r"\.expand\(", r"@(?:ddt\.)?data\("),
    marks=(
        *_marks(
            Place.BELOW,
            r"^\s*@ *(?:\w+ *\. *)*(?:skip|xfail|expectedFailure)\b|marks=\S*\.(?:skip|xfail)\b",
            r"^\s*@ *(?:\w+ *\. *)*skip(?:[iI]f|[uU]nless)\w*",
        ),
        *_marks(
            Place.FILE,
            r"^pytestmark\b.*\.(?:skip|xfail)\b"
            r"|^\w+ *= *(?:pytest\.mark|unittest)\.(?:skip|xfail|expectedFailure)\b"
            r"|^\s*from (?:pytest|unittest)\b.*\b(?:skip|expectedFailure) as \w+",
            r"^pytestmark\b.*\.skipif\b|allow_module_level|^\s*__test__ *= *False",
        ),
        *_marks(
            Place.AROUND,
            "",
            r"\bpytest\.(?:skip|xfail)\((?!.*allow_module_level)|\.skipTest\(|raise \S*SkipTest\b",
        ),
    ),
)

SUITE = r"describe|suite|context"
CASE = r"it|test|specify"
JAVASCRIPT = Language(
    endings=(".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue"),
    named=_re(r"[._-](?:test|spec|cy|e2e)\.[cm]?[jt]sx?$", r"^test\.[cm]?[jt]sx?$"),
    cases=(_re(rf"^[ \t]*(?:await )?[xf]?(?:{CASE})(?:\.\w+)*\(\s*{QUOTED}"),),
    groups=_re(rf"^[ \t]*[xf]?(?:{SUITE})(?:\.\w+)*\(\s*{QUOTED}"),
    tables=_re(r"\.each\b", r"\bforEach\(", r"^\s*for \("),
    marks=(
        *_marks(
            Place.HERE,
            rf"^\s*x(?:{CASE}|{SUITE})\(|\b(?:{CASE}|{SUITE})\.(?:\w+\.)*"
            r"(?:skip|todo|fails|fixme|failing)(?:\.\w+)*\(\s*(?:[\"'`]|$)|\bskip: *(?!false)\S",
            rf"\b(?:{CASE}|{SUITE})\.(?:\w+\.)*(?:skipIf|runIf)\b",
        ),
        *_marks(Place.OTHERS, rf"^\s*f(?:{CASE}|{SUITE})\(|\b(?:{CASE}|{SUITE})\.(?:\w+\.)*only\b"),
        *_marks(Place.AROUND, "", r"\b(?:this|t|ctx|context|test)\.skip\((?!\s*[\"'`])"),
    ),
)

GO = Language(
    endings=(),
    named=_re(r"_test\.go$"),
    cases=(_re(r"^func (?:\([^)]*\) )?(?P<name>(?:Test|Fuzz|Example)\w*)\("),),
    groups=_re(r"^type (?P<name>\w+) struct"),
    tables=_re(r"\.Run\("),
    marks=(
        *_marks(Place.AROUND, "", r"\b\w+\.Skip(?:f|Now)?\("),
        *_marks(Place.FILE, r"^//(?:go:build| \+build) ignore\b"),
    ),
)

RUST = Language(
    endings=(".rs",),
    named=_re(r"^tests?\.rs$", r"_tests?\.rs$", r"\.rs$"),
    cases=(
        _re(
            r"#\[(?:\w+::)*(?:test|rstest|test_case)\b.*\](?:\s*(?:#\[|//).*){0,8}"
            r"\s*(?:pub )?(?:async )?fn (?P<name>\w+)"
        ),
    ),
    groups=_re(r"^\s*mod (?P<name>\w+)"),
    tables=_re(r"#\[(?:case|test_case)\b"),
    marks=_marks(Place.BELOW, r"^\s*#\[ignore\b", r"^\s*#\[cfg_attr\(.*\bignore\b"),
)

JAVA = Language(
    endings=(".java", ".kt", ".kts", ".groovy", ".scala"),
    named=_re(r"(?:Tests?|TestCase|IT|Spec)\.(?:java|kt|groovy|scala)$", r"^Test\w+\.(?:java|kt)$"),
    cases=(
        _re(
            r"^[ \t]*@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate)\b[^\n]*"
            r"(?:\n[ \t]*(?:@|//)[^\n]*){0,8}\n?[^\n(]*?\b(?P<name>\w+|`[^`\n]+`) *\("
        ),
        _re(r"""^\s*(?:void|def) ["'](?P<name>[^"'\n]+)["'] *\("""),
    ),
    groups=_re(r"\b(?:class|object) (?P<name>\w+)"),
    tables=_re(r"@(?:ParameterizedTest|RepeatedTest|TestFactory)\b"),
    marks=(
        *_marks(
            Place.BELOW,
            r"@(?:Disabled|Ignore|Ignored|PendingFeature)\b|@Test\b.*\benabled *= *false",
            r"@(?:Disabled|Enabled)(?:On|If|For)\w*",
        ),
        *_marks(Place.AROUND, "", r"\bassum(?:e\w*|ptions?\w*)\b|new SkipException\b"),
    ),
)

RUBY_CASE = r"it|specify|example|scenario"
RUBY_SUITE = r"describe|context|feature"
RUBY = Language(
    endings=(".rb",),
    named=_re(r"_(?:spec|test)\.rb$", r"^test_.*\.rb$"),
    cases=(
        _re(rf"^[ \t]*[xf]?(?:{RUBY_CASE}|test)[ (]+{QUOTED}"),
        _re(r"^[ \t]*def (?P<name>test_\w+)"),
    ),
    groups=_re(rf"^[ \t]*(?:RSpec\.)?[xf]?(?:{RUBY_SUITE})[ (]+[\"']?(?P<name>[^\"',\n]+)"),
    tables=_re(r"\.each\b"),
    marks=(
        *_marks(
            Place.HERE,
            rf"^\s*x(?:{RUBY_CASE}|{RUBY_SUITE})\b|\b(?:skip|pending): *(?!false)\S"
            r"|, *:(?:skip|pending)\b|^\s*pending [\"'].*\bdo\b",
        ),
        *_marks(Place.OTHERS, rf"^\s*f(?:{RUBY_CASE}|{RUBY_SUITE})\b|, *:focus\b|\bfocus: *true"),
        *_marks(Place.AROUND, "", r"^\s*(?:skip|pending)\b(?!.*\bdo\b)(?! *[:=])"),
    ),
)

PHP = Language(
    endings=(".php",),
    named=_re(r"Test\.php$", r"Cest\.php$"),
    cases=(
        _re(r"\bfunction (?P<name>test\w*)"),
        _re(r"(?:#\[Test\]|@test\b)(?:\n[^\n{]*){0,4}?\bfunction (?P<name>(?!test)\w+)"),
        _re(rf"^[ \t]*(?:it|test)\( *{QUOTED}"),
    ),
    groups=_re(r"\bclass (?P<name>\w+)"),
    tables=_re(r"@dataProvider\b", r"#\[(?:DataProvider|TestWith)\b", r"->with\("),
    marks=(
        *_marks(Place.AROUND, "", r"\bmarkTest(?:Skipped|Incomplete)\("),
        *_marks(Place.AROUND, r"->(?:skip|todo)\("),
        *_marks(Place.BELOW, "", r"#\[Requires\w+\(|@requires\b"),
    ),
)

LANGUAGES = (PYTHON, JAVASCRIPT, GO, RUST, JAVA, RUBY, PHP)

SETTINGS_FILES = re.compile(
    r"(?:^|/)(?:conftest\.py|pytest\.ini|\.?pytest\.toml|tox\.ini|setup\.cfg|pyproject\.toml"
    r"|package\.json|(?:jest|vitest|vite)\.config\.\w+|\.mocharc\.?\w*|phpunit\.xml(?:\.dist)?"
    r"|\.rspec|pom\.xml|build\.gradle(?:\.kts)?)$"
)
"""Files that say which tests are run."""
LEFT_OUT = _re(
    r"\bcollect_ignore\w*",
    r"--deselect\b",
    r"--ignore(?:-glob)?[= \"',]+\S*(?:test|spec)",
    r"\btestPathIgnorePatterns\b",
    r"\bdisable_collection\b",
    r"<exclude>[^<]*(?i:test|spec)",
    r"(?i:\bexcludeTestsMatching\b)",
    r"--exclude-pattern\b",
    r"<skipTests>\s*true",
)


def language_of(path: str) -> Language | None:
    """Give the language of a file that holds tests; None for any other file."""
    parts = PurePosixPath(path)
    in_tests = not DIRECTORIES.isdisjoint(part.casefold() for part in parts.parts[:-1])
    return next(
        (
            language
            for language in LANGUAGES
            if language.named.search(parts.name) or (in_tests and parts.suffix in language.endings)
        ),
        None,
    )


def is_named_as_test(path: str) -> bool:
    """Tell whether a runner would take a file for one of tests by its name alone."""
    name = PurePosixPath(path).name
    strict: Sequence[Language] = (PYTHON, JAVASCRIPT, GO, JAVA, RUBY, PHP)
    return any(language.named.search(name) for language in strict)
