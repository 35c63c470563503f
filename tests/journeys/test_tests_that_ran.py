"""A change that keeps tests from running: the attempt fails, and the next one is told (CHECK-7)."""

import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import Progress
from world.confined import sandbox
from world.place import NAME, MulliganInstallation, mulligan_installation

FILES = {
    "shop.py": "def price(n):\n    return n * 2\n",
    "test_shop.py": "from shop import price\n\ndef test_price():\n    assert price(2) == 4\n\n"
    "def test_nothing():\n    assert price(0) == 0\n",
    ".gitignore": "__pycache__/\n",
}
HIDE = """
pathlib.Path('shop.py').write_text('def price(n):\\n    return 0\\n')
pathlib.Path('pytest.ini').write_text('[pytest]\\naddopts = -k nothing\\n')
"""
RIGHT = """
pathlib.Path('shop.py').write_text('def price(n):\\n    return n + n\\n')
tests = pathlib.Path('test_shop.py')
tests.write_text(tests.read_text().replace('test_price', 'test_the_price'))
pathlib.Path('pytest.ini').write_text('[pytest]\\naddopts = -ra\\n')
"""


@pytest.fixture(params=[True, False], ids=["confined", "unconfined"])
def here(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[MulliganInstallation]:
    if request.param:
        sandbox()
    run = f"{shutil.which(sys.executable)} -B -m pytest -q -p no:cacheprovider"
    check = {"name": "tests", "run": run, "kind": "test"}
    with mulligan_installation(tmp_path, FILES, [check]) as made:
        if not request.param:
            made.configure(sandbox="off")
        yield made


def test_the_next_attempt_is_told_which_tests_did_not_run(here: MulliganInstallation) -> None:
    here.agent(f"if 'Retry context' in prompt:\n    exec({RIGHT!r})\nelse:\n    exec({HIDE!r})")
    ref = here.issue()
    assert here.run("once").returncode == 0
    first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED)
    told = here.prompt(ref, 2).partition("# Retry context")[2]
    assert "1 test ran before this change and does not run now." in told
    assert "test_shop.py::test_price" in told
    assert "although its command ended with exit code 0" in told
    # A renamed test is none that is lost, and the reviewer learns what decides about the checks.
    (pull,) = here.world.pulls_of(NAME)
    assert "The change touches `pytest.ini`, which decides how the checks run." in (pull.body or "")


BY_ATTEMPT = """
import re
number = re.search(r'Attempt (\\d) of', prompt)
text = {None: 'return 0', '2': 'return 4', '3': 'return ('}[number and number[1]]
pathlib.Path('shop.py').write_text(f'def price(n):\\n    {text}\\n')
"""


def test_the_next_attempt_is_told_what_was_fixed_of_what_ran(here: MulliganInstallation) -> None:
    here.agent(BY_ATTEMPT)
    ref = here.issue()
    here.run("once")
    _, second, third = here.attempts(ref)
    told = here.prompt(ref, 3).partition("## Observed patterns")[2]
    assert "Fixed since attempt 1: test_shop.py::test_price." in told
    assert "New since attempt 1: test_shop.py::test_nothing." in told
    (tests,) = third.checks
    # Nothing compiled, so that nothing ran: `test_nothing` is not fixed.
    assert tests.progress == Progress(since=second.number)
