"""Propose what a repository's CI runs: its checks, and the setup commands before them. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from shlex import quote

from mulligan.domain.repairing import checking_form, repairs_by_default
from mulligan.domain.result import CheckKind
from mulligan.interfaces.onboarding.commands import (
    RUNNER_OPTIONS,
    Command,
    Role,
    classify,
    split_script,
    words_of,
)
from mulligan.interfaces.onboarding.managers import (
    ON_PATH,
    installable,
    installing,
    programs_of,
    wanted,
)
from mulligan.interfaces.onboarding.proposal import Proposal, ProposedCheck, free_name
from mulligan.interfaces.onboarding.tox import environments_of
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles, mapping_of, part
from mulligan.interfaces.onboarding.workflows import CiJob, CiStep, jobs_of

VENV = "python3 -m venv .venv && echo '*' > .venv/.gitignore"
"""Creates the environment in the worktree, with its own .gitignore that hides it from git."""

ACTIVATE = ". .venv/bin/activate && "

MAX_OF_A_KIND = 4
"""The maximum number of checks of a kind in a job; more are variants for other platforms."""


def propose_from_ci(tree: RepositoryFiles, machine: Machine) -> Proposal:
    """Propose the checks of the workflows for pull requests, the tests first."""
    about = _About(tree, machine, _scripts(tree), ruff_repairs(tree))
    jobs = [_translated(job, about) for job in jobs_of(tree, machine)]
    usable = {each.kind for job in jobs for each in job.checks if not each.not_tried}
    # Tests build what they need.
    dropped = {CheckKind.BUILD} if CheckKind.TEST in usable else set[CheckKind]()
    found, setup = list[ProposedCheck](), list[str]()
    for job in jobs:
        runs, counts = {one.run for one in found}, Counter(one.kind for one in found)
        new = [each for each in job.checks if each.run not in runs and each.kind not in dropped]
        new = [each for each in new if counts[each.kind] < MAX_OF_A_KIND][:MAX_OF_A_KIND]
        if any(not each.not_tried for each in new):
            setup += job.setup
        found += new
    ordered = sorted(found, key=lambda each: (bool(each.not_tried), ORDER.index(each.kind)))
    return Proposal("CI", tuple(dict.fromkeys(setup)), _named(ordered))


ORDER = (
    *(CheckKind.TEST, CheckKind.LINT, CheckKind.TYPE, CheckKind.FORMAT, CheckKind.BUILD),
    CheckKind.OTHER,
)

KIND_NAMES = {
    CheckKind.TEST: "tests",
    CheckKind.LINT: "lint",
    CheckKind.TYPE: "types",
    CheckKind.FORMAT: "format",
    CheckKind.BUILD: "build",
}


def _named(checks: Sequence[ProposedCheck]) -> tuple[ProposedCheck, ...]:
    """Name each check for its kind, and the second of a kind for what it runs, too."""
    named = dict[str, ProposedCheck]()
    for check in checks:
        kind = KIND_NAMES[check.kind]
        name = free_name(named, kind, f"{kind} ({check.name})")
        named[name] = replace(check, name=name)
    return tuple(named.values())


@dataclass(frozen=True, slots=True)
class _About:
    """What the translation of a job needs to know about the repository and the machine."""

    tree: RepositoryFiles
    machine: Machine
    scripts: Mapping[str, str]
    ruff_repairs: bool


def _scripts(tree: RepositoryFiles) -> dict[str, str]:
    scripts = mapping_of(part(tree.mapping("package.json"), "scripts"))
    return {name: text for name, text in scripts.items() if isinstance(text, str)}


def ruff_repairs(tree: RepositoryFiles) -> bool:
    """Return whether the repository's configuration lets `ruff check` repair files."""
    ruff = tree.text("ruff.toml") or tree.text(".ruff.toml")
    return repairs_by_default(tree.text("pyproject.toml"), ruff)


# One job


@dataclass(slots=True)
class _Job:
    """A job's checks and setup commands so far; `built` are the builds before the next check.

    `active` is the prefix that activates the environment of Python; empty without one.
    """

    job: CiJob
    about: _About
    active: str
    checks: list[ProposedCheck] = field(default_factory=list[ProposedCheck])
    setup: list[str] = field(default_factory=list[str])
    built: list[str] = field(default_factory=list[str])

    @property
    def source(self) -> str:
        """Name the workflow and the job."""
        return f"{self.job.path}, job {self.job.name}"

    def add(self, step: CiStep) -> None:
        """Add the commands of a step, each by its use."""
        script = _with_values(step.run or "", step.variables)
        unused = {key: each for key, each in step.variables.items() if not _names(step, key)}
        rest = replace(step, variables=unused)
        for each in split_script(script):
            text = self._as_run(each, step)
            command = classify(text, self.about.scripts)
            match command.use:
                case Role.INSTALL:
                    self.setup += [_within(step, line) for line in self._installing(text)]
                case CheckKind.BUILD:
                    self.built.append(self._line(rest, text))
                case Role():
                    pass
                case kind:
                    own = tuple(_within(step, line) for line in self._before(text, each))
                    self.checks.append(replace(self._check(rest, command, kind), setup=own))

    def _check(self, step: CiStep, command: Command, kind: CheckKind) -> ProposedCheck:
        run = self._line(step, self._own_form(command.text))
        if kind in {CheckKind.TEST, CheckKind.TYPE}:
            run = _in_sequence([*self.built, run])
        label = re.sub(r"\.\w+$", "", command.label.rsplit("/", 1)[-1])
        name = label if label and label != KIND_NAMES.get(kind) else self.job.name
        why = self._why_not(step, run)
        return ProposedCheck(name, run, kind, self.source, not_tried=why)

    def _why_not(self, step: CiStep, run: str) -> str:
        """Return why the sandbox cannot run this; empty if it may."""
        if self.job.needs:
            return f"it needs {' and '.join(self.job.needs)}"
        if step.needs_secret:
            return "it needs a secret"
        missing = NEEDED - self.programs() - installable(self.about.machine)
        gone = sorted(missing & programs_of(run))
        return next((f"{program} is not installed here" for program in gone), "")

    def programs(self) -> frozenset[str]:
        """Return the programs of this machine, and those that the job installs with pip."""
        installed = (line.partition("pip install ")[2].split() for line in self.setup)
        return self.about.machine.programs.union(*installed)

    def install_managers(self) -> None:
        """Install the package managers that this machine lacks, and let each line find them."""
        tried = [check for check in self.checks if not check.not_tried]
        own = [line for check in tried for line in (*check.setup, check.run)]
        used = wanted([*self.setup, *own], self.job.steps) if tried else {}
        here, can_be = self.programs(), installable(self.about.machine)
        lacking = {name: used[name] for name in used if name in can_be - here}
        if not lacking:
            return
        before = installing(lacking, self.about.tree)
        self.setup = [*before, *(line if line == VENV else ON_PATH + line for line in self.setup)]
        self.checks = [
            replace(
                check,
                run=ON_PATH + check.run,
                setup=tuple(ON_PATH + line for line in check.setup),
            )
            for check in self.checks
        ]

    def _line(self, step: CiStep, text: str) -> str:
        """Return a command with the step's directory and variables, in the active environment."""
        variables = " ".join(
            f"{name}={quote(value)}"
            for name, value in step.variables.items()
            if re.fullmatch(r"[A-Za-z_]\w*", name) and value and not NOISE.search(name)
        )
        # The sandbox runs /bin/sh, and GitHub bash.
        line = f"bash -ec {quote(text)}" if BASH.search(text) else text
        exported = f"export {variables} && " if variables else ""
        return self.active + _in(step.directory, f"{exported}{line}")

    def _as_run(self, command: str, step: CiStep) -> str:
        """Return a command as the sandbox can run it, and for the change instead of the base."""
        # Without `pipefail`, the check would have the exit code of tee.
        text = re.sub(r"\s*(?:2>&1)?\s*\|\s*tee\b.*$", "", command)
        if started := self._started(text):
            text = f"{started[3]}{text[started.end() :]}"
        return self._for_the_change(text, step)

    def _for_the_change(self, command: str, step: CiStep) -> str:
        """Return a command of tox that names its environments, and builds the package again.

        What setup installed is the base's. `py` replaces a Python that is not installed.
        """
        text = re.sub(r" --skip-pkg-install\b| --installpkg[ =]\S+", "", command)
        if words_of(text)[:1] != ["tox"]:
            return text
        machine, options = self.about.machine, text.partition(" -- ")[0].partition("tox")[2]
        if re.search(r" -(?:e|f|m) *\S", options):
            return re.sub(
                r"(?<=-e )(?:py)?3\.?(\d+)", partial(_environment, machine), text, count=1
            )
        given = next((step.variables[name] for name in TOX_ENV if name in step.variables), "")
        chosen = given or ",".join(environments_of(self.about.tree, machine, step.variables))
        # An expression without a value leaves the option alone.
        text = re.sub(r" -e *$", "", text)
        return re.sub(r"\btox(?: run| r)?(?=\s|$)", rf"\g<0> -e {chosen}", text, count=1)

    def _own_form(self, text: str) -> str:
        """Return a command in the form that changes nothing."""
        found = re.fullmatch(r"(?:npm|pnpm|yarn|bun) (?:run )?([\w:.-]+)", text)
        checking = checking_script(self.about.scripts.get(found[1], "") if found else "")
        if self.active:
            # Unlike other tools, it would read the environment, which is in the tree here.
            text = re.sub(FLAKE8, r"\g<0> --extend-exclude .venv", text)
        return checking or checking_form(text, ruff_repairs=self.about.ruff_repairs)

    def _started(self, command: str) -> re.Match[str] | None:
        """Find what `pipx run` or `uvx` starts, unless those are installed here."""
        found = STARTED.match(command)
        is_here = found is not None and found[1].split()[0] in self.about.machine.programs
        return None if is_here or not self.active else found

    # Setup commands

    def _installing(self, command: str) -> Iterator[str]:
        """Yield an installing command as a setup command; nothing if it is of no use here."""
        match words_of(command):
            case ["pip" | "pip3", "install", *arguments]:
                if packages := list(_packages(arguments)):
                    yield f"{ACTIVATE}pip install --quiet {' '.join(packages)}"
            case ["uv", "pip", "install", *arguments] if self.active:
                if packages := list(_packages(arguments)):
                    yield f"{ACTIVATE}pip install --quiet {' '.join(packages)}"
            case ["pipx", "install", *arguments] | ["uv", "tool", "install", *arguments]:
                yield f"{ACTIVATE}pip install --quiet {' '.join(_tools(arguments))}"
            case ["npm" | "pnpm" | "yarn" | "bun" as manager, *arguments]:
                is_global = bool({"-g", "--global"}.intersection(arguments))
                if not is_global and self._is_manager(manager):
                    yield self._node_install(command, manager)
            case ["pip" | "pip3" | "pre-commit" | "playwright", *_] | ["uv", "venv", *_]:
                pass
            case ["setup.py", *_] | [_, "setup.py", *_]:
                yield f"{ACTIVATE}pip install --quiet -e ."
            case _:
                yield f"{self.active}{command}"

    def _is_manager(self, manager: str) -> bool:
        """Return whether the lock files are of this package manager; another one would mix."""
        locks = {name for name in LOCKS if name in self.about.tree.paths}
        return not locks or manager in {LOCKS[name] for name in locks}

    def _node_install(self, command: str, manager: str) -> str:
        """Return the install without changes to tracked files."""
        if manager == "npm":
            return npm_install(self.about.tree)
        if manager == "pnpm" and "pnpm-lock.yaml" in self.about.tree.paths:
            return "pnpm install --frozen-lockfile"
        return command

    def _before(self, command: str, as_written: str) -> Iterator[str]:
        """Yield what would be downloaded when a check runs: for uv, tox and pre-commit."""
        words = words_of(command)
        if started := self._started(as_written):
            tools = quote(started[3]), *_tools(started[2].split())
            yield f"{ACTIVATE}pip install --quiet {' '.join(tools)}"
        if command.startswith("uv run "):
            yield f"{_uv_options(command)} true"
        if words[:1] == ["go"] and "go.sum" in self.about.tree.paths:
            yield "go mod download"
        if words[:1] == ["cargo"]:
            yield f"cargo fetch{cargo_lock(self.about.tree)}"
        if words[:1] == ["tox"]:
            yield f"{self.active}{command.partition(' -- ')[0]} --notest"
        if words[:2] == ["pre-commit", "run"]:
            yield self.active + re.sub(r"\bpre-commit run.*", "pre-commit install-hooks", command)


STARTED = re.compile(r"(pipx run|uvx) ((?:--?[\w-]+(?:=\S+| (?=\S+ ))\S* ?)*)([A-Za-z][\w.=-]*)")
"""`pipx run` or `uvx`, its options, and the program that it starts."""

NEEDED = frozenset(
    {
        "uv",
        "uvx",
        "pipx",
        "poetry",
        "pdm",
        "hatch",
        "pipenv",
        "pnpm",
        "yarn",
        "bun",
        "npm",
        "go",
        "cargo",
    }
)
"""Programs that are not installed into the worktree."""

NOISE = re.compile(
    r"COLOR|^CI$|PIP_|CACHE|CODECOV|COVERALLS|TOKEN|^GITHUB_|TURBO_|^UV_|HUSKY|RUST_BACKTRACE"
    r"|FIXME|^PY_COLORS$|^TERM$|^TOX_?ENV$|^NPM_CONFIG|^COVERAGE$"
)
"""Names of variables that change how a tool prints or where it caches, not what it verifies."""

FLAKE8 = r"(?:^|(?<=[\s/]))flake8(?=\s|$)(?!.*--extend-exclude)"

BASH = re.compile(r"\[\[| == |<\(|\bpipefail\b|\$\{\w+\[|\bsource ")


def _translated(job: CiJob, about: _About) -> _Job:
    """Return the checks of a job, and the setup commands that they need."""
    steps = [_as_command(step) for step in job.steps]
    by_action = any("pre-commit/action" in step.action for step in job.steps)
    active = ACTIVATE if by_action or _expects_python(job, about) else ""
    found = _Job(job, about, active)
    if active:
        found.setup.append(VENV)
    if by_action:
        found.setup.append(f"{ACTIVATE}pip install --quiet pre-commit")
    for step in steps:
        if step.run and step.shell in {"", "bash", "sh"}:
            found.add(step)
    if found.built and not found.checks:
        script, last = _in_sequence(found.built), job.steps[-1]
        why = "it needs a secret" if last.needs_secret else ""
        check = ProposedCheck(job.name, script, CheckKind.BUILD, found.source, not_tried=why)
        found.checks.append(check)
    found.install_managers()
    return found


def _as_command(step: CiStep) -> CiStep:
    """Return the action of pre-commit as the command that it runs."""
    if "pre-commit/action" not in step.action:
        return step
    return replace(step, run=f"pre-commit run {step.inputs.get('extra_args', '--all-files')}")


def _expects_python(job: CiJob, about: _About) -> bool:
    """Return whether the job's commands expect an environment of Python that is active."""
    text = "\n".join(step.run or "" for step in job.steps)
    if re.search(r"\b(?:pip3? install|pipx|uvx|uv tool install)\b", text):
        return True
    own = re.search(r"\b(?:uv (?:run|sync)|poetry (?:run|install)|pdm (?:run|install))\b", text)
    is_python = re.search(r"\b(?:python3?|pytest|tox|nox)\b", text) or any(
        "setup-python" in step.action for step in job.steps
    )
    has_python = about.tree.has("pyproject.toml", "setup.py", "tox.ini", "requirements*.txt")
    return bool(is_python) and not own and has_python


def _in(directory: str, line: str) -> str:
    return f"(cd {quote(directory)} && {line})" if directory else line


PREPARED = re.compile(r"(?:\. \.venv/bin/activate && )?(?:export (?:[^&']|'[^']*')+&& )?")
"""What prepares a line: the environment of Python, and variables."""


def _in_sequence(lines: Sequence[str]) -> str:
    """Join lines, and prepare only once if all are prepared in the same way."""
    prepared = {found[0] for line in lines if (found := PREPARED.match(line))}
    if len(prepared) > 1:
        return " && ".join(lines)
    first = prepared.pop()
    return first + " && ".join(line.removeprefix(first) for line in lines)


def _within(step: CiStep, line: str) -> str:
    """Return a setup command in the step's directory; the environment is in the top directory."""
    active = ACTIVATE if line.startswith(ACTIVATE) else ""
    return active + _in(step.directory, line.removeprefix(ACTIVATE))


def _names(step: CiStep, variable: str) -> bool:
    return re.search(rf"\$\{{?{re.escape(variable)}\b", step.run or "") is not None


def _with_values(script: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME` by the value that the workflow gives, since a check has no such variable."""

    def value(found: re.Match[str]) -> str:
        return variables.get(found[1] or found[2], found[0])

    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, script)


# The form for a check


def checking_script(content: str) -> str:
    """Return a script of package.json that repairs in the form that checks; else an empty text."""
    checking = checking_form(content)
    if checking == content:
        return ""
    return f'export PATH="$PWD/node_modules/.bin:$PATH" && {checking}'


TOX_ENV = ("TOXENV", "TOX_ENV")


def _environment(machine: Machine, found: re.Match[str]) -> str:
    return found[0] if machine.python == f"3.{found[1]}" else "py"


# Packages to install


def _packages(arguments: Sequence[str]) -> Iterator[str]:
    """Yield pip's arguments with the project editable; none if they only upgrade pip itself."""
    wanted, rest = list[str](), iter(arguments)
    for argument in rest:
        if argument in {"-U", "--upgrade", "--system", "-q", "--quiet", "--user"}:
            continue
        if re.fullmatch(r"\.(?:/)?(?:\[[\w,. -]*\])?", argument):
            wanted += ["-e", argument]
        elif argument in {"-e", "--editable", "-r", "--requirement", "-c", "--constraint"}:
            wanted += [argument, next(rest, "")]
        elif "dist/" not in argument and argument not in NOT_INSTALLED:
            wanted.append(argument)
    if any(not each.startswith("-") for each in wanted):
        yield from map(quote, wanted)


NOT_INSTALLED = {"pip", "setuptools", "wheel", "tox-gh-actions", "tox-gh"}
"""What a new environment has, and plugins that choose environments by GitHub's variables."""


def _tools(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the packages of `uv tool install` and `pipx install`, those of `--with` too."""
    rest = iter(arguments)
    for argument in rest:
        if argument in {"--python", "-p", "--python-preference"}:
            next(rest, "")
        elif argument in {"--with", "-w"}:
            yield quote(next(rest, ""))
        elif not argument.startswith("-"):
            yield quote(argument)


def _uv_options(command: str) -> str:
    """Return `uv run` with its own options, without the program that it starts."""
    kept, rest = ["uv", "run"], iter(command.split()[2:])
    for word in takewhile(lambda each: each.startswith("-") and each != "-m", rest):
        kept.append(word)
        if word in RUNNER_OPTIONS:
            kept.append(next(rest, ""))
    return " ".join(kept)


def npm_install(tree: RepositoryFiles) -> str:
    """Return how npm installs; without a lock file it writes none."""
    if tree.has("package-lock.json", "npm-shrinkwrap.json"):
        return "npm ci --no-audit --no-fund"
    return "npm install --no-audit --no-fund --no-package-lock"


def cargo_lock(tree: RepositoryFiles) -> str:
    """Return the option with which Cargo keeps to its lock file; empty without one."""
    return " --locked" if "Cargo.lock" in tree.paths else ""


LOCKS = {
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
"""The package manager of each lock file of Node."""
