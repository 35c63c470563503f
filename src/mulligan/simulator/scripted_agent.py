"""The demo's coding agent: a script of its own that mends only what its prompt names.

Run as `python3 scripted_agent.py` in a worktree, with the prompt on standard input. It knows the
three issues of the demo by their titles, and never looks at which attempt it is: the second try
at an issue goes better only because its prompt tells what went wrong with the first.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACE = 0.05
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


def add_power(_: str) -> int:
    """Do what the first issue asks for."""
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
    """Mend the average, in the wrong place unless the prompt tells what that breaks."""
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


def make_sums_exact(_: str) -> int:
    """Try, see that it cannot be had both ways, and take it back: commits, but no change."""
    say("Trying to round the result of add()")
    replace(OPERATIONS, "    return left + right\n", "    return round(left + right, 12)\n")
    done = git("commit", "--quiet", "--all", "--message", "Round sums to twelve digits")
    say("That changes results that must not change; taking it back")
    return done or git("revert", "--no-edit", "HEAD")


TASKS: dict[str, Callable[[str], int]] = {
    "Add a power operation": add_power,
    "The average of no values is an error": mend_average,
    "Sums of decimals are not exact": make_sums_exact,
}


def say(line: str) -> None:
    """Tell what is going on, at a pace that can be followed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    time.sleep(PACE)


def append(path: Path, text: str) -> None:
    """Add to the end of a file."""
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def replace(path: Path, old: str, new: str) -> None:
    """Replace a piece of a file."""
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def git(*arguments: str) -> int:
    """Run git in the worktree; give its exit code."""
    pid = os.posix_spawnp("git", ["git", *IDENTITY, *arguments], os.environ)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def give_up() -> int:
    """Report that the prompt asks for nothing that this script knows."""
    say("I do not know this task")
    report = os.environ.get("MULLIGAN_REPORT")
    if report:
        said = {"status": "blocked", "reason": "The demo's agent knows the demo's issues only."}
        Path(report).write_text(json.dumps(said), encoding="utf-8")
    return 0


def main() -> int:
    """Read the prompt, and work on the first issue that it names."""
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    for title, work in TASKS.items():
        if title in prompt:
            say(f"Working on: {title}")
            return work(prompt)
    return give_up()


if __name__ == "__main__":
    sys.exit(main())
