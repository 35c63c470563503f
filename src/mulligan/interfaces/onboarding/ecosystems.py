"""Propose checks and setup commands for each ecosystem, from a repository's files. Pure."""

import re
from collections.abc import Callable
from dataclasses import replace
from shlex import quote

from mulligan.domain.repairing import checking_form
from mulligan.interfaces.onboarding.ci_checks import (
    LOCKS,
    VENV,
    cargo_lock,
    checking_script,
    npm_install,
    ruff_repairs,
)
from mulligan.interfaces.onboarding.development import requirements
from mulligan.interfaces.onboarding.managers import ON_PATH, installable, installing
from mulligan.interfaces.onboarding.proposal import (
    Proposal,
    ProposedCheck,
    build,
    lint,
    merge_proposals,
    suite,
    types,
)
from mulligan.interfaces.onboarding.tree import (
    Machine,
    RepositoryFiles,
    keys_of,
    mapping_of,
    part,
    texts_of,
)

# All ecosystems


def propose_from_files(tree: RepositoryFiles, machine: Machine) -> Proposal:
    """Propose setup commands and checks from lock files and manifests; else from a Makefile."""
    found = [proposal for each in ECOSYSTEMS if (proposal := each(tree, machine))]
    with_checks = [each for each in found if each.checks]
    by_make = propose_make(tree)
    return merge_proposals(with_checks or ([by_make] if by_make else []))


# Python

PROJECT = ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "tox.ini", "noxfile.py")
TESTS = ("test_*.py", "tests/*.py", "test/*.py")

TOOLS = {"pytest", "tox", "nox", "ruff", "mypy", "flake8"}
"""Programs that pip installs under their own names."""


def propose_python(tree: RepositoryFiles, machine: Machine) -> Proposal | None:
    """Propose checks for a repository with Python."""
    if not tree.has(*PROJECT, *TESTS):
        return None
    runner, prepared = _runner(tree, machine)
    checks = [each for each in (_python_tests(tree, runner), *_others(tree, runner)) if each]
    tools = [_tool(check.run, runner) for check in checks]
    wanted = tuple(_pinned(tree, tool) for tool in tools if tool in TOOLS)
    if prepared is not None:
        return Proposal("Python", prepared, tuple(checks))
    by_itself = bool({"tox", "nox"}.intersection(wanted))
    installs = wanted if by_itself else needs(tree, wanted)
    if not installs:
        return Proposal("Python", (), tuple(_by_the_system(check) for check in checks))
    line = f"{BIN}pip install --quiet {' '.join(map(quote_argument, installs))}"
    return Proposal("Python", (VENV, line), tuple(checks))


BIN = ".venv/bin/"


def _runner(tree: RepositoryFiles, machine: Machine) -> tuple[str, tuple[str, ...] | None]:
    """Return the prefix of commands, and the setup commands if uv or Poetry installs everything."""
    if "uv.lock" in tree.paths and "uv" in machine.programs:
        return "uv run --offline ", ("uv sync --frozen --all-groups --all-extras",)
    if "poetry.lock" in tree.paths and "poetry" in machine.programs:
        return "poetry run ", ("poetry install --no-interaction",)
    if "pdm.lock" in tree.paths and "pdm" in machine.programs:
        return "pdm run ", ("pdm install --dev",)
    return BIN, None


PYTEST_FILES = ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
SETTINGS = ("*.toml", "*.cfg", "*.ini", "*.txt", "requirements/*.txt")
SESSION = re.compile(r"^@nox\.session.*\n(?:@.*\n)*def (\w+)\(", re.MULTILINE)


def _python_tests(tree: RepositoryFiles, runner: str) -> ProposedCheck | None:
    if (
        tree.has(*PYTEST_FILES)
        or tree.says(r"\bpytest\b", *SETTINGS, *TESTS)
        or tree.says(r"^(?:async )?def test_", *TESTS)
    ):
        source = tree.first(*PYTEST_FILES, "pyproject.toml", "setup.cfg", "tox.ini")
        return suite(f"{runner}python -m pytest -q", source or "the tests")
    if "tox.ini" in tree.paths or part(tree.mapping("pyproject.toml"), "tool", "tox"):
        return suite(f"{runner}tox -q -e py", "tox.ini", network=True)
    sessions = [name for name in SESSION.findall(tree.text("noxfile.py")) if "test" in name]
    for session in sessions[:1]:
        return suite(f"{runner}nox -s {session}", "noxfile.py", network=True)
    return _unittest(tree, runner)


def _unittest(tree: RepositoryFiles, runner: str) -> ProposedCheck | None:
    for place in ("tests", "test"):
        if tree.has(f"{place}/test*.py"):
            top = " -t ." if f"{place}/__init__.py" in tree.paths else ""
            return suite(f"{runner}python -m unittest discover -s {place}{top}", f"{place}/")
    return suite(f"{runner}python -m unittest", "test_*.py") if tree.has("test_*.py") else None


def _others(tree: RepositoryFiles, runner: str) -> list[ProposedCheck]:
    """Propose the linter and the type checker that the repository configures."""
    settings, found = part(tree.mapping("pyproject.toml"), "tool"), list[ProposedCheck]()
    if part(settings, "ruff") is not None or tree.has("ruff.toml", ".ruff.toml"):
        source = tree.first("ruff.toml", ".ruff.toml") or "pyproject.toml"
        run = checking_form("ruff check .", ruff_repairs=ruff_repairs(tree))
        found.append(lint(f"{runner}{run}", source))
    elif tree.has(".flake8") or tree.says(r"^\[flake8\]", "setup.cfg", "tox.ini"):
        found.append(
            lint(
                f"{runner}flake8 --extend-exclude .venv",
                tree.first(".flake8", "setup.cfg", "tox.ini") or "",
            )
        )
    mypy = part(settings, "mypy")
    if mypy is not None or "mypy.ini" in tree.paths or tree.says(r"^\[mypy\]", "setup.cfg"):
        named = part(mypy, "files") or tree.says(r"^files\s*=", "mypy.ini", "setup.cfg")
        found.append(types(f"{runner}mypy{'' if named else ' .'}", "the configuration of mypy"))
    return found


def _tool(run: str, runner: str) -> str:
    program, *rest = run.removeprefix(runner).split()
    return rest[1] if program == "python" and rest[:1] == ["-m"] else program


def _by_the_system(check: ProposedCheck) -> ProposedCheck:
    """Use the system's Python if there is nothing to install."""
    return replace(check, run=f"python3{check.run.removeprefix(f'{BIN}python')}")


HOOKS = {"ruff": "ruff-pre-commit", "mypy": "mirrors-mypy", "flake8": "flake8"}
"""The repositories of pre-commit hooks whose tags are the versions of a tool."""


def _pinned(tree: RepositoryFiles, tool: str) -> str:
    """Return a tool with the version that the repository's pre-commit hooks pin."""
    if tool not in HOOKS:
        return tool
    pattern = rf"repo:\s*\S+/{HOOKS[tool]}\s+rev:\s*[\"']?v?([\d.]+)\b"
    texts = (tree.text(name) for name in (".pre-commit-config.yaml", ".pre-commit-config.yml"))
    found = next((found for text in texts if (found := re.search(pattern, text))), None)
    return f"{tool}=={found[1]}" if found else tool


EXTRAS = ("test", "tests", "testing", "dev", "lint", "typing")

REQUIREMENTS_FILES = (
    *("requirements.txt", "requirements-dev.txt", "requirements-test.txt", "requirements_dev.txt"),
    *("dev-requirements.txt", "test-requirements.txt", "requirements/dev.txt"),
    *("requirements/test.txt", "tests/requirements.txt"),
)


def needs(tree: RepositoryFiles, tools: tuple[str, ...]) -> tuple[str, ...]:
    """List pip's arguments: the project itself, its requirements, and the tools of the checks."""
    project = _project(tree)
    files = tuple(f"-r {name}" for name in REQUIREMENTS_FILES if name in tree.paths)
    grouped = tuple(requirements(tree.mapping("pyproject.toml")))
    return tuple(dict.fromkeys((*project, *files, *grouped, *tools)))


def _project(tree: RepositoryFiles) -> tuple[str, ...]:
    """Return the project, editable and with its development extras, if it can be installed."""
    settings = tree.mapping("pyproject.toml")
    built = part(settings, "build-system") is not None or "setup.py" in tree.paths
    if not built:
        return tuple(texts_of(part(settings, "project", "dependencies")))
    extras = keys_of(part(settings, "project", "optional-dependencies"))
    wanted = ",".join(name for name in EXTRAS if name in extras)
    return (f"-e .[{wanted}]" if wanted else "-e .",)


def quote_argument(argument: str) -> str:
    """Quote an argument of pip; a file name follows its flag."""
    flag, space, rest = argument.partition(" ")
    if "'" in argument and not re.search(r'["$`\\]', argument):
        return f'"{argument}"'
    return f"{flag} {quote(rest)}" if space and flag in {"-r", "-e"} else quote(argument)


# Node

PLACEHOLDER = "no test specified"
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "workspaces")

SCRIPTS: tuple[tuple[Callable[[str, str], ProposedCheck], tuple[str, ...]], ...] = (
    (suite, ("test:ci", "test", "test:unit")),
    (lint, ("lint",)),
    (types, ("typecheck", "type-check", "check-types", "tsc")),
)
"""Names of scripts by kind of check; the first that exists counts."""


def propose_node(tree: RepositoryFiles, machine: Machine) -> Proposal | None:
    """Propose the scripts for tests, lint and types."""
    if "package.json" not in tree.paths:
        return None
    package, manager = tree.mapping("package.json"), _manager(tree)
    written = mapping_of(part(package, "scripts"))
    real = {name for name, line in written.items() if PLACEHOLDER not in str(line)}
    checks = tuple(
        make(
            checking_script(str(written[name])) or _run(manager, name),
            f"scripts.{name} of package.json",
        )
        for make, names in SCRIPTS
        for name in [each for each in names if each in real][:1]
    )
    needs = any(keys_of(part(package, key)) or part(package, key) for key in DEPENDENCIES)
    setup = _install(tree, manager) if needs else ()
    if manager in installable(machine) - machine.programs:
        setup = (*installing({manager: ""}, tree), *(f"{ON_PATH}{line}" for line in setup))
        checks = tuple(replace(check, run=f"{ON_PATH}{check.run}") for check in checks)
    return Proposal("Node", setup, checks)


def _manager(tree: RepositoryFiles) -> str:
    named = str(part(tree.mapping("package.json"), "packageManager") or "").partition("@")[0]
    by_lock = next((manager for lock, manager in LOCKS.items() if lock in tree.paths), "npm")
    return named if named in {"npm", "pnpm", "yarn", "bun"} else by_lock


def _run(manager: str, script: str) -> str:
    return f"{manager} test" if script == "test" and manager != "bun" else f"{manager} run {script}"


def _install(tree: RepositoryFiles, manager: str) -> tuple[str, ...]:
    match manager:
        case "pnpm" | "bun":
            return (f"{manager} install --frozen-lockfile",)
        case "yarn":
            frozen = "--immutable" if ".yarnrc.yml" in tree.paths else "--frozen-lockfile"
            return (f"yarn install {frozen}",)
        case _:
            return (npm_install(tree),)


# Go


def propose_go(tree: RepositoryFiles, _: Machine) -> Proposal | None:
    """Propose for a Go module."""
    if "go.mod" not in tree.paths:
        return None
    setup = ("go mod download",) if "go.sum" in tree.paths else ()
    return Proposal("Go", setup, (suite("go test ./...", "go.mod"), lint("go vet ./...", "go.mod")))


# Rust


def propose_rust(tree: RepositoryFiles, _: Machine) -> Proposal | None:
    """Propose for a crate or a workspace; checks are offline, so dependencies come before."""
    if "Cargo.toml" not in tree.paths:
        return None
    locked = cargo_lock(tree)
    check = suite(f"cargo test{locked}", "Cargo.toml")
    return Proposal("Rust", (f"cargo fetch{locked}",), (check,))


# Java


def propose_java(tree: RepositoryFiles, _: Machine) -> Proposal | None:
    """Propose the tests of Maven or Gradle; both download while they run and need the network."""
    if "pom.xml" in tree.paths:
        program = "./mvnw" if "mvnw" in tree.paths else "mvn"
        check = suite(f"{program} -B -ntp test", "pom.xml", network=True)
        return Proposal("Maven", (), (check,))
    if tree.has("build.gradle", "build.gradle.kts"):
        program = "./gradlew" if "gradlew" in tree.paths else "gradle"
        source = tree.first("build.gradle", "build.gradle.kts") or ""
        check = suite(f"{program} --no-daemon --console=plain test", source, network=True)
        return Proposal("Gradle", (), (check,))
    return None


# Ruby

BUNDLE = ("bundle config set --local path vendor/bundle", "bundle install")
GEM = r"""^\s*gem\s*\(?\s*["']{name}["']"""


def propose_ruby(tree: RepositoryFiles, _: Machine) -> Proposal | None:
    """Propose for a repository with a Gemfile, a Rakefile or specs."""
    check = _ruby_tests(tree)
    rubocop = "Gemfile" in tree.paths and tree.says(GEM.format(name="rubocop"), "Gemfile")
    checks = [check] if check else []
    if rubocop:
        checks.append(lint("bundle exec rubocop", "Gemfile"))
    if not checks:
        return None
    return Proposal("Ruby", BUNDLE if "Gemfile" in tree.paths else (), tuple(checks))


def _ruby_tests(tree: RepositoryFiles) -> ProposedCheck | None:
    prefix = "bundle exec " if "Gemfile" in tree.paths else ""
    if tree.has(".rspec", "spec/*_spec.rb", "spec/*/*_spec.rb"):
        return suite(f"{prefix}rspec", "spec")
    if re.search(r"TestTask", tree.text("Rakefile")):
        return suite(f"{prefix}rake test", "Rakefile")
    return None


# PHP

COMPOSER_INSTALL = "composer install --no-interaction --no-progress"


def propose_php(tree: RepositoryFiles, _: Machine) -> Proposal | None:
    """Propose for a repository with Composer or PHPUnit."""
    composer = tree.mapping("composer.json")
    scripts = keys_of(part(composer, "scripts"))
    brought = {*keys_of(part(composer, "require-dev")), *keys_of(part(composer, "require"))}
    found = list[ProposedCheck]()
    if "test" in scripts:
        found.append(suite("composer test", "composer.json"))
    elif "phpunit/phpunit" in brought:
        found.append(suite("vendor/bin/phpunit", "composer.json"))
    elif tree.has("phpunit.xml", "phpunit.xml.dist"):
        found.append(suite("phpunit", "phpunit.xml"))
    if "phpstan/phpstan" in brought and tree.has("phpstan.neon", "phpstan.neon.dist"):
        found.append(lint("vendor/bin/phpstan analyse --no-progress", "phpstan.neon"))
    if not found:
        return None
    packages = {name for name in brought if "/" in name}
    return Proposal("PHP", (COMPOSER_INSTALL,) if packages else (), tuple(found))


# CMake, Meson, Autotools

CMAKE = "cmake -S . -B build && cmake --build build --parallel"
CTEST = "ctest --test-dir build --output-on-failure"
TESTING = r"enable_testing\s*\(|include\s*\(\s*CTest"
MESON = "meson setup build"


def propose_native(tree: RepositoryFiles, _: Machine) -> Proposal | None:
    """Propose checks for the first known build system."""
    if "CMakeLists.txt" in tree.paths:
        if tree.says(TESTING, "CMakeLists.txt"):
            return Proposal("CMake", (), (suite(f"{CMAKE} && {CTEST}", "CMakeLists.txt"),))
        return Proposal("CMake", (), (build(CMAKE, "CMakeLists.txt"),))
    if "meson.build" in tree.paths:
        if tree.says(r"^\s*test\s*\(|subdir\s*\(\s*'tests?'", "meson.build"):
            line = f"{MESON} && meson test -C build --print-errorlogs"
            return Proposal("Meson", (), (suite(line, "meson.build"),))
        return Proposal("Meson", (), (build(f"{MESON} && meson compile -C build", "meson.build"),))
    if tree.has("configure.ac", "configure.in"):
        ready = "./configure" if "configure" in tree.paths else "autoreconf -i && ./configure"
        return Proposal("Autotools", (), (suite(f"{ready} && make check", "configure.ac"),))
    return None


ECOSYSTEMS: tuple[Callable[[RepositoryFiles, Machine], Proposal | None], ...] = (
    propose_python,
    propose_node,
    propose_go,
    propose_rust,
    propose_java,
    propose_ruby,
    propose_php,
    propose_native,
)


# Makefiles

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
MAKE_TARGET = re.compile(r"^([A-Za-z][\w-]*)\s*:(?!=)", re.MULTILINE)
MAKE_TESTS, LINT, TYPES = ("test", "tests", "check"), ("lint",), ("typecheck", "types", "mypy")
MAKE_INSTALL = ("deps", "setup", "bootstrap", "install-dev")


def propose_make(tree: RepositoryFiles) -> Proposal | None:
    """Propose the Makefile's targets for tests, lint and types."""
    file = tree.first(*MAKEFILES)
    targets = MAKE_TARGET.findall(tree.text(file)) if file else []
    wanted = [*_of(targets, MAKE_TESTS), *_of(targets, LINT), *_of(targets, TYPES)]
    makers = {
        name: (lint if name in LINT else types if name in TYPES else suite) for name in wanted
    }
    checks = tuple(makers[name](f"make {name}", f"{file}") for name in wanted)
    setup = tuple(f"make {name}" for name in _of(targets, MAKE_INSTALL))
    return Proposal("make", setup, checks) if checks else None


def _of(targets: list[str], names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in targets][:1]
