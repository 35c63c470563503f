"""The demo's coding agent: a script that fixes only what its prompt names.

Run as `python3 scripted_agent.py` in a worktree, with the prompt on standard input. It recognises
the demo's issues by their titles, and does not know the number of the attempt. A second attempt
succeeds only because its prompt says what failed in the first.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACE = 0.05
LONG = 0.3
OPERATIONS = Path("calculator/operations.py")
COMMAND_LINE = Path("calculator/__main__.py")
IDENTITY = ("-c", "user.name=Scripted agent", "-c", "user.email=agent@localhost")

POWER = '''

def power(base, exponent):
    """Raise a number to a power."""
    return base**exponent
'''
POWER_TEST = """import unittest

from calculator.__main__ import calculate
from calculator.operations import power


class PowerTest(unittest.TestCase):
    def test_power(self):
        self.assertEqual(power(2, 10), 1024)

    def test_power_on_the_command_line(self):
        self.assertEqual(calculate("2", "^", "10"), 1024)
"""
AVERAGE_TEST = """
    def test_average_of_no_values(self):
        self.assertEqual(average([]), 0)
"""
ZERO_CHECK = """    if right == 0:
        raise CalculatorError("cannot divide by zero")
"""
ZERO_GIVES_ZERO = """    if right == 0:
        return 0
"""
MEAN = "    return divide(sum(values), len(values))\n"
USAGE_BEFORE = '    """Print the result; 1 when there is none."""\n'
USAGE = """    if len(words) != 3:
        print("usage: python3 -m calculator LEFT OPERATOR RIGHT", file=sys.stderr)
        return 2
"""
USAGE_TEST = """import contextlib
import io
import unittest

from calculator.__main__ import main


class UsageTest(unittest.TestCase):
    def test_missing_words_are_answered_with_the_usage(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(main(["6", "/"]), 2)
        self.assertIn("usage:", said.getvalue())
"""
SERVICE = '''"""Answers GET /?left=6&operator=/&right=2 with 3."""

import http.server
import urllib.parse

from calculator.__main__ import calculate


class Calculator(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        query = urllib.parse.urlsplit(self.path).query
        asked = dict(urllib.parse.parse_qsl(query))
        words = asked["left"], asked["operator"], asked["right"]
        result = calculate(*words)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{result:g}".encode())


def serve(port):
    http.server.HTTPServer(("127.0.0.1", port), Calculator).serve_forever()
'''
REMAINDER = '''

def remainder(left, right):
    """Return what is left when the left number is divided by the right one."""
    if right == 0:
        raise CalculatorError("cannot divide by zero")
    return left % right
'''
EXACT = '''

def exact_sum(left, right):
    """Add two numbers, rounded to ten digits; add() stays as it is."""
    return round(left + right, 10)
'''
EXACT_TEST = """import unittest

from calculator.operations import add, exact_sum


class ExactSumTest(unittest.TestCase):
    def test_sums_are_exact(self):
        self.assertEqual(exact_sum(0.1, 0.2), 0.3)

    def test_add_gives_what_it_gave(self):
        self.assertEqual(add(0.1, 0.2), 0.30000000000000004)
"""
REMAINDER_TEST = """import unittest

from calculator.__main__ import calculate
from calculator.operations import CalculatorError, remainder


class RemainderTest(unittest.TestCase):
    def test_remainder_on_the_command_line(self):
        self.assertEqual(calculate("7", "%", "4"), 3)

    def test_remainder_of_a_division_by_zero(self):
        with self.assertRaises(CalculatorError):
            remainder(1, 0)
"""


def add_power(_: str) -> int:
    """Fix the first issue."""
    say("Reading calculator/operations.py and calculator/__main__.py")
    append(OPERATIONS, POWER)
    replace(
        COMMAND_LINE, "operations.divide,\n", 'operations.divide,\n    "^": operations.power,\n'
    )
    say("Added power() and the operator ^")
    Path("tests/test_power.py").write_text(POWER_TEST, encoding="utf-8")
    say("Added tests/test_power.py. Done.")
    return 0


def mend_average(prompt: str) -> int:
    """Fix the average, in the wrong place unless the prompt names the test that this breaks."""
    append(Path("tests/test_average.py"), AVERAGE_TEST)
    if "test_divide_by_zero" in prompt and "CalculatorError not raised" in prompt:
        say("test_divide_by_zero failed last time: divide() has to keep raising its error")
        replace(OPERATIONS, MEAN, f"    if not values:\n        return 0\n{MEAN}")
        say("average() now looks for an empty list itself; divide() is as it was. Done.")
        return 0
    say("The error comes from divide(), so that is the place")
    replace(OPERATIONS, ZERO_CHECK, ZERO_GIVES_ZERO)
    say("divide() now gives 0 instead of an error. Done.")
    return 0


def make_sums_exact(prompt: str) -> int:
    """Follow a maintainer's instruction; without one, commit and revert: a zero diff."""
    if GUIDANCE.search(prompt):
        say("A maintainer has decided: a function of its own, and add() stays as it is")
        append(OPERATIONS, EXACT)
        Path("tests/test_exact_sum.py").write_text(EXACT_TEST, encoding="utf-8")
        say("Added exact_sum() and tests/test_exact_sum.py. Done.")
        return 0
    say("Trying to round the result of add()")
    replace(OPERATIONS, "    return left + right\n", "    return round(left + right, 12)\n")
    done = git("commit", "--quiet", "--all", "--message", "Round sums to twelve digits")
    say("That changes results that must not change; taking it back")
    git("revert", "--no-commit", "HEAD")
    return done or git("commit", "--quiet", "--message", "Take the rounding back")


def explain_usage(prompt: str) -> int:
    """Ask a question first, unless the prompt says that the last attempt changed nothing."""
    if "changed nothing" not in prompt:
        say("I would check in main() that there are three words, and print a usage line if not.")
        say("Shall I make that change?")
        return 0
    say("Nothing was changed last time, so this time without asking")
    replace(COMMAND_LINE, USAGE_BEFORE, USAGE_BEFORE + USAGE)
    Path("tests/test_usage.py").write_text(USAGE_TEST, encoding="utf-8")
    say("main() prints how it is used; added tests/test_usage.py. Done.")
    return 0


def add_service(_: str) -> int:
    """Work for some seconds, line by line, so that there is time to stop it."""
    say("This is a larger piece of work")
    service = Path("calculator/service.py")
    service.touch()
    for line in SERVICE.splitlines(keepends=True):
        append(service, line)
        say(f"Wrote {line.strip() or 'an empty line'}", LONG)
    say("Added calculator/service.py. Done.")
    return 0


def add_remainder(_: str) -> int:
    """Fix the last issue."""
    append(OPERATIONS, REMAINDER)
    replace(
        COMMAND_LINE, "operations.divide,\n", 'operations.divide,\n    "%": operations.remainder,\n'
    )
    say("Added remainder() and the operator %")
    Path("tests/test_remainder.py").write_text(REMAINDER_TEST, encoding="utf-8")
    say("Added tests/test_remainder.py. Done.")
    return 0


TASKS: dict[str, Callable[[str], int]] = {
    "Add a power operation": add_power,
    "The average of no values is an error": mend_average,
    "Sums of decimals are not exact": make_sums_exact,
    "Say how it is used when words are missing": explain_usage,
    "Turn the calculator into a web service": add_service,
    "Add a remainder operation": add_remainder,
}


GUIDANCE = re.compile(r'<guidance-(\w+) from="[^"\n]*">\n(.*?)\n</guidance-\1>', re.DOTALL)

REVIEW = re.compile(r'<untrusted-(\w+) from="the review">\n(.*?)\n</untrusted-\1>', re.DOTALL)

DONE: dict[str, tuple[Path, str]] = {
    "Add a power operation": (OPERATIONS, "def power("),
    "The average of no values is an error": (Path("tests/test_average.py"), "no_values"),
    "Sums of decimals are not exact": (OPERATIONS, "def exact_sum("),
    "Say how it is used when words are missing": (COMMAND_LINE, "usage:"),
    "Turn the calculator into a web service": (Path("calculator/service.py"), "def serve("),
    "Add a remainder operation": (OPERATIONS, "def remainder("),
}
"""By title, the text in a file that shows that the work is there already."""


def is_done(title: str) -> bool:
    """Return whether the worktree has the work already, as that of a pull request may have."""
    path, text = DONE[title]
    return path.exists() and text in path.read_text(encoding="utf-8")


def answer_review(review: str) -> None:
    """Write the text of a review into the README; this script can do no more."""
    asked = [line for line in review.splitlines() if line.strip() and not line.endswith(":")]
    words = asked[0].strip() if asked else "a change"
    append(Path("README.md"), f"\nFrom the review: {words}\n")
    say(f"Wrote into README.md what the review asks: {words}")


def say(line: str, pause: float = PACE) -> None:
    """Print what happens, slowly enough to follow."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    time.sleep(pause)


def append(path: Path, text: str) -> None:
    """Append to a file."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def replace(path: Path, old: str, new: str) -> None:
    """Replace text in a file."""
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def git(*arguments: str) -> int:
    """Run git in the worktree; return its exit code."""
    pid = os.posix_spawnp("git", ["git", *IDENTITY, *arguments], os.environ)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def give_up() -> int:
    """Report that the prompt names no known issue."""
    say("I do not know this task")
    report = os.environ.get("MULLIGAN_REPORT")
    if report:
        refusal = {"status": "blocked", "reason": "The demo's agent knows the demo's issues only."}
        Path(report).write_text(json.dumps(refusal), encoding="utf-8")
    return 0


def main() -> int:
    """Read the prompt, and work on the first issue that it names."""
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    for title, work in TASKS.items():
        if title in prompt:
            if review := REVIEW.search(prompt):
                answer_review(review[2])
                return 0 if is_done(title) else work(prompt)
            say(f"Working on: {title}")
            return work(prompt)
    return give_up()


if __name__ == "__main__":
    sys.exit(main())
