"""Time of what reads texts of agents grows no faster than the text, and stays above 20 MB/s.

Processor time of the best of some runs, on texts that are made to be slow.
"""

import time
from collections.abc import Callable

import pytest

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
    "footnotes": "[^a]: x\n",
    "definitions": "[a]: b\n",
    "entities": "&amp",
    "carriage returns": "\r",
    "nested subscripts": "<sub>",
    "formulas": "$\\phantom{a}$ ",
    "beginnings of formulas": "$$a $`",
}


def repeated(part: str, size: int, before: str = "") -> str:
    return before + part * (size // len(part))


def seconds(work: Callable[[str], object], text: str) -> float:
    times = list[float]()
    for _ in range(RUNS):
        began = time.process_time()
        work(text)
        times.append(time.process_time() - began)
    return min(times)


def measure(
    work: Callable[[str], object], name: str, part: str, least: float, before: str = ""
) -> None:
    half, whole = (repeated(part, size, before) for size in (HALF, 2 * HALF))
    first, second = seconds(work, half), seconds(work, whole)
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
    least = DENSE if name in MANY else FAST
    measure(work, f"redaction: {name}", part, least, BEFORE.get(name, ""))


@pytest.mark.parametrize(("name", "part"), MARKDOWN.items(), ids=MARKDOWN)
def test_visible_text(name: str, part: str) -> None:
    measure(visible_text, f"visible: {name}", part, BOUNDED)
