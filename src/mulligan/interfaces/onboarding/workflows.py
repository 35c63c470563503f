"""What a repository's GitHub workflows run for a pull request, as data. Pure."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml
from pydantic import JsonValue, ValidationError

from mulligan.interfaces.onboarding.expressions import (
    UNKNOWN,
    Context,
    Value,
    is_true,
    substitute,
)
from mulligan.interfaces.onboarding.tree import (
    MAPPING,
    Machine,
    RepositoryFiles,
    keys_of,
    mapping_of,
    part,
)


@dataclass(frozen=True, slots=True)
class CiStep:
    """A step of a job: the commands of `run` in a directory, or an action with its inputs.

    `run` is None if it depends on a value that only the running workflow knows.
    """

    name: str
    run: str | None = ""
    directory: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    shell: str = ""
    action: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    needs_secret: bool = False


@dataclass(frozen=True, slots=True)
class CiJob:
    """A job on Linux, in the row of its matrix that fits this machine best.

    `needs` names what the sandbox does not have, such as "the service postgres". `image` is the
    container image in which the job runs; empty if that is none, or not known.
    """

    path: str
    name: str
    steps: tuple[CiStep, ...]
    needs: tuple[str, ...] = ()
    image: str = ""


def jobs_of(tree: RepositoryFiles, machine: Machine) -> tuple[CiJob, ...]:
    """List the jobs that run on Linux for a pull request, in the order of files and jobs."""
    read = {path: _mapping(text) for path, text in sorted(tree.texts.items())}
    workflows = {path: each for path, each in read.items() if path.startswith(".github/workflows/")}
    started = [path for path, each in workflows.items() if _runs_for_changes(each.get("on"))]
    called = [
        str(uses).removeprefix("./")
        for path in started
        for job in mapping_of(workflows[path].get("jobs")).values()
        if (uses := part(job, "uses"))
    ]
    wanted = dict.fromkeys([*started, *(path for path in called if path in workflows)])
    actions = {path: each for path, each in read.items() if path not in workflows}
    found = [
        _job(_Reader(path, workflows[path], actions, machine), name, job)
        for path in wanted
        for name, job in mapping_of(workflows[path].get("jobs")).items()
    ]
    return tuple(job for job in found if job)


def _mapping(text: str) -> dict[str, JsonValue]:
    """Parse YAML with every scalar as text, since the key `on` would become a boolean."""
    try:
        found: object = yaml.load(text, yaml.BaseLoader)  # noqa: S506 - texts, lists, mappings only
        return MAPPING.validate_python(found)
    except (yaml.YAMLError, ValidationError, RecursionError):
        return {}


def _runs_for_changes(on: JsonValue) -> bool:
    match on:
        case str():
            return on in {"push", "pull_request"}
        case list():
            return any(_runs_for_changes(each) for each in on)
        case dict():
            is_for_tags = keys_of(part(on, "push")) == ["tags"]
            return "pull_request" in on or ("push" in on and not is_for_tags)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Reader:
    """A workflow, and the local actions that its steps may use."""

    path: str
    workflow: dict[str, JsonValue]
    actions: Mapping[str, dict[str, JsonValue]]
    machine: Machine


def _job(reader: _Reader, name: str, job: JsonValue) -> CiJob | None:
    rows = _rows(part(job, "strategy", "matrix"), reader.machine)
    contexts = [_context(row, reader.workflow, job) for row in rows]
    linux = [each for each in contexts if _is_linux(part(job, "runs-on"), each)]
    condition = str(part(job, "if") or "true")
    ran = [each for each in linux if is_true(condition, each) is not False]
    steps = part(job, "steps")
    if not ran or not isinstance(steps, list):
        return None
    best, *others = sorted(ran, key=lambda each: _distance(each, reader.machine))
    others = [each for each in others if not _is_special(each)]
    found = tuple(
        each
        for step in steps
        if (fitting := _where_it_runs(step, (best, *others))) is not None
        for each in _steps(step, fitting, reader, _directory(job, reader.workflow))
    )
    needs = [f"the service {each}" for each in keys_of(part(job, "services"))]
    container = part(job, "container")
    image = container if isinstance(container, str) else part(container, "image")
    if container:
        needs.append("a container image")
    if any("actions/checkout" in each.action and each.inputs.get("repository") for each in found):
        needs.append("another repository")
    return CiJob(reader.path, name, found, tuple(needs), substitute(str(image or ""), best) or "")


def _directory(job: JsonValue, workflow: JsonValue) -> str:
    path = ("defaults", "run", "working-directory")
    return str(part(job, *path) or part(workflow, *path) or "")


def _where_it_runs(step: JsonValue, contexts: Sequence[Context]) -> Context | None:
    """Return the first context in which the step runs; None if it runs in none of them."""
    condition = part(step, "if")
    if condition is None:
        return contexts[0]
    return next((each for each in contexts if is_true(str(condition), each)), None)


# The rows of a matrix


Row = Mapping[str, Value]

GUESSED = ("python", "python-version", "node", "node-version")
"""The names of an unknown matrix that have this machine's version."""


def _rows(matrix: JsonValue, machine: Machine) -> list[Row]:
    """List the rows as GitHub makes them; an axis that is not known has this machine's version."""
    if isinstance(matrix, str):
        return [{name: _here(name, machine) for name in GUESSED}]
    parts = mapping_of(matrix)
    axes = {key: value for key, value in parts.items() if key not in {"include", "exclude"}}
    values = [_values(key, value, machine) for key, value in axes.items()]
    rows: list[dict[str, JsonValue | Value]] = [
        dict(zip(axes, each, strict=True)) for each in itertools.product(*values)
    ]
    excluded = _entries(parts.get("exclude"))
    rows = [row for row in rows if not any(_fits(row, each) for each in excluded)]
    originals = [dict(row) for row in rows] if axes else []
    rows = rows if axes else []
    for entry in _entries(parts.get("include")):
        of_axes = {key: value for key, value in entry.items() if key in axes}
        fitting = [
            row for row, original in zip(rows, originals, strict=False) if _fits(original, of_axes)
        ]
        for row in fitting:
            row.update(entry)
        if not fitting:
            rows.append(dict(entry))
    return [dict(_flat(row)) for row in rows] or [{}]


def _here(key: str, machine: Machine) -> Value:
    """Return this machine's version for an axis that is named for a language."""
    if re.search(r"py", key, re.IGNORECASE):
        return machine.python
    return machine.node if re.search(r"node", key, re.IGNORECASE) else UNKNOWN


def _values(key: str, value: JsonValue, machine: Machine) -> list[JsonValue | Value]:
    if isinstance(value, list):
        return list(value) or [None]
    return [_here(key, machine)]


def _entries(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _fits(row: Mapping[str, object], entry: Mapping[str, object]) -> bool:
    return all(row.get(key) == value for key, value in entry.items())


def _flat(row: Mapping[str, JsonValue | Value], before: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the values of a row; one inside another has both names, as in `matrix.os.name`."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", UNKNOWN if isinstance(value, list) else value


def _context(row: Row, workflow: JsonValue, job: JsonValue) -> Context:
    base: dict[str, Mapping[str, Value]] = {
        "matrix": row,
        "runner": {"os": "Linux", "arch": "X64"},
        "github": {
            "event_name": "pull_request",
            "ref": "refs/pull/1/merge",
            "ref_type": "branch",
            "workspace": ".",
        },
        "strategy": {},
    }
    variables = dict[str, Value]()
    for place in (part(workflow, "env"), part(job, "env")):
        for key, value in mapping_of(place).items():
            known = substitute(str(value), {**base, "env": variables})
            variables[key] = UNKNOWN if known is None else known
    return {**base, "env": variables}


def _is_linux(runs_on: JsonValue, context: Context) -> bool:
    named = " ".join(map(str, runs_on)) if isinstance(runs_on, list) else str(runs_on or "")
    known = substitute(named, context)
    return known is None or not re.search(r"windows|macos", known, re.IGNORECASE)


VERSION = re.compile(r"(\d+)\.?(\d*)")
NOT_PLAIN = re.compile(r"bench|pypy|graal|\dt\b|-dev|rc|experimental|nightly", re.IGNORECASE)


def _distance(context: Context, machine: Machine) -> tuple[bool, int]:
    """Return how far a row of the matrix is from the versions on this machine; least first."""
    row, total = context["matrix"], 0
    for key, value in row.items():
        here = _here(key, machine)
        if isinstance(value, str) and isinstance(here, str) and here:
            total += abs(_number(value, here) - _number(here, here))
        if isinstance(value, str) and COMPILER.fullmatch(value):
            total += FAR * (value not in machine.programs)
    return _is_special(context), total


def _is_special(context: Context) -> bool:
    return any(NOT_PLAIN.search(str(value)) for value in context["matrix"].values())


COMPILER = re.compile(r"(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(?:-[\d.]+)?")
FAR = 100
"""A compiler that is not installed is farther than any version."""


def _number(version: str, like: str) -> int:
    """Return the number that tells versions apart: Python's second, the first of others."""
    if not (found := VERSION.search(version)):
        return 0
    return int(found[2] or 0) if like.startswith("3.") else int(found[1])


# Steps


def _steps(step: JsonValue, context: Context, reader: _Reader, directory: str) -> Iterator[CiStep]:
    """Yield a step, or the steps of the local action that it uses."""
    uses = str(part(step, "uses") or "")
    if uses.startswith("./"):
        yield from _of_action(uses.removeprefix("./"), step, context, reader)
        return
    variables, secret = _variables(part(step, "env"), context)
    found = CiStep(str(part(step, "name") or ""), "", needs_secret=secret)
    if uses:
        inputs, _ = _variables(part(step, "with"), context)
        yield replace(found, action=uses, inputs=inputs)
        return
    run = str(part(step, "run") or "")
    there = substitute(str(part(step, "working-directory") or directory), context)
    outer = {key: value for key, value in context["env"].items() if isinstance(value, str)}
    yield replace(
        found,
        run=None if there is None else substitute(run, context),
        directory="" if there in {None, "."} else f"{there}".removeprefix("./").rstrip("/"),
        variables={**outer, **variables},
        shell=str(part(step, "shell") or ""),
        needs_secret=secret or bool(re.search(r"\bsecrets\.", run)),
    )


def _of_action(path: str, step: JsonValue, context: Context, reader: _Reader) -> Iterator[CiStep]:
    """Yield the steps of a composite action, with its inputs."""
    names = (f"{path}/action.yml", f"{path}/action.yaml") if path else ("action.yml",)
    action = next((reader.actions[name] for name in names if name in reader.actions), None)
    steps, wanted = part(action, "runs", "steps"), mapping_of(part(action, "inputs"))
    inputs = {key: str(part(each, "default") or "") for key, each in wanted.items()}
    given, _ = _variables(part(step, "with"), context)
    inner = {**context, "inputs": {**inputs, **given}}
    for each in steps if isinstance(steps, list) else []:
        is_local = str(part(each, "uses") or "").startswith("./")
        if not is_local and (fitting := _where_it_runs(each, (inner,))) is not None:
            yield from _steps(each, fitting, reader, "")


def _variables(given: JsonValue, context: Context) -> tuple[dict[str, str], bool]:
    """Return the variables that are known, and whether one of the others is a secret."""
    known, secret = dict[str, str](), False
    for key, value in mapping_of(given).items():
        text = substitute(str(value), context)
        if text is not None:
            known[key] = text
        secret = secret or "secrets." in str(value)
    return known, secret
