"""The code around a place: what it lies in, a few lines, and never anything outside the tree."""

import os
from pathlib import Path

import pytest

from mulligan.checks.source_code import (
    FILE_BYTES,
    LANGUAGES,
    Block,
    code_around,
    enclosing,
    excerpt,
    read,
    remove,
)
from mulligan.domain.result import Finding

PYTHON = """\
import os


class Cart:
    tax = 1

    def total(
        self,
        lines,
    ):
        known = 0
        for line in lines:
            known += line
        return known


def other():
    return 2
"""
SAMPLES = {
    "a.py": (PYTHON, 13, [(4, 14), (7, 14)]),
    "a.ts": ("class A {\n  run(): number {\n    return 1;\n  }\n}\n", 3, [(1, 5), (2, 4)]),
    "a.js": ("test('adds', () => {\n  expect(1).toBe(2);\n});\n", 2, [(1, 3)]),
    "a.tsx": ("function App() {\n  return <p>1</p>;\n}\n", 2, [(1, 3)]),
    "a.go": ("package a\n\nfunc Add(a int) int {\n\treturn a\n}\n", 4, [(3, 5)]),
    "a.rs": ("impl A {\n    fn add() -> i32 {\n        1\n    }\n}\n", 3, [(1, 5), (2, 4)]),
    "A.java": ("class A {\n  int add() {\n    return 1;\n  }\n}\n", 3, [(1, 5), (2, 4)]),
    "a.c": ("int add(int a)\n{\n  return a;\n}\n", 3, [(1, 4)]),
    "a.cpp": ("struct A {\n  int add() {\n    return 1;\n  }\n};\n", 3, [(1, 5), (2, 4)]),
    "a.cs": ("class A {\n  int Add() {\n    return 1;\n  }\n}\n", 3, [(1, 5), (2, 4)]),
    "a.rb": ("class A\n  def add\n    1\n  end\nend\n", 3, [(1, 5), (2, 4)]),
    "a.php": ("<?php\nfunction add() {\n  return 1;\n}\n", 3, [(2, 4)]),
    "a.kt": ("class A {\n  fun add(): Int {\n    return 1\n  }\n}\n", 3, [(1, 5), (2, 4)]),
    "a.swift": ("func add() -> Int {\n  return 1\n}\n", 2, [(1, 3)]),
    "a.scala": ("object A {\n  def add = {\n    1\n  }\n}\n", 3, [(1, 5), (2, 4)]),
    "a.sh": ("add() {\n  echo 1\n}\n", 2, [(1, 3)]),
    "a.lua": ("function add()\n  return 1\nend\n", 2, [(1, 2)]),
    "a.unknown": ("top:\n  inner:\n\n    here\n    more\n  beside\n", 4, [(1, 6), (2, 5)]),
}


@pytest.mark.parametrize("file", SAMPLES)
def test_a_line_lies_in_functions_and_classes(file: str) -> None:
    text, line, blocks = SAMPLES[file]
    assert enclosing(text.encode(), file, line) == tuple(Block(*each) for each in blocks)


@pytest.mark.parametrize("suffix", LANGUAGES)
def test_every_grammar_is_there(suffix: str) -> None:
    assert enclosing(b"one\n two\n", f"a{suffix}", 1) == ()


@pytest.mark.parametrize("line", [0, 1, 3, 99])
def test_a_line_in_nothing_has_no_blocks(line: int) -> None:
    assert enclosing(PYTHON.encode(), "a.py", line) == ()
    assert enclosing(b"one\ntwo", "notes", line) == ()


def test_broken_code_is_no_obstacle() -> None:
    assert enclosing(b"def f(:\n  x = = 1\n\xff\xfe", "a.py", 2) in {
        (),
        (Block(1, 2),),
        (Block(1, 3),),
    }


def test_a_short_block_is_shown_whole_and_the_line_is_marked() -> None:
    lines = PYTHON.rstrip("\n").split("\n")
    assert excerpt(lines, 13, enclosing(PYTHON.encode(), "a.py", 13)).splitlines() == [
        "   4 | class Cart:",
        "     | ...",
        "   7 |     def total(",
        "   8 |         self,",
        "   9 |         lines,",
        "  10 |     ):",
        "  11 |         known = 0",
        "  12 |         for line in lines:",
        "> 13 |             known += line",
        "  14 |         return known",
        "  15 |",
        "  16 |",
    ]


def test_of_a_long_block_its_head_and_the_lines_around_are_shown() -> None:
    lines = ["def long():", *(f"    step({number})" for number in range(2, 100))]
    shown = excerpt(lines, 50, (Block(1, 99),)).splitlines()
    assert shown[:3] == ["   1 | def long():", "     | ...", "  47 |     step(47)"]
    assert shown[5] == "> 50 |     step(50)"
    assert len(shown) == 9


def found(file: str | None, line: int | None) -> Finding:
    return Finding(summary="x", file=file, line=line)


def test_each_place_is_shown_once_and_five_at_most(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PYTHON)
    (tmp_path / "ends.txt").write_text("one\n")
    (tmp_path / "data.bin").write_bytes(b"a\0b\n")
    (tmp_path / "large.py").write_bytes(b"x\n" * FILE_BYTES)
    findings = [
        *(found(None, 1), found("a.py", None), found("gone.py", 1), found("data.bin", 1)),
        *(found("large.py", 1), found("a.py", 18), found("a.py", 18), found("a.py", 99)),
        *(found(f"{tmp_path}/a.py", 1), found("./a.py", 5), found("ends.txt", 2)),
        *(found("a.py", line) for line in range(6, 12)),
    ]
    shown = code_around(tmp_path, findings)
    assert [(at.file, at.line) for at in shown] == [
        *(("a.py", 18), (f"{tmp_path}/a.py", 1), ("./a.py", 5), ("ends.txt", 2), ("a.py", 6)),
    ]
    assert shown[3].text == "> 1 | one"


@pytest.mark.parametrize(
    "file",
    ["link.py", "linked/b.py", "../b.py", "sub/../../b.py", "/etc/passwd", "", "\0", "pipe", "."],
)
def test_nothing_outside_the_tree_is_read_or_removed(tmp_path: Path, file: str) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tmp_path / "b.py").write_text("secret\n")
    (tree / "link.py").symlink_to(tmp_path / "b.py")
    (tree / "linked").symlink_to(tmp_path)
    os.mkfifo(tree / "pipe")
    assert code_around(tree, [found(file, 1)]) == ()
    assert read(tree, file, 100) is None
    remove(tree, file)
    assert (tmp_path / "b.py").exists()
    assert (tree / "link.py").is_symlink() != (file == "link.py")
