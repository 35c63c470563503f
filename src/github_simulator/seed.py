"""The demo's world: the repository `acme/calculator`, its people, and six issues."""

from dataclasses import dataclass
from pathlib import Path

from github_simulator.bare_repository import SimulatorError, git
from github_simulator.records import IssueName
from github_simulator.world import World

REPOSITORY = "acme/calculator"

BOT = "mulligan-bot"

MAINTAINER = "maya"

READY = "mulligan"
"""The label that requests work, unless a policy has another name."""

SCRIPTED_AGENT = Path(__file__).with_name("scripted_agent.py")
"""The demo's agent: `python3` runs it, without dependencies."""

README = """# calculator

    python3 -m calculator 6 / 2

Tests need nothing but Python: `python3 -m unittest discover -v`.
"""

OPERATIONS = '''"""The operations that the calculator knows."""


class CalculatorError(Exception):
    """Something that cannot be calculated."""


def add(left, right):
    """Add two numbers."""
    return left + right


def subtract(left, right):
    """Take the right number from the left one."""
    return left - right


def multiply(left, right):
    """Multiply two numbers."""
    return left * right


def divide(left, right):
    """Divide the left number by the right one."""
    if right == 0:
        raise CalculatorError("cannot divide by zero")
    return left / right
'''

AVERAGE = '''

def average(values):
    """Give the mean of a list of numbers."""
    return divide(sum(values), len(values))
'''

COMMAND_LINE = '''"""The command line: python3 -m calculator 6 / 2"""

import sys

from calculator import operations

OPERATORS = {
    "+": operations.add,
    "-": operations.subtract,
    "*": operations.multiply,
    "/": operations.divide,
}


def calculate(left, operator, right):
    """Calculate one expression, given as three words."""
    if operator not in OPERATORS:
        raise operations.CalculatorError(f"unknown operator: {operator}")
    return OPERATORS[operator](float(left), float(right))


def main(words):
    """Print the result; 1 when there is none."""
    try:
        print(f"{calculate(*words):g}")
    except (operations.CalculatorError, TypeError, ValueError) as error:
        print(f"calculator: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
'''

TEST_OPERATIONS = """import unittest

from calculator.operations import CalculatorError, add, divide, multiply, subtract


class ArithmeticTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_subtract(self):
        self.assertEqual(subtract(2, 3), -1)

    def test_multiply(self):
        self.assertEqual(multiply(2, 3), 6)

    def test_divide(self):
        self.assertEqual(divide(6, 3), 2)

    def test_divide_by_zero(self):
        with self.assertRaises(CalculatorError, msg="dividing by zero must stay an error"):
            divide(1, 0)
"""

TEST_AVERAGE = """import unittest

from calculator.operations import average


class AverageTest(unittest.TestCase):
    def test_average(self):
        self.assertEqual(average([1, 2, 6]), 3)

    def test_average_of_one_value(self):
        self.assertEqual(average([4]), 4)
"""

TEST_COMMAND_LINE = """import unittest

from calculator.__main__ import calculate
from calculator.operations import CalculatorError


class CommandLineTest(unittest.TestCase):
    def test_words_are_calculated(self):
        self.assertEqual(calculate("6", "/", "4"), 1.5)

    def test_results_keep_every_digit(self):
        self.assertEqual(calculate("0.1", "+", "0.2"), 0.30000000000000004)

    def test_unknown_operator(self):
        with self.assertRaises(CalculatorError):
            calculate("1", "?", "2")
"""

POLICY = """# The checks that verify a change.
max_issue_attempts: 3
checks:
  - name: compiles
    run: python3 -m compileall -q calculator tests
    kind: build
    timeout: 1m
  - name: tests
    run: python3 -m unittest discover -v
    kind: test
    timeout: 1m
scope:
  deny:
    - .github/
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of the repository's history; the time is in Unix seconds."""

    author: str
    at: int
    message: str
    files: dict[str, str]


HISTORY = (
    Step(
        "Maya Lindqvist <maya@acme.example>",
        1767603600,
        "A calculator for the command line\n",
        {
            "README.md": README,
            ".gitignore": "__pycache__/\n",
            "calculator/__init__.py": "",
            "calculator/__main__.py": COMMAND_LINE,
            "calculator/operations.py": OPERATIONS,
            "tests/__init__.py": "",
            "tests/test_command_line.py": TEST_COMMAND_LINE,
            "tests/test_operations.py": TEST_OPERATIONS,
        },
    ),
    Step(
        "Sam Okafor <sam@acme.example>",
        1768212000,
        "Give the mean of a list, for the daily report\n",
        {
            "calculator/operations.py": OPERATIONS + AVERAGE,
            "tests/test_average.py": TEST_AVERAGE,
        },
    ),
    Step(
        "Maya Lindqvist <maya@acme.example>",
        1769162400,
        "Let Mulligan work on labelled issues\n",
        {".github/mulligan.yml": POLICY},
    ),
)


@dataclass(frozen=True, slots=True)
class Report:
    """An issue and its author."""

    author: str
    title: str
    body: str
    label: str


REPORTS = (
    Report(
        "sam",
        "Add a power operation",
        """People keep asking for powers. `python3 -m calculator 2 ^ 10` should print 1024.

## Success criteria

- `power(base, exponent)` in `calculator/operations.py`
- `^` works on the command line
- a test for it
""",
        "enhancement",
    ),
    Report(
        "noor",
        "The average of no values is an error",
        """`average([])` gives `CalculatorError: cannot divide by zero`. The daily report calls it
for days on which nothing was measured, and then the whole page is gone.

No values should simply mean an average of 0.
""",
        "bug",
    ),
    Report(
        "noor",
        "Sums of decimals are not exact",
        """`add(0.1, 0.2)` gives 0.30000000000000004. That should be exact, everywhere.

But please do not change any result that we return today: billing compares them to the last digit.
""",
        "bug",
    ),
    Report(
        "sam",
        "Say how it is used when words are missing",
        """`python3 -m calculator` answers `calculate() missing 3 required positional arguments`.

It should print a line that says how it is used, and exit with 2.
""",
        "enhancement",
    ),
    Report(
        "noor",
        "Turn the calculator into a web service",
        """Then the daily report could call it. `GET /?left=6&operator=/&right=2` should answer 3.
""",
        "enhancement",
    ),
    Report(
        "sam",
        "Add a remainder operation",
        """`python3 -m calculator 7 % 4` should print 3, and dividing by zero stay an error.
""",
        "enhancement",
    ),
)


@dataclass(frozen=True, slots=True)
class Seeded:
    """The result of `seed`.

    The first issue succeeds at once, the second in its second attempt, the third never. The fourth
    succeeds once its prompt says that nothing was changed. The fifth takes long, and the sixth
    succeeds at once.
    """

    repository: str
    bare: Path
    issues: tuple[IssueName, ...]


def seed(world: World, directory: Path, token: str, ready_label: str | None = READY) -> Seeded:
    """Create the repository in a directory, and the world around it.

    `token` becomes the bot's. The maintainer labels the issues, unless `ready_label` is None.
    """
    bare = make_repository(directory)
    world.add_user(BOT, "Bot", token)
    collaborators = {MAINTAINER: "admin", "sam": "write", BOT: "write"}
    world.add_repository(REPOSITORY, bare, "main", collaborators)
    issues = list[IssueName]()
    for report in REPORTS:
        ref = world.open_issue(REPOSITORY, report.title, report.body, report.author)
        world.label(ref, report.label, MAINTAINER)
        if ready_label:
            world.label(ref, ready_label, MAINTAINER)
        issues.append(ref)
    return Seeded(REPOSITORY, bare, tuple(issues))


def make_repository(directory: Path) -> Path:
    """Create the bare repository with its history; its commits are the same on every machine."""
    bare = directory / f"{REPOSITORY}.git"
    bare.mkdir(parents=True, exist_ok=True)
    stream = b"".join(_commit(step) for step in HISTORY)
    made = (
        git(bare, "init", "--quiet", "--bare", "."),
        git(bare, "symbolic-ref", "HEAD", "refs/heads/main"),
        git(bare, "fast-import", "--quiet", stdin=stream),
    )
    if None in made:
        raise SimulatorError(
            f"git could not make the demo's repository in {bare}; name an empty directory."
        )
    return bare


def _commit(step: Step) -> bytes:
    """Return a commit for `git fast-import`, on top of the one before."""
    head = f"commit refs/heads/main\ncommitter {step.author} {step.at} +0000\n"
    files = (
        f"M 100644 inline {path}\n".encode() + _sized(text) for path, text in step.files.items()
    )
    return head.encode() + _sized(step.message) + b"".join(files) + b"\n"


def _sized(text: str) -> bytes:
    raw = text.encode()
    return f"data {len(raw)}\n".encode() + raw + b"\n"
