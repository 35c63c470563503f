"""Time of what reads texts of agents grows no faster than the text, and stays above 20 MB/s.

Processor time of the best of some runs, on texts that are made to be slow.
"""

import time
from collections.abc import Callable
from itertools import count

import pytest

from mulligan.checks.digest import digest
from mulligan.text.redact import Redactor
from mulligan.text.visible import visible_text

HALF = 512 * 1024
GROWTH = 2.5
"""The most that twice the text may take, as a multiple."""
pytestmark = pytest.mark.timeout(300)
FAST = 20
"""MB/s."""
DENSE = 8
"""MB/s on texts in which every few bytes hold what looks like a secret, or a colour."""
BOUNDED = 0.3
"""MB/s: of a body of an issue only the first 64 KiB are read, however slow that is."""
READ = 1
"""MB/s of a digest: at most 240 KB of an output are read closely, however slow that is."""

RUNS = 3
KEY_BEGIN = "-----BEGIN RSA PRIVATE KEY-----"

REDACTION = {
    "the beginnings of a JWT": "-eyJ",
    "keys one after the other": f"AIza{'x' * 35}",
    "the beginnings of a key": "-sk-",
    "long words after a key": f"sk-{'a' * 300} ",
    "addresses": "://a:",
    "colons": "://" + ":" * 300,
    "headers": "authorization: bearer ",
    "private keys without an end": f"{KEY_BEGIN}\n",
    "short lines in a private key": "ab\n",
    "carriage returns": "ghp_aB3dE5gH7j\r",
    "colours": "\x1b[0mghp_\x1b[",
    "hex with spaces": "67 68 70 5f ",
    "every hint at once": "ghp_ sk- AIza ya29. AKIA secret xox .eyJ :// uthorization PRIVATE KEY",
}
MANY = {"headers", "colours"}
BEFORE = {"short lines in a private key": f"{KEY_BEGIN}\n"}

MARKDOWN = {
    "brackets": "[",
    "closed brackets": "[](",
    "comments": "<!--",
    "tags": "<a ",
    "attributes": "<p title='",
    "quotations": "> ",
    "nested lists": "- ",
    "emphasis": "*a_",
    "backticks": "`a``b",
    "tables": "|a|\n|-|\n",
    "tables of one column": "a\n-|\n",
    "list items": "- a\n",
    "paragraphs": "a\n\n",
    "footnotes": "[^a]: x\n",
    "definitions": "[a]: b\n",
    "entities": "&amp",
    "carriage returns": "\r",
    "nested subscripts": "<sub>",
    "formulas": "$\\phantom{a}$ ",
    "beginnings of formulas": "$$a $`",
}

OUTPUTS: dict[str, Callable[[int], str]] = {
    "blank lines": lambda n: "\n",
    "places": lambda n: f"src/a{n}.py:{n}:3: error: bad {n}\n",
    "words of failure": lambda n: f"w{n % 7} {chr(103 + n % 19) * (n % 31)} failed {n * 7919:x}\n",
    "words in one line": lambda n: "fail ",
    "indented errors": lambda n: " " * (n % 200) + "error\n",
    "long tabs": lambda n: "[ERROR] " + "\t" * 1400 + "FAILED x\n",
    "long brackets": lambda n: "● " + "[" * 55 + " x\n",
    "long words before a place": lambda n: "in " * 480 + "FAIL a:1 x\n",
    "long directories": lambda n: "error at " + "a/" * 700 + "\n",
    "names in names": lambda n: "a > b " * 230 + "FAIL\n",
    "open JSON": lambda n: '{"a": [\n',
    "open brackets": lambda n: "[" * 80 + "\n",
    "long open JSON": lambda n: "[" + "1," * 3000 + "\n",
    "JSON lines": lambda n: f'{{"a": {{"file": "a.py", "line": {n}, "message": "x{n}"}}}}\n',
    "JSON log": lambda n: (
        f'{{"level": "error", "ts": 1, "msg": "{chr(103 + n % 9) * (n % 50)}"}}\n'
    ),
    "tracebacks": lambda n: "Traceback (most recent call last):\n",
    "blocks of pytest": lambda n: f"____ test_{n} ____\nE   assert {n}\nFAILED a.py::t{n} - {n}\n",
    "one block of pytest": lambda n: "E   no\n" if n else "== FAILURES ==\n____ test_a ____\n",
    "places of pytest": lambda n: f"/a/b{n}.py:{n}: assert\nFAILED a.py::t{n} - zzz{n}\n",
    "numbered failures": lambda n: f"  {n}) suite\n       test {n}:\n     Error: x{n}\n",
    "packages of Go": lambda n: f"FAIL\tpkg/a{n}\t0.1s\n",
    "ends of Go": lambda n: "FAIL\n",
    "turns of Go": lambda n: f"=== RUN   TestA\n    a_test.go:{n}: got\n--- FAIL: TestA (0.00s)\n",
    "tests of cargo": lambda n: (
        f"---- t{n} stdout ----\nthread 't{n}' panicked at src/a.rs:{n}:1:\n"
    ),
    "suites of node": lambda n: f"✖ suite{n}\n▶ suite{n + 1}\n",
    "tests of one name": lambda n: f"not ok {n} - same\n  message: {n}\n",
    "rows of a table": lambda n: f"  {n}:3  error  bad thing {n}  no-x\n",
    "backspaces": lambda n: "a\b",
    "many backspaces": lambda n: "éé\b" if n % 2 else "\b\b\b",
    "carriage returns": lambda n: f"{n}% error\r",
    "escapes": lambda n: "\x1b]0;",
}


def repeated(part: str, size: int, before: str = "") -> str:
    return before + part * (size // len(part))


def numbered(part: Callable[[int], str], size: int) -> str:
    """Join parts that differ in their numbers."""
    parts, room = list[str](), size
    for text in map(part, count()):
        parts.append(text)
        room -= len(text)
        if room <= 0:
            break
    return "".join(parts)[:size]


def seconds(work: Callable[[str], object], text: str) -> float:
    times = list[float]()
    for _ in range(RUNS):
        began = time.process_time()
        work(text)
        times.append(time.process_time() - began)
    return min(times)


def measure(
    work: Callable[[str], object], name: str, text: Callable[[int], str], least: float
) -> None:
    first, second = (seconds(work, text(size)) for size in (HALF, 2 * HALF))
    print(  # noqa: T201 - what a benchmark is for
        f"{name:<32} | {first * 1000:8.1f} ms | {second * 1000:8.1f} ms"
        f" | {second / max(first, 1e-6):5.2f} | {2 * HALF / 1e6 / second:8.1f} MB/s"
    )
    # Below a millisecond the clock itself is what grows.
    assert second <= max(GROWTH * first, 0.001)
    assert 2 * HALF / 1e6 / second >= least


@pytest.mark.parametrize(("name", "part"), REDACTION.items(), ids=REDACTION)
def test_redaction(name: str, part: str) -> None:
    work = Redactor(("token-of-the-bot", "a-key-of-the-model")).text
    least, before = DENSE if name in MANY else FAST, BEFORE.get(name, "")
    measure(work, f"redaction: {name}", lambda size: repeated(part, size, before), least)


@pytest.mark.parametrize(("name", "part"), MARKDOWN.items(), ids=MARKDOWN)
def test_visible_text(name: str, part: str) -> None:
    measure(visible_text, f"visible: {name}", lambda size: repeated(part, size), BOUNDED)


@pytest.mark.parametrize("name", OUTPUTS)
def test_digests(name: str) -> None:
    def read(output: str) -> object:
        return digest(output, exit_code=1)

    measure(read, f"digest: {name}", lambda size: numbered(OUTPUTS[name], size), READ)
