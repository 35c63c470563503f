"""The parts of an output that an agent is given: what is about failures, and what is near it."""

import pytest

from mulligan.checks.digest import digest
from mulligan.checks.digest.clean import CleanLog
from mulligan.checks.digest.windows import ALIKE, END_CHARS, LINE_CHARS, WHOLE_CHARS, windows

pytestmark = pytest.mark.pure

ROOM = 12_000


def shown(lines: list[str], room: int = ROOM, said: tuple[str, ...] = ()) -> list[str]:
    return windows(CleanLog.of("\n".join(lines)), room, said)


def filler(number: int) -> list[str]:
    """Make lines that say nothing, none like another."""
    words = ("alpha", "beta", "gamma", "delta", "omega", "sigma", "kappa")
    return [
        f"{words[n % 7]} {words[n // 7 % 7]} {words[n // 49 % 7]} {words[n // 343 % 7]} reads well"
        for n in range(number)
    ]


def test_a_short_output_is_shown_whole_without_blank_lines() -> None:
    assert shown(["one", "", "two  ", "   "]) == ["one", "two"]
    assert shown([]) == []


def test_lines_around_a_failure_and_the_end_are_shown() -> None:
    lines = filler(600)
    lines[200] = "src/a.c:3: error: no such name"
    found = shown(lines)
    at = found.index("src/a.c:3: error: no such name")
    assert found[at - 3 : at] == lines[197:200]
    assert found[at + 1 : at + 13] == lines[201:213]
    assert found[at - 4] == "[... 197 lines omitted]"
    assert found[-1] == lines[-1]
    assert sum(len(line) + 1 for line in found) < WHOLE_CHARS + END_CHARS


def test_a_passed_test_ends_what_is_near_a_failure() -> None:
    lines = filler(600)
    lines[198] = "test_old ... ok"
    lines[200] = "AssertionError: 1 != 2"
    lines[203] = "test_new ... ok"
    found = shown(lines)
    at = found.index("AssertionError: 1 != 2")
    assert found[at - 1 : at + 4] == [lines[199], lines[200], lines[201], lines[202], found[at + 3]]
    assert "test_new ... ok" not in found


def test_of_many_failures_of_one_shape_the_later_ones_stand_alone() -> None:
    block = ["ERROR: the bank of customer {0} is away", "  it was tried", "  it will be tried"]
    lines = filler(300)
    for number in range(10):
        lines += [*(line.format(number) for line in block), *filler(300)[20 * number :][:20]]
    found = shown([*lines, *filler(300)[:100]])
    first, last = (found.index(block[0].format(number)) for number in (0, 9))
    assert found[first + 1 : first + 3] == block[1:]
    assert found[last + 1].endswith("lines omitted]")


def test_an_error_that_ends_with_ok_is_shown() -> None:
    lines = filler(600)
    lines[300] = "12:00:01 ERROR smoke: GET /health answered 404 Not Found, want 200 OK"
    assert lines[300] in shown(lines)


def test_the_first_clear_failures_come_before_many_that_are_alike() -> None:
    lines = [
        f"src/a{n}.c:3: error: no such name as this one, which is long enough" for n in range(900)
    ]
    lines.append("ld: error: nothing to link")
    lines += filler(200)
    found = shown(lines, 3000)
    assert "ld: error: nothing to link" in found
    assert lines[0] in found
    assert lines[ALIKE + 200] not in found


def test_of_vague_words_the_last_come_first() -> None:
    lines = [line for n, word in enumerate(filler(900)) for line in (word, f"{word} failed {n}")]
    found = shown(lines, 2500)
    assert lines[-1] in found
    assert lines[1] not in found


def test_a_warning_has_the_file_that_stands_above_it() -> None:
    lines = filler(600)
    lines[300:303] = ["docs/a.md", "  3:1  well", "  4:1  warning  a word"]
    found = shown(lines)
    assert "docs/a.md" in found
    assert "  3:1  well" not in found


def test_what_a_command_said_last_before_it_failed_is_shown() -> None:
    lines = [*filler(300), "the disk of the machine", "error Command failed with exit code 1."]
    lines += [line.replace("reads", "cleans") for line in filler(900)]
    found = shown(lines)
    assert "the disk of the machine" in found
    assert lines[290] in found


def test_totals_of_failures_are_shown() -> None:
    lines = [*filler(300), "= 45 failed, 162298 passed in 759.43s =", *filler(600)]
    assert "= 45 failed, 162298 passed in 759.43s =" in shown(lines)


def test_nothing_is_shown_twice_and_nothing_grows_beyond_its_room() -> None:
    lines = ["error: no", *filler(600)]
    assert "error: no" not in shown(lines, ROOM, ("error: no",))
    for room in (0, 1, 40, 200, 1000):
        found = shown(lines, room)
        assert sum(len(line) + 1 for line in found) <= max(room, 60)


def test_a_long_line_is_cut_before_its_word_of_failure() -> None:
    found = shown([f"{'x ' * 400}fatal error: no{' y' * 400}"])
    assert "fatal error: no" in found[0]
    assert len(found[0]) <= LINE_CHARS + 1


def test_the_failures_that_no_window_shows_are_named() -> None:
    lines = [f"FAILED tests/test_{n}.py::test_of_{n} - no{' reason' * 30}" for n in range(90)]
    found = digest("\n".join([*lines, "90 failed in 1.00s"]), exit_code=1)
    assert len(found.text) <= ROOM
    assert "\nAlso:\n" in found.text
    assert found.text.rpartition("\n")[2].startswith("(+ ") or "test_89" in found.text


def test_the_step_right_above_an_error_is_shown_although_it_is_the_programs_log() -> None:
    steps = [line for n in range(60) for line in (f"Applying: step{n:02}.sql", f"Rows: {n}")]
    found = shown([*steps, "Applying: totals40.sql", "Error: no such column", *filler(300)])
    at = found.index("Error: no such column")
    assert found[at - 1] == "Applying: totals40.sql"
