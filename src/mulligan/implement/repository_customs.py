"""Read how a repository wants pull requests and titles to look, from its base branch only.

The template is for PR-10, the form of titles for PR-11.
"""

import json
from collections.abc import Sequence
from typing import Protocol

import yaml
from pydantic import TypeAdapter, ValidationError

from mulligan.config.policy import Policy, TitleSource
from mulligan.implement.change_title import PLAIN, TitleStyle, style_of, title_request
from mulligan.text.pull_template import find_template, is_usable, only_template

PLACES = (".", "docs", ".github")
"""Where templates are, and configurations: one listing for both."""


class BaseFiles(Protocol):
    """The files of base branches; see the port `Worktrees`."""

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None: ...
    def base_names(self, repository: str, *directories: str) -> tuple[str, ...]: ...
    def base_subjects(self, repository: str, sha: str, most: int) -> Sequence[str]: ...


def read_template(repository: str, policy: Policy, files: BaseFiles) -> str:
    """Return the repository's pull-request template; "" if it has none that can be used."""
    if not policy.pull_request.template:
        return ""
    path = find_template(files.base_names(repository, *PLACES))
    content = _template_at(repository, path, files) if path else b""
    text = content.decode(errors="replace")
    return text if is_usable(text) else ""


def _template_at(repository: str, path: str, files: BaseFiles) -> bytes:
    """Read a template, or the only one of a directory."""
    content = files.base_file(repository, path)
    if content is None:
        path = only_template(files.base_names(repository, path))
        content = files.base_file(repository, path) if path else None
    return content or b""


COMMITLINT = (".commitlintrc.json", ".commitlintrc.yaml", ".commitlintrc.yml", ".commitlintrc")
"""The files of commitlint that need no program to be read (https://commitlint.js.org)."""

PACKAGE = "package.json"

MAX_BYTES = 256 * 1024

MAX_SUBJECTS = 50

OBJECT: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


def read_title_style(repository: str, policy: Policy, files: BaseFiles, sha: str) -> TitleStyle:
    """Find the form of titles at a commit of the base branch; no file is executed."""
    if policy.pull_request.title is TitleSource.ISSUE or not sha:
        return PLAIN
    subjects = files.base_subjects(repository, sha, MAX_SUBJECTS)
    return style_of(subjects, _commitlint(repository, files, sha))


def wanted_title(policy: Policy, style: TitleStyle) -> str:
    """Say what title the agent may propose; "" if it may propose none."""
    return title_request(style) if policy.pull_request.title is TitleSource.CHANGE else ""


def _commitlint(repository: str, files: BaseFiles, sha: str) -> dict[str, object] | None:
    names = set(files.base_names(repository, *PLACES))
    for name in COMMITLINT:
        if name in names and (found := _parsed(files.base_file(repository, name, sha))):
            return found
    package = _parsed(files.base_file(repository, PACKAGE, sha)) if PACKAGE in names else None
    found = (package or {}).get("commitlint")
    return OBJECT.validate_python(found) if isinstance(found, dict) else None


def _parsed(content: bytes | None) -> dict[str, object] | None:
    """Parse JSON or YAML; None if it is no object."""
    text = (content or b"")[:MAX_BYTES].decode(errors="replace")
    try:
        # JSON with tabs is no YAML.
        parsed: object = json.loads(text) if text.lstrip()[:1] == "{" else yaml.safe_load(text)
        return OBJECT.validate_python(parsed, strict=True)
    except (ValueError, yaml.YAMLError, ValidationError, RecursionError):
        return None
