"""From what was written for a terminal, in any encoding and size, to lines that were kept."""

import io
import os
import subprocess
import sys
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.checks.digest.clean import (
    CHUNK,
    CleanLog,
    as_text,
    chunks,
    clean,
    clip_line,
    collector_prefixes,
    reduce_output,
    without_prefixes,
)
from mulligan.checks.digest.documents import without_quiet_records

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"plain\ttext\n", b"plain\ttext\n"),
        (b"\x1b[31mred\x1b[0m \x1b[1;4mbold\x1b[m", b"red bold"),
        (b"a\x1b[2Kb\x1b[?25l", b"ab"),
        (b"one\x1b[1Atwo\x1b[3;1Hthree", b"one\ntwo\nthree"),
        (b"20%\x1b[1G40%", b"40%"),
        (b"a\x1b[3Cb", b"a b"),
        (b"\x1b]0;title\x07text", b"text"),
        (b"\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", b"link"),
        (b"\x1b]0;never ended\nnext", b"\nnext"),
        (b"\x1bPq#0\x1b\\after \x1b(B\x1bMlast\x1b", b"after last"),
        (b"a\0b\x01c\x7fd", b"abcd"),
        (b"1 failed\n\x89PNG\x1a\x00\xff\x08\xfe\nend", b"1 failed\n\nend"),
        ("caf\u00e9 failed".encode("latin-1") + b"\n\x1f\x8b\x08\x00\xf4\x03", b"caf\xe9 failed\n"),
        (b"ab\bc \xc3\xa9\bd", b"ac d"),
        (b"a\xff\bb\n\bc", b"ab\nc"),
        (b"x" * 2**16 + b"\b\b\xc3\xa9\b", b"x" * (2**16 - 1)),
        (b"dos\r\nlines\r\n", b"dos\nlines\n"),
        (b"1%\r2%\r3%\nnext", b"3%\nnext"),
        (b"1%\rerror: torn\rdone\r\n", b"error: torn\ndone\n"),
        (b"failed 1\rfailed 2\rdone", b"failed 2\ndone"),
        (b"\r\r\n", b"\n"),
    ],
)
def test_terminal_codes_leave_the_lines_as_they_were_seen(written: bytes, read: bytes) -> None:
    assert clean(written) == read


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"as it is  \t", "as it is"),
        (b"bad \xff byte", "bad \N{REPLACEMENT CHARACTER} byte"),
        ("tab\there \u2028 \x9b".encode(), "tab\there"),
        ("é ✗ 💥".encode(), "é ✗ 💥"),
    ],
)
def test_lines_become_valid_text(line: bytes, text: str) -> None:
    assert as_text(line).strip() == text


def test_long_lines_keep_their_ends_and_what_is_loud() -> None:
    line = (
        b"begin" + b"a" * 50_000 + b" error: one " + b"b" * 50_000 + b" FAILED two " + b"c" * 9999
    )
    clipped = clip_line(line + b"end")
    assert len(clipped) < 2500
    for part in (b"begin", b"error: one", b"FAILED two", b"end"):
        assert part in clipped
    assert clip_line(b"short") == b"short"


def test_neighbouring_loud_words_are_kept_once() -> None:
    line = b"a" * 3000 + b" error: it failed: panic: abort " + b"b" * 3000
    assert clip_line(line).count(b"panic") == 1


def test_a_line_full_of_loud_words_stays_within_its_limit() -> None:
    words = [b"error", b"fail", b"fatal", b"panic", b"exception", b"denied", b"not found", b"abort"]
    line = b"".join(b"x" * 900 + word for word in words * 2) + b"x" * 900
    assert len(clip_line(line)) < 2500


@pytest.mark.parametrize(
    ("lines", "stripped"),
    [
        ([b"2024-05-01T12:00:00.123Z text"] * 5, b"text"),
        ([b"[2024-05-01 12:00:00,123] text"] * 5, b"text"),
        ([b"12:00:00 text"] * 5, b"text"),
        ([b"api_1  | text"] * 5, b"text"),
        ([b"api_1  | 2024-05-01 12:00:00 text"] * 5, b"text"),
        ([b"#12 0.345 text"] * 5, b"text"),
        ([b"web:build: text"] * 5, b"text"),
        ([b"12:00:00 O: text"] * 5, b"text"),
        ([b"12:00:00 text"] * 3, b"12:00:00 text"),
        ([b"12:00:00 text"] * 3 + [b"text"] * 3, b"12:00:00 text"),
        ([b"12 | code", b" 13 | more"] * 4, b"12 | code"),
        ([b""] * 9, b""),
    ],
)
def test_what_log_collectors_put_before_each_line_is_found(
    lines: list[bytes], stripped: bytes
) -> None:
    assert without_prefixes(lines[0], collector_prefixes(lines)) == stripped


@pytest.mark.parametrize(
    "prefix",
    [
        *("{}  | ", "@shop/{}:test: ", "packages/{} test: ", "@shop/{}: ", "{}\t", "[{}] "),
        *("12:00:01 {}    | ", "build\t{}\t2026-01-02T03:04:05.123Z "),
    ],
)
def test_lines_of_programs_that_print_between_each_other_are_sorted(prefix: str) -> None:
    a, b = (prefix.format(name) for name in ("part1", "part2"))
    lines = [b"start", *(f"{p}line {n}".encode() for n in range(4) for p in (a, b)), b"the end"]
    text = without_prefixes(b"\n".join(lines), collector_prefixes(lines)).decode().split("\n")
    told = [line for line in text if line.startswith("line")]
    assert told == [f"line {n}" for _ in "ab" for n in range(4)]
    turns = [line for line in text if line.startswith("==> ") and "part" in line]
    assert ["part1" in turns[0], "part2" in turns[1]] == [True, True]
    assert (text[0], text[-1]) == ("start", "the end")


def test_the_first_word_of_a_log_is_no_program() -> None:
    lines = [f"key{n}\tvalue".encode() for n in range(300)]
    assert collector_prefixes(lines) == []


class Trickle(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def read(self, size: int = -1) -> bytes:
        piece, self.left = self.left[:7], self.left[7:]
        return piece


def lines_of(parts: Iterable[bytes]) -> list[bytes]:
    return [line for part in parts for line in part.split(b"\n")]


@given(st.lists(st.binary(max_size=30).map(lambda b: b.translate(None, b"\n\r\b\x1b")), min_size=1))
def test_a_stream_is_cut_at_ends_of_lines_only(lines: list[bytes]) -> None:
    output = b"\n".join([b"first", *lines, b"last"])
    whole = list(chunks(output))
    slow = list(chunks(Trickle(output)))  # pyright: ignore[reportArgumentType] - a raw pipe reads as a file does
    assert lines_of(whole) == lines_of(slow)
    assert len(lines_of(whole)) == len(lines) + 2


def test_large_outputs_come_in_chunks_of_whole_lines() -> None:
    line = b"x" * 99 + b"\n"
    parts = list(chunks(line * 40_000))
    assert len(parts) == 4
    assert all(len(part) <= 2 * CHUNK for part in parts)
    assert {len(text) for text in lines_of(parts)} == {99}
    assert len(lines_of(parts)) == 40_000
    assert lines_of(chunks((line * 40_000).decode())) == lines_of(parts)


def test_a_progress_bar_without_any_end_of_line_is_cut_where_it_was_printed_over() -> None:
    parts = list(chunks(b"".join(b"\r%7d%% done" % number for number in range(200_000))))
    assert len(parts) > 2
    assert lines_of(parts)[-1] == b" 199999% done"
    assert len(lines_of(parts)) == len(parts)


def kept(output: bytes) -> CleanLog:
    return reduce_output(chunks(output))


@given(st.lists(st.text("ab é✗", max_size=20), max_size=60))
def test_a_small_output_is_kept_whole(lines: list[str]) -> None:
    log = kept("\n".join([*lines, "end"]).encode())
    assert list(log.lines) == [*(line.rstrip() for line in lines), "end"]
    assert log.numbers == tuple(range(1, len(lines) + 2))
    assert log.total == len(lines) + 1


def test_of_a_large_output_ends_and_telling_lines_are_kept() -> None:
    noise = b"".join(b"line %d is fine and says nothing\n" % number for number in range(60_000))
    told = b"before\n" * 3 + b"src/a.c:3:5: error: expected ';'\n" + b"after\n" * 4
    log = kept(noise + told + noise)
    assert log.total == 120_008
    assert log.lines[0] == "line 0 is fine and says nothing"
    assert log.lines[-1] == "line 59999 is fine and says nothing"
    at = log.lines.index("src/a.c:3:5: error: expected ';'")
    assert log.numbers[at] == 60_004
    assert log.lines[at - 3 : at + 5] == ("before",) * 3 + (log.lines[at],) + ("after",) * 4
    assert len(log.lines) < 9000
    assert log.omitted_before(0) == 0
    assert sum(log.omitted_before(index) for index in range(len(log.lines))) == (
        log.total - len(log.lines)
    )


def test_what_is_said_thousands_of_times_is_kept_a_hundred_times() -> None:
    log_line = b"ERROR app.retry: attempt %d failed: connection refused\n"
    noise = b"".join(log_line % number for number in range(40_000))
    log = kept(noise + b"thread 'main' panicked at src/main.rs:3:5:\n" + noise)
    assert any("panicked" in line for line in log.lines)
    assert len(log.lines) < 5000


def test_context_is_kept_over_the_end_of_a_chunk() -> None:
    line = b"nothing to see here, please go on reading elsewhere %07d\n"
    before = b"".join(line % number for number in range(3 * CHUNK // 60))
    cut = before[: before.rfind(b"\n", 0, 2 * CHUNK - 70) + 1]
    log = kept(cut + b"panic: at the very end\n" + b"then this %d\n" * 9 + before)
    at = log.lines.index("panic: at the very end")
    assert log.lines[at + 1 : at + 5] == ("then this %d",) * 4


def test_where_every_line_is_new_the_loud_words_are_still_found() -> None:
    words = [f"{number * 7919 % 100_003:x}-{number * 104_729:x}" for number in range(60_000)]
    noise = "\n".join(word * 4 for word in words).encode() + b"\n"
    for loud in (b"fatal: no such ref", b"lib/deep/name.go:12:5: something"):
        log = kept(noise + loud + b"\n" + noise)
        assert loud.decode() in log.lines


def test_of_many_different_errors_in_a_json_log_the_ends_are_read() -> None:
    words = ["".join(pair) for pair in product("ghijklmn", repeat=5)][:6000]
    lines = [f'{{"level": "error", "ts": 1, "msg": "no {word}"}}' for word in words]
    (piece,) = without_quiet_records(["\n".join(lines).encode()])
    read = [line for line in piece.split(b"\n") if line]
    assert (len(read), read[0]) == (1000, b"ERROR: no ggggg")
    assert read[-1] == f"ERROR: no {words[-1]}".encode()


def test_where_every_line_is_new_and_loud_the_ends_are_kept() -> None:
    words = [f"{number * 7919 % 100_003:x}q" * 3 for number in range(50_000)]
    noise = "\n".join(f"{word} error: no {word}" for word in words).encode()
    log = kept(noise)
    assert log.lines[0].startswith("0q")
    assert log.lines[-1] == f"{words[-1]} error: no {words[-1]}"
    assert 500 < len(log.lines) < 15_000
    assert sum(map(len, log.lines)) < 1_000_000


def test_a_named_failure_stays_among_lines_that_are_loud() -> None:
    words = ("".join(chr(103 + n // 20**at % 20) for at in range(4)) for n in range(20_000))
    loud = [f"the {word} cannot be reached {'on its way ' * 9}\n".encode() for word in words]
    named = b"--- FAIL: TestMiddle (0.00s)\n    middle.go:3: of two\n"
    log = kept(b"".join([*loud[:2000], named, *loud[2000:]]))
    assert log.total == len(loud) + 2
    assert "--- FAIL: TestMiddle (0.00s)" in log.lines
    assert "    middle.go:3: of two" in log.lines
    assert sum("cannot be reached" in line for line in log.lines) > 100


@pytest.mark.deep
def test_after_thousands_of_different_errors_the_next_one_is_still_weighed() -> None:
    words = (
        "".join(chr(97 + number // 26**at % 26) for at in range(4)) for number in range(160_000)
    )
    noise = "".join(f"the {word} cannot be reached {'on its way ' * 9}\n" for word in words)
    log = kept(noise.encode() + b"--- FAIL: TestLate (0.00s)\n" + noise[: 4 * CHUNK].encode())
    assert "--- FAIL: TestLate (0.00s)" in log.lines


KEPT_OF_MANY_SHAPES = """
from mulligan.checks.digest.clean import chunks, reduce_output
words = ("".join(chr(103 + n // 20**at % 20) for at in range(4)) for n in range(5_000))
lines = (f"the {word} cannot be reached {'on its way ' * 9}" for word in words)
print(*reduce_output(chunks("\\n".join(lines))).numbers)
"""


def test_the_same_lines_are_kept_in_every_process() -> None:
    kept = {
        subprocess.run(
            [sys.executable, "-c", KEPT_OF_MANY_SHAPES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(kept) == 1
    assert len(kept.pop().split()) < 5_000


def test_a_log_knows_what_it_holds() -> None:
    log = CleanLog.of("a\nb\n\nc")
    assert log.without({1, 2}).lines == ("a", "", "", "c")
    assert not log.is_blank
    assert CleanLog.of(" \n").is_blank
    assert CleanLog().is_blank


RECORD = b'{"level": "error", "ts": 1, '


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        (RECORD + b'"msg": "cut', RECORD + b'"msg": "cut'),
        (b'{"severity": "error", "time": "cut', b'{"severity": "error", "time": "cut'),
        (RECORD + b"broken}", RECORD + b"broken}"),
        (
            RECORD + b'"msg": "m", "exc_info": ["one", "two"], "error": 5}',
            b"ERROR: m\none\ntwo",
        ),
        (RECORD + b'"msg": "m", "error": {"err": {"err": {"err": "deep"}}}}', b"ERROR: m"),
        (
            RECORD + b'"msg": "m", "exception": {"exc_type": "KeyError", "exc_value": "x", '
            b'"frames": [{"filename": "a.py", "lineno": 3, "name": "load"}, "odd"]}}',
            (
                b"ERROR: m\nTraceback (most recent call last):\n"
                b'  File "a.py", line 3, in load\nKeyError: x'
            ),
        ),
        (
            RECORD + b'"msg": "m", "exception": {"type": "E", "value": "x", "stacktrace": '
            b'{"frames": [{"file": "a.py", "line": 3, "function": "f"}]}}}',
            b'ERROR: m\nTraceback (most recent call last):\n  File "a.py", line 3, in f\nE: x',
        ),
        (RECORD + b'"msg": "m", "exception": {"message": "x", "frames": 7}}', b"ERROR: m\nx"),
        (
            RECORD + b'"msg": "m", "sku": "A-1", "net": -30, "pid": 7, "tags": ["x"]}',
            b"ERROR: m sku=A-1 net=-30",
        ),
    ],
)
def test_a_record_is_a_line_for_people_if_it_can_be_read(line: bytes, plain: bytes) -> None:
    assert b"".join(without_quiet_records([line])) == plain


def test_records_that_say_the_same_are_kept_thirty_times() -> None:
    piece = b"\n".join([RECORD + b'"msg": "m"}'] * 40)
    assert b"".join(without_quiet_records([piece])).split(b"\n") == [b"ERROR: m"] * 30
