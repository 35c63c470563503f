"""Write docs/configuration.md from the settings themselves, so that it cannot fall behind. Pure."""

from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mulligan.config.meanings import meanings, model_in
from mulligan.config.operator import Operator
from mulligan.config.policy import Policy

OPENING = """# Configuration

Two files, both YAML. A key that Mulligan does not know is refused, and so is a secret that is
written out. Durations are written `30s`, `10m`, `1h`. This page is made from the settings
themselves by `make docs`, and so are the JSON Schemas of both files, for editors:
[`mulligan.yml`](schemas/operator.json), [`.github/mulligan.yml`](schemas/policy.json).
`mulligan config check` names every mistake with its line.
"""

OPERATOR = """## `mulligan.yml`: what the operator decides

On the machine that runs Mulligan; `--config FILE`, else `./mulligan.yml`, else
`$MULLIGAN_CONFIG`. A value that is wholly `$NAME` or `${NAME}` comes from the environment.

```yaml
github: {token: $GITHUB_TOKEN}
repositories:
  - name: octocat/hello-world
    policy:
      checks: [{name: tests, run: python -m pytest -q, kind: test}]
agent: {kind: command, command: [python3, /srv/agent.py], timeout: 1h}
```
"""

POLICY = """## `.github/mulligan.yml`: what a repository decides

In each repository, and read from the base branch only, never from what an agent wrote. The
operator's `policy` replaces its top-level keys.

```yaml
max_issue_attempts: 3
checks:
  - {name: lint, run: ruff check ., kind: lint, timeout: 2m}
  - {name: tests, run: python -m pytest -q, kind: test}
scope: {deny: [".github/**"]}
```
"""

DERIVED = {
    "url": "`sqlite:///~/.local/state/mulligan/mulligan.db`",
    "root": "`~/.local/state/mulligan/work`",
}
"""Defaults that depend on the home directory."""


def reference() -> str:
    """Give the whole page."""
    parts = [OPENING, OPERATOR, *_table(Operator, ""), POLICY, *_table(Policy, "")]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _table(model: type[BaseModel], prefix: str) -> Iterator[str]:
    rows = ["| key | default | meaning |", "|---|---|---|", *_rows(model, prefix)]
    yield "\n".join(rows)


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = model_in(field)
        key = f"{prefix}{name}{_many(field) if inner else ''}"
        default = "" if inner else _default(field, model, name)
        yield f"| `{key}` | {default} | {meanings(model)[name]} |"
        if inner:
            yield from _rows(inner, f"{key}.")


def _many(field: FieldInfo) -> str:
    """Write how one of several settings is reached: by its place, or by its name."""
    written = str(field.annotation)
    if written.startswith("dict"):
        return ".NAME"
    return "[]" if "tuple" in written else ""


def _default(field: FieldInfo, model: type[BaseModel], name: str) -> str:
    if field.is_required():
        return "required"
    if field.default_factory is not None:
        return DERIVED.get(name, "none")
    written = model.model_construct().model_dump(mode="json", include={name})[name]
    if written in (None, [], ""):
        return "none"
    return f"`{str(written).lower() if isinstance(written, bool) else written}`"
