"""Regular expressions are those of RE2; what it cannot do is one sentence (CONFIG-4)."""

import pytest

from mulligan.domain.patterns import (
    MAX_PATTERN_CHARS,
    MAX_TEXT_CHARS,
    PatternError,
    expression,
    expressions,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("pattern", "text", "groups"),
    [
        (r"^FAIL: (?P<test_id>\S+)", "FAIL: shop.test_a", {"test_id": "shop.test_a"}),
        (r"(?P<file>\S+):(?P<line>\d+)?", "naïve/é.py: no", {"file": "naïve/é.py", "line": None}),
        ("(?i)straße (?P<code>.)", "STRASSE STRAßE 日", {"code": "日"}),
        (r"(?P<message>a.c)$", "a😀c", {"message": "a😀c"}),
        # The differences from `re` that do not stop a pattern: these classes are of ASCII.
        (r"(?P<line>\d+)", "٣ 7", {"line": "7"}),
        (r"(?P<code>\w+)$", "naïf", {"code": "f"}),
        (r"(?P<code>[\pL]+)$", "naïf", {"code": "naïf"}),
        (r"(?<code>x)$", "x", {"code": "x"}),
    ],
)
def test_groups_are_found(pattern: str, text: str, groups: dict[str, str | None]) -> None:
    match = expression(pattern).search(text)
    assert match
    assert match.groupdict() == groups


def test_the_first_match_is_found_and_no_text_is_too_odd() -> None:
    assert expression("b+").search("abbcbbb") is not None
    match = expression("b+|bb").search("a\ud800bbc")
    assert match
    assert match[0] == "bb"
    assert expression(r"a\?b").search("a\ud800b")
    assert expression("x$").search("x\n") is None
    assert expression("b").search("a" * (MAX_TEXT_CHARS - 1) + "b")
    assert expression("b").search("a" * MAX_TEXT_CHARS + "b") is None


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)", "invalid perl operator: (?="),
        ("(?<!a)b", "invalid perl operator: (?<!"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?P<x>a)(?P=x)", "invalid perl operator: (?P"),
        ("a++", "bad repetition operator: ++"),
        (r"a\Z", r"invalid escape sequence: \Z"),
        ("(?x) a", "invalid perl operator: (?x"),
        ("(", "missing ): ("),
        ("(((a{30}){30}){30})", "invalid repetition size: {30}"),
        (r"a\pL{100}x", "pattern too large - compile failed"),
        ("\ud800", "surrogates not allowed"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason(pattern: str, why: str) -> None:
    with pytest.raises(PatternError) as refused:
        expression(pattern)
    assert why in str(refused.value)
    assert "RE2 has no look-around, no back-references" in str(refused.value)


def test_a_long_pattern_is_refused_and_the_others_still_count() -> None:
    long = "a" * MAX_PATTERN_CHARS
    assert expression(long)
    with pytest.raises(PatternError, match=f"at most {MAX_PATTERN_CHARS} characters"):
        expression(f"{long}a")
    assert expressions(["(?=a)", "b", f"{long}a"]) == (expression("b"),)
