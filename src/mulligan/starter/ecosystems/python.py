"""Python: pytest, unittest, tox, nox; ruff and mypy where the repository has them set. Pure."""

import re
from dataclasses import replace
from shlex import quote

from mulligan.starter.ecosystems.python_needs import needs
from mulligan.starter.proposal import Proposal, Proposed, lint, suite, types
from mulligan.starter.tree import Tree, part

BIN = ".venv/bin/"
VENV = "python3 -m venv .venv && echo '*' > .venv/.gitignore"
"""The environment lies in the worktree; git is told there to look past it."""

PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "tox.ini", "noxfile.py")
TESTS = ("test_*.py", "tests/*.py", "test/*.py")
PYTEST_FILES = ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
SETTINGS = ("*.toml", "*.cfg", "*.ini", "*.txt", "requirements/*.txt")
PYTEST = re.compile(r"(?:(?:python3?|uv run|poetry run)(?: -m)? )?(?:python3? -m )?pytest( .*)?")
UNITTEST = re.compile(r"python3? (-m unittest.*)")
TOOLS = {"pytest", "tox", "nox", "ruff", "mypy", "flake8"}
"""What pip installs by the name of the program."""

SESSION = re.compile(r"^@nox\.session.*\n(?:@.*\n)*def (\w+)\(", re.MULTILINE)


def propose(tree: Tree) -> Proposal | None:
    """Propose for a repository with Python in it."""
    if not tree.has(*PROJECT, *TESTS):
        return None
    runner, prepared = _runner(tree)
    checks = [each for each in (_tests(tree, runner), *_others(tree, runner)) if each]
    tools = [_tool(check.run, runner) for check in checks]
    wanted = tuple(tool for tool in tools if tool in TOOLS)
    if prepared is not None:
        return Proposal("Python", prepared, tuple(checks))
    by_itself = bool({"tox", "nox"}.intersection(wanted))
    installs = wanted if by_itself else needs(tree, wanted)
    if not installs:
        return Proposal("Python", (), tuple(_by_the_system(check) for check in checks))
    line = f"{BIN}pip install --quiet {' '.join(map(quote_argument, installs))}"
    return Proposal("Python", (VENV, line), tuple(checks))


def quote_argument(argument: str) -> str:
    """Quote an argument of pip; what names a file goes after its flag."""
    flag, space, rest = argument.partition(" ")
    return f"{flag} {quote(rest)}" if space and flag in {"-r", "-e"} else quote(argument)


def _runner(tree: Tree) -> tuple[str, tuple[str, ...] | None]:
    """Say what commands begin with, and the set-up where a tool of its own does that."""
    if "uv.lock" in tree.paths:
        return "uv run --offline ", ("uv sync --frozen --all-groups --all-extras",)
    if "poetry.lock" in tree.paths:
        return "poetry run ", ("poetry install --no-interaction",)
    return BIN, None


def _tests(tree: Tree, runner: str) -> Proposed | None:
    if found := tree.in_ci(PYTEST.pattern):
        return suite(f"{runner}python -m pytest{_rest(PYTEST, found)}", "the CI workflow")
    if found := tree.in_ci(UNITTEST.pattern):
        return suite(f"{runner}python{_rest(UNITTEST, found, ' ')}", "the CI workflow")
    if tree.has(*PYTEST_FILES) or tree.says(r"\bpytest\b", *SETTINGS, *TESTS):
        source = tree.first(*PYTEST_FILES, "pyproject.toml", "setup.cfg", "tox.ini")
        return suite(f"{runner}python -m pytest -q", source or "the tests")
    if "tox.ini" in tree.paths or part(tree.mapping("pyproject.toml"), "tool", "tox"):
        return suite(f"{runner}tox -q -e py", "tox.ini", network=True)
    sessions = [name for name in SESSION.findall(tree.text("noxfile.py")) if "test" in name]
    for session in sessions[:1]:
        return suite(f"{runner}nox -s {session}", "noxfile.py", network=True)
    return _unittest(tree, runner)


def _unittest(tree: Tree, runner: str) -> Proposed | None:
    for place in ("tests", "test"):
        if tree.has(f"{place}/test*.py"):
            top = " -t ." if f"{place}/__init__.py" in tree.paths else ""
            return suite(f"{runner}python -m unittest discover -s {place}{top}", f"{place}/")
    return suite(f"{runner}python -m unittest", "test_*.py") if tree.has("test_*.py") else None


def _others(tree: Tree, runner: str) -> list[Proposed]:
    """Propose the linter and the type checker that the repository configures."""
    settings, found = part(tree.mapping("pyproject.toml"), "tool"), list[Proposed]()
    if part(settings, "ruff") is not None or tree.has("ruff.toml", ".ruff.toml"):
        found.append(
            lint(f"{runner}ruff check .", tree.first("ruff.toml", ".ruff.toml") or "pyproject.toml")
        )
    elif tree.has(".flake8") or tree.says(r"^\[flake8\]", "setup.cfg", "tox.ini"):
        found.append(lint(f"{runner}flake8", tree.first(".flake8", "setup.cfg", "tox.ini") or ""))
    mypy = part(settings, "mypy")
    if mypy is not None or "mypy.ini" in tree.paths or tree.says(r"^\[mypy\]", "setup.cfg"):
        named = part(mypy, "files") or tree.says(r"^files\s*=", "mypy.ini", "setup.cfg")
        found.append(types(f"{runner}mypy{'' if named else ' .'}", "the configuration of mypy"))
    return found


def _rest(pattern: re.Pattern[str], line: str, before: str = "") -> str:
    """Give the arguments that CI passes on."""
    found = pattern.fullmatch(line)
    return f"{before}{found[1] or ''}" if found else ""


def _tool(run: str, runner: str) -> str:
    program, *rest = run.removeprefix(runner).split()
    return rest[1] if program == "python" and rest[:1] == ["-m"] else program


def _by_the_system(check: Proposed) -> Proposed:
    """Let the system's own Python do it, where there is nothing to install."""
    return replace(check, run=f"python3{check.run.removeprefix(f'{BIN}python')}")
