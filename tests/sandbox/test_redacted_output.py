"""What a command prints is redacted before anybody sees it, whatever pieces it comes in."""

from dataclasses import replace
from pathlib import Path

from mulligan.sandbox.process import Command, run
from mulligan.text.redact import Redactor
from world.processes import shell

SECRET = "token-of-the-bot"


def redacted(line: str, directory: Path) -> Command:
    return replace(shell(line, directory), log=directory / "log", redactor=Redactor((SECRET,)))


def test_a_secret_in_two_pieces_is_in_neither_the_log_nor_the_end(tmp_path: Path) -> None:
    line = "printf 'it is token-of'; sleep 0.1; printf -- '-the-bot\\nand no more'"
    finished = run(redacted(line, tmp_path))
    assert finished.text == "it is [redacted]\nand no more"
    assert (tmp_path / "log").read_text() == finished.text
    assert finished.output_bytes == len(finished.text)


def test_lines_are_in_the_log_while_the_command_runs(tmp_path: Path) -> None:
    line = "echo one; for i in 1 2 3 4 5 6 7 8 9; do grep -q one log && exit 0; sleep 0.2; done"
    assert run(redacted(f"{line}; exit 1", tmp_path)).exit_code == 0


def test_a_log_that_is_full_is_no_longer_than_it_may_be(tmp_path: Path) -> None:
    command = replace(redacted(f"echo {SECRET}; echo {'x' * 100}", tmp_path), max_log_bytes=20)
    finished = run(command)
    assert (tmp_path / "log").read_text() == "[redacted]\nxxxxxxxxx"
    assert finished.output_bytes == 112


def test_without_a_filter_output_is_as_it_came(tmp_path: Path) -> None:
    assert run(replace(redacted(f"echo {SECRET}", tmp_path), redactor=None)).text == f"{SECRET}\n"
