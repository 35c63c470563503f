"""What a shell command of a CI workflow or a script is for, by its program. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from mulligan.domain.result import CheckKind


class Role(Enum):
    """What a command is for, where it is not a check."""

    INSTALL = auto()
    """It installs dependencies."""
    SYSTEM = auto()
    """It changes the machine, such as `apt-get install`."""
    SKIP = auto()
    """It verifies nothing: it prints, publishes, or writes documentation."""
    UNKNOWN = auto()


Use = Role | CheckKind


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `label` is the name that it gives to what it runs: a script, target or tool."""

    text: str
    use: Use
    label: str = ""


def split_script(script: str) -> list[str]:
    """List the commands of a script; the whole script if it has control flow or a here-document."""
    joined = re.sub(r"\s*\\\n\s*", " ", script).strip()
    if re.search(CONTROL, joined, re.MULTILINE):
        return [joined]
    lines = [line.strip() for line in joined.splitlines()]
    kept = [line for line in lines if line and not line.startswith("#")]
    return [joined] if any(map(_is_unfinished, kept)) else kept


CONTROL = r"^\s*(?:if|for|while|case|function|until)\b|<<|\(\)\s*\{|^\s*[{(]\s*$"


def _is_unfinished(line: str) -> bool:
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return line.endswith(("|", "&&", "||"))


def parts_of(command: str) -> list[str]:
    """Split a simple line at `&&` and `;`; the line itself where that would need a shell."""
    if re.search(r"[()|`]|\$\(", command):
        return [command]
    return [part.strip() for part in re.split(r"&&|;", command) if part.strip()]


def classify(command: str, scripts: Mapping[str, str] | None = None) -> Command:
    """Classify a command by the most telling of its parts; `scripts` are those of package.json."""
    if re.search(CONTROL, command, re.MULTILINE):
        uses = [_of_line(line, scripts or {}) for line in command.splitlines()]
    else:
        uses = [_of_line(part, scripts or {}) for part in parts_of(command)]
    best = min(uses, key=lambda each: PRIORITY.index(each[0]), default=(Role.UNKNOWN, ""))
    return Command(command, *best)


PRIORITY: tuple[Use, ...] = (
    *(CheckKind.TEST, CheckKind.TYPE, CheckKind.LINT, CheckKind.FORMAT, CheckKind.BUILD),
    *(Role.SYSTEM, Role.INSTALL, Role.UNKNOWN, CheckKind.OTHER, Role.SKIP),
)


def words_of(command: str) -> list[str]:
    """Split a command into words, without variables and programs that only start another one."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        words = command.split()
    return list(_unwrapped(words))


def _unwrapped(words: list[str]) -> Iterator[str]:
    rest = list(words)
    while rest:
        first = rest[0].rsplit("/", 1)[-1]
        if re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0], re.DOTALL) or first in STARTERS:
            rest = _without_options(rest[1:], ())
        elif re.fullmatch(r"python[\d.]*", first) and rest[1:2] == ["-m"]:
            rest = rest[2:]
        elif (first, *rest[1:2]) in RUNNERS:
            rest = _without_options(rest[2:], RUNNER_OPTIONS)
        elif first in {"npx", "bunx", "pnpx", "uvx", "c8", "nyc"}:
            rest = _without_options(rest[1:], RUNNER_OPTIONS)
        elif first == "coverage" and rest[1:2] == ["run"]:
            rest = _without_options(rest[2:], ("--source", "--rcfile", "--omit", "--include"))
        else:
            break
    yield from rest


STARTERS = {"env", "exec", "time", "xvfb-run", "command", "cross-env", "dbus-run-session", "nice"}
RUNNERS = {
    *(("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("pipenv", "run"), ("rye", "run")),
    *(("bundle", "exec"), ("pnpm", "exec"), ("npm", "exec"), ("yarn", "exec")),
    *(("pnpm", "dlx"), ("yarn", "dlx"), ("pipx", "run"), ("uv", "x")),
}
RUNNER_OPTIONS = (
    *("--group", "--only-group", "--extra", "--with", "--python", "-p", "--project"),
    *("--package", "--directory", "--env-file", "--no-group", "--with-requirements"),
)


def _without_options(words: list[str], with_value: tuple[str, ...]) -> list[str]:
    rest = words
    while rest and rest[0].startswith("-"):
        if rest[0] == "-m":
            return rest[1:]
        rest = rest[2:] if rest[0] in with_value else rest[1:]
    return rest


# By program

TEST, LINT, TYPE = CheckKind.TEST, CheckKind.LINT, CheckKind.TYPE
FORMAT, BUILD = CheckKind.FORMAT, CheckKind.BUILD

PROGRAMS: Mapping[str, Use] = {
    **dict.fromkeys(
        (
            *("pytest", "py.test", "unittest", "nose2", "trial", "stestr", "jest", "vitest"),
            *("mocha", "ava", "tap", "jasmine", "karma", "qunit", "ctest", "rspec", "phpunit"),
            *("pest", "cucumber", "behave", "prove", "bats", "tape", "borp", "uvu", "tsd"),
        ),
        TEST,
    ),
    **dict.fromkeys(
        (
            *("flake8", "pylint", "eslint", "xo", "standard", "oxlint", "stylelint", "ruff"),
            *("golangci-lint", "rubocop", "shellcheck", "pre-commit", "prek", "codespell"),
            *("yamllint", "biome", "clippy", "phpcs", "phpstan", "pydocstyle", "doc8", "knip"),
            *("staticcheck", "clang-tidy", "cppcheck", "psalm", "neostandard", "vulture"),
        ),
        LINT,
    ),
    **dict.fromkeys(("black", "prettier", "isort", "gofmt", "clang-format", "dprint"), FORMAT),
    **dict.fromkeys(("mypy", "pyright", "basedpyright", "tsc", "vue-tsc", "ty", "pyrefly"), TYPE),
    **dict.fromkeys(("cmake", "meson", "ninja", "configure", "autoreconf", "autogen.sh"), BUILD),
    **dict.fromkeys(
        (
            *("sudo", "apt", "apt-get", "brew", "choco", "yum", "dnf", "apk", "snap", "systemctl"),
            *("docker", "docker-compose", "curl", "wget", "locale-gen", "update-alternatives"),
            "rustup",
        ),
        Role.SYSTEM,
    ),
    **dict.fromkeys(
        (
            *("echo", "printf", "ls", "cat", "which", "type", "set", "cd", "pwd", "true", "date"),
            *(
                "twine",
                "codecov",
                "coveralls",
                "gh",
                "git",
                "rm",
                "mv",
                "tar",
                "test",
                "[",
                "sleep",
            ),
            *("sphinx-build", "mkdocs", "typedoc", "jsdoc", "node", "ruby", "java", "env", "head"),
            *(
                "site",
                "coverage",
                "build",
                "virtualenv",
                "venv",
                "corepack",
                "export",
                "check-wheel",
            ),
            *(
                "check-manifest",
                "tail",
                "grep",
                "npm-publish",
                "auditwheel",
                "cibuildwheel",
                "uname",
            ),
        ),
        Role.SKIP,
    ),
}

TARGETS = {
    *("make", "gmake", "just", "task", "nox", "tox", "invoke", "inv", "poe", "rake", "hatch"),
    *("gulp", "grunt", "turbo", "nx", "lerna", "ant"),
}
"""Programs that run what the repository named."""

SCRIPT_RUNNERS = {"npm", "pnpm", "yarn", "bun"}

SUBCOMMANDS: Mapping[str, Use] = {
    "go test": TEST, "go vet": LINT, "go build": BUILD, "go mod": Role.INSTALL,
    "go get": Role.INSTALL, "go install": Role.INSTALL,
    "cargo test": TEST, "cargo nextest": TEST, "cargo clippy": LINT, "cargo fmt": FORMAT,
    "cargo build": BUILD, "cargo check": TYPE, "cargo fetch": Role.INSTALL,
    "ruff format": FORMAT, "deno test": TEST, "deno lint": LINT, "dotnet test": TEST,
    "dotnet build": BUILD, "swift test": TEST, "mix test": TEST, "zig build": BUILD,
    "mvn test": TEST, "mvn verify": TEST, "mvnw test": TEST, "mvnw verify": TEST,
    "gradle test": TEST, "gradle check": TEST, "gradle build": TEST,
    "gradlew test": TEST, "gradlew check": TEST, "gradlew build": TEST,
    "pip install": Role.INSTALL, "pip3 install": Role.INSTALL, "pipx install": Role.INSTALL,
    "uv sync": Role.INSTALL, "uv pip": Role.INSTALL, "uv tool": Role.INSTALL,
    "uv venv": Role.INSTALL,
    "poetry install": Role.INSTALL, "pdm install": Role.INSTALL, "pdm sync": Role.INSTALL,
    "pipenv install": Role.INSTALL, "pipenv sync": Role.INSTALL, "bundle install": Role.INSTALL,
    "bundle config": Role.INSTALL, "composer install": Role.INSTALL,
    "composer update": Role.INSTALL,
    "composer test": TEST, "playwright install": Role.INSTALL, "playwright test": TEST,
    "cypress run": TEST, "pip list": Role.SKIP, "pip freeze": Role.SKIP, "uv python": Role.SKIP,
    "uv lock": Role.SKIP, "uv build": Role.SKIP, "go version": Role.SKIP, "go env": Role.SKIP,
    "pre-commit install": Role.INSTALL, "tox config": Role.SKIP, "cargo doc": Role.SKIP,
    "python --version": Role.SKIP,
}  # fmt: skip


def _of_line(line: str, scripts: Mapping[str, str], depth: int = 0) -> tuple[Use, str]:
    words = words_of(line)
    if not words:
        return Role.SKIP, ""
    program = words[0].rsplit("/", 1)[-1]
    arguments = [word for word in words[1:] if not word.startswith("-")]
    both = f"{program} {arguments[0] if arguments else ''}".strip()
    if program in {"mvn", "mvnw", "gradle", "gradlew"}:
        both = next(
            (each for goal in arguments if (each := f"{program} {goal}") in SUBCOMMANDS), both
        )
    if words[1:] and set(words[1:]) <= ASKING:
        return Role.SKIP, ""
    if both in SUBCOMMANDS:
        return SUBCOMMANDS[both], program
    if program in SCRIPT_RUNNERS:
        return _of_node(program, words[1:], scripts, depth)
    if program in TARGETS:
        return _of_targets(program, words[1:])
    if program in PROGRAMS:
        return PROGRAMS[program], program
    if re.fullmatch(r"python[\d.]*", program):
        return _of_python(words[1:])
    if "/" in words[0] or program.endswith((".sh", ".py", ".js")):
        return of_name(re.sub(r"\.\w+$", "", words[0])) or Role.UNKNOWN, program
    return Role.UNKNOWN, program


ASKING = {"--version", "-version", "version", "-VV", "-V", "--help"}
"""Arguments with which a program only describes itself."""


def _of_python(arguments: list[str]) -> tuple[Use, str]:
    script = next((each for each in arguments if not each.startswith("-")), "")
    if script.endswith("manage.py"):
        return (TEST, "manage.py") if "test" in arguments else (Role.UNKNOWN, "manage.py")
    if script == "setup.py":
        return (BUILD if "build_ext" in arguments else Role.INSTALL), "setup.py"
    return of_name(re.sub(r"\.\w+$", "", script)) or Role.UNKNOWN, script


NODE_INSTALLS = {"ci", "i", "install", "clean-install", "install-clean", "add"}


def _of_node(
    program: str, words: list[str], scripts: Mapping[str, str], depth: int
) -> tuple[Use, str]:
    """Classify `npm run NAME` by the name, else by the script's own command."""
    rest = [word for word in words if not word.startswith("-")]
    if not rest:
        return (Role.INSTALL if program == "yarn" else Role.SKIP), program
    verb = rest[0]
    if verb in NODE_INSTALLS:
        return Role.INSTALL, program
    name = rest[1] if verb in {"run", "run-script"} and len(rest) > 1 else verb
    if name in {"t", "tst"}:
        name = "test"
    content = scripts.get(name)
    by_name = of_name(name)
    if by_name and name != "check":
        return by_name, name
    if content and depth < MAX_DEPTH:
        uses = [_of_line(part, scripts, depth + 1)[0] for part in parts_of(content)]
        return min(uses, key=PRIORITY.index, default=Role.UNKNOWN), name
    if content is None and name in PROGRAMS:
        return PROGRAMS[name], name
    return by_name or Role.UNKNOWN, name


MAX_DEPTH = 3


def _of_targets(program: str, words: list[str]) -> tuple[Use, str]:
    """Classify what the repository named: targets, environments and sessions."""
    if "--notest" in words or "--install-only" in words:
        return Role.INSTALL, program
    names = list(_targets(program, words))
    if not names:
        by_default: Use = TEST if program in {"tox", "nox", "rake"} else BUILD
        return by_default, program
    label = " ".join(names)
    if program == "hatch" and names[0] == "test":
        return TEST, label
    if names == ["coverage"] and program == "tox":
        # It combines what other environments measured.
        return Role.SKIP, label
    found = [use for name in names if (use := of_name(name))]
    return min(found, key=PRIORITY.index, default=Role.UNKNOWN), label


def _targets(program: str, words: list[str]) -> Iterator[str]:
    """Yield the names among the arguments: after `-e` and the like, or of targets."""
    own, of_names = NAMED_BY.get(program, (MAKE_OPTIONS, ()))
    rest = iter(words)
    for word in rest:
        if word in {"--", ";", "||"}:
            return
        if word in of_names:
            yield from next(rest, "").split(",")
        elif word in own:
            next(rest, "")
        elif not of_names and not word.startswith("-") and "=" not in word and word != "run":
            yield word


MAKE_OPTIONS = ("-f", "--file", "-C", "--directory", "-o", "-W", "-I", "-p", "--filter")

NAMED_BY: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tox": ((), ("-e", "-f", "-m")),
    "nox": ((), ("-s", "--session", "--sessions", "-e", "-t", "--tags")),
}
"""By program: its options with a value, and those whose value is a name of what runs."""


NAMES: tuple[tuple[re.Pattern[str], Use], ...] = (
    (
        re.compile(
            r"docs?|publish|release|deploy|bench\w*|benchmarks?|profile|changelog|example\w*|clean"
            r"|audit|serve|dev|start|watch|report|combine|upload|linkcheck|spellcheck|package|dist"
            r"|downstream|mutation|safety|sdist|wheel|size"
        ),
        Role.SKIP,
    ),
    (re.compile(r"types?|typing|typecheck|mypy|pyright|tsc|types?check\w*|ty|pyrefly"), TYPE),
    (
        re.compile(
            r"lint\w*|style|flake8|ruff|pylint|eslint|pre|precommit|commit|quality|clippy|vet|pep8"
            r"|static|rubocop|biome"
        ),
        LINT,
    ),
    (re.compile(r"format\w*|fmt|prettier|black"), FORMAT),
    (
        re.compile(
            r"tests?\w*|spec|specs|unit|check|ci|coverage|cover|cov|pytest|unittests?|jest|vitest"
            r"|verify|py\d*|3|\d*py|integration|e2e|smoke|fuzz|functional|doctests?|selftest"
        ),
        TEST,
    ),
    (re.compile(r"build|compile|bundle|generate|codegen|gen|rebuild"), BUILD),
)
"""Words of names, and what they say; the first match counts."""


def of_name(name: str) -> Use | None:
    """Return what the name of a script, target or environment says; None if it says nothing."""
    words = re.split(r"[^A-Za-z0-9]+", name.lower())
    if re.fullmatch(INSTALLS, words[0]):
        return Role.INSTALL
    found = (use for pattern, use in NAMES for word in words if pattern.fullmatch(word))
    return next(found, None)


INSTALLS = r"deps|dependencies|setup|bootstrap|install|requirements|init|prepare|develop"
"""Names that begin with one of these install something."""
