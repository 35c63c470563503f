"""Read how a repository wants pull requests to look, from its base branch only (PR-10)."""

from typing import Protocol

from mulligan.config.policy import Policy
from mulligan.text.pull_template import find_template, is_usable, only_template


class BaseFiles(Protocol):
    """The files of base branches; see the port `Worktrees`."""

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None: ...
    def base_names(self, repository: str, directory: str) -> tuple[str, ...]: ...


def read_template(repository: str, policy: Policy, files: BaseFiles) -> str:
    """Return the repository's pull-request template; "" if it has none that can be used."""
    if not policy.pull_request.template:
        return ""
    path = find_template(
        *(files.base_names(repository, place) for place in (".", "docs", ".github"))
    )
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
