"""Path patterns match as in .gitignore, with every name that an agent can choose (CONFIG-4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from mulligan.domain.globs import globs
from mulligan.domain.patterns import MAX_PATTERN_CHARS, PatternError

pytestmark = pytest.mark.pure

PARTS = (
    *("a", "b", "ab", "foo.py", "x.yml", "é", "A", "a b", "*", "**", "?", "*.py", "[ab]", "[!a]"),
    *(
        "a*",
        "*b",
        "a**b",
        "a?",
        r"\*",
        "[a-b]",
        "*-*",
        "[]a]",
        "[é-ü]",
        "日本*",
        "{a,b}",
        "a+",
        "$",
    ),
)
NAMES = (
    *("a", "b", "ab", "aab", "foo.py", "x.yml", "é", "ü", "A", "a b", "*", "x-y", "日本語", "]"),
    *("{a,b}", "aa", "$", "\t", "\N{NO-BREAK SPACE}", "\N{REPLACEMENT CHARACTER}"),
)


def glob_of(parts: list[str], before: str, after: str) -> str:
    return before + "/".join(parts) + after


GLOBS = st.builds(
    glob_of,
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    st.sampled_from(("", "", "/", "!", "!/")),
    st.sampled_from(("", "", "/", "/**")),
)
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


@given(st.lists(GLOBS, max_size=4), st.lists(PATHS, min_size=1, max_size=8))
def test_the_result_is_the_one_of_pathspec(patterns: list[str], paths: list[str]) -> None:
    """Its backend with `re` is right except for line ends in names."""
    spec = GitIgnoreSpec.from_lines(patterns, backend="simple")
    matched = {path for path in paths if spec.match_file(path)}
    assert globs(tuple(patterns)).select(paths) == matched


@pytest.mark.parametrize(
    ("patterns", "path", "is_matched"),
    [
        # `re` did not look behind a line end, and before one at the end of a name.
        (("prices.lock",), "x\ny/prices.lock", True),
        (("*.lock",), "x\n/y\n/prices.lock", True),
        (("docs/**/secret",), "docs/a\nb/secret", True),
        (("*",), "\n", True),
        (("**",), "\n\n", True),
        (("a",), "a\n", False),
        (("a?b",), "a\nb", True),
        # Names that UTF-8 cannot have.
        (("*.lock",), "\udcff.lock", True),
        (("a",), "\udcff", False),
        # A later pattern decides; one for the path itself decides over one for a directory.
        (("src/", "!src/b.py"), "src/b.py", False),
        (("!src/b.py", "src/"), "src/b.py", False),
        (("src/", "!src/lib/"), "src/lib/b.py", False),
        (("*.py", "!a.py", "a.py"), "x/a.py", True),
        # Case counts.
        (("README.md",), "readme.md", False),
        ((), "a", False),
    ],
)
def test_names_are_matched(patterns: tuple[str, ...], path: str, *, is_matched: bool) -> None:
    assert globs(patterns).match(path) is is_matched


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a\\", "this one is invalid"),
        ("!", "this one is invalid"),
        ("[z-a]", "this one is invalid"),
        ("[[:foo:]]", "this one is invalid"),
        ("\ud800", "this one is invalid"),
        ("", "this one matches no path"),
        ("# a", "this one matches no path"),
        ("/", "this one matches no path"),
        ("./secrets/", "write a pattern without"),
        ("!../a", "write a pattern without"),
        ("a/../b", "write a pattern without"),
        ("a/.", "write a pattern without"),
        ("//a", "write a pattern without"),
        ("a//b", "write a pattern without"),
        ("a[b", "this one matches no path"),
        ("a" * (MAX_PATTERN_CHARS + 1), f"at most {MAX_PATTERN_CHARS} characters"),
    ],
)
def test_no_pattern_is_left_out(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match="write a pattern") as refused:
        globs(("b", pattern))
    assert why in str(refused.value)


def test_too_many_patterns_are_refused() -> None:
    few = tuple(f"src/directory-{number}/**/*.py" for number in range(200))
    assert globs(few).match("src/directory-199/a/b.py")
    with pytest.raises(PatternError, match="write fewer or shorter patterns"):
        globs(tuple(f"*a{'?' * 30}{number}" for number in range(100)))
