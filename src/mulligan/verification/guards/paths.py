"""Which paths may change: the scope, and what is protected whatever the scope says. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from pathspec import GitIgnoreSpec

from mulligan.config.policy import Protected, Scope
from mulligan.domain.attempt import Change
from mulligan.domain.guard import GuardKind, GuardViolation
from mulligan.errors import MisconfiguredError
from mulligan.verification.guards.patch import Patch

PROTECTED: Mapping[Protected, tuple[str, ...]] = {
    Protected.WORKFLOWS: (
        *("/.github/workflows/", "/.github/actions/", "/.gitlab-ci.yml", "/.gitlab/ci/"),
        *("/.circleci/", "/.buildkite/", "/.woodpecker/", "/.woodpecker.yml", "/.drone.yml"),
        *("/.travis.yml", "/jenkinsfile", "/azure-pipelines.yml", "/bitbucket-pipelines.yml"),
    ),
    Protected.INSTRUCTIONS: (
        *("claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md"),
        *("qwen.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".goosehints"),
        *(".aider.conf.yml", ".mcp.json", "opencode.json", "opencode.jsonc"),
        *(".claude/", ".codex/", ".gemini/", ".cursor/", ".opencode/", ".agents/", ".windsurf/"),
        *(".roo/", ".junie/", ".kiro/", ".continue/", "/.vscode/mcp.json"),
        *("/.github/copilot-instructions.md", "/.github/instructions/", "/.github/prompts/"),
        *("/.github/agents/", "/.github/chatmodes/", "/.github/skills/"),
    ),
    Protected.POLICY: ("/.github/mulligan.yml", "/.github/mulligan/"),
    Protected.OWNERS: ("/codeowners", "/.github/codeowners", "/docs/codeowners"),
    Protected.GIT: (".gitmodules", ".gitattributes", ".lfsconfig"),
}
"""In lower case: some disks do not tell the cases of names apart."""

SPECS = {kind: GitIgnoreSpec.from_lines(patterns) for kind, patterns in PROTECTED.items()}
WHAT = {
    Protected.WORKFLOWS: "it decides what runs in CI",
    Protected.INSTRUCTIONS: "it tells coding agents what to do",
    Protected.POLICY: "it is what Mulligan itself goes by",
    Protected.OWNERS: "it decides who reviews",
    Protected.GIT: "it changes how git reads this repository",
}


def violations(change: Change, patches: Sequence[Patch], scope: Scope) -> Iterator[GuardViolation]:
    """Find the paths that may not change; a file that was moved away has changed, too."""
    allow, deny = spec_of(scope.allow, "allow"), spec_of(scope.deny, "deny")
    for path in changed_paths(change, patches):
        if scope.allow and not allow.match_file(path):
            message = f"{path} is outside the allowed scope ({', '.join(scope.allow)})."
            yield GuardViolation(path=path, message=message)
        elif deny.match_file(path):
            message = f"{path} must not change: scope.deny has {', '.join(scope.deny)}."
            yield GuardViolation(path=path, message=message)
        else:
            yield from _protected(path, scope)


def changed_paths(change: Change, patches: Sequence[Patch]) -> tuple[str, ...]:
    """List all names of what has changed, old ones too."""
    names = (name for file in change.files for name in (file.path, file.old_path))
    told = (name for patch in patches for name in (patch.path, patch.old_path))
    return tuple(dict.fromkeys(filter(None, (*names, *told))))


def spec_of(patterns: Sequence[str], key: str) -> GitIgnoreSpec:
    """Compile patterns of the scope; MisconfiguredError where one is none."""
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except (ValueError, re.error) as error:
        message = f"scope.{key} has a pattern that is none ({error}); write it as in .gitignore."
        raise MisconfiguredError(message) from error


def _protected(path: str, scope: Scope) -> Iterator[GuardViolation]:
    name = _as_disks_see_it(path)
    for kind in dict.fromkeys(scope.protect):
        if SPECS[kind].match_file(name):
            message = f"{path} must not change, since {WHAT[kind]} (scope.protect: {kind})."
            yield GuardViolation(kind=GuardKind.PROTECTED, path=path, message=message)


def _as_disks_see_it(path: str) -> str:
    """Write a path so that names which some file system takes for one are the same."""
    seen = "".join(sign for sign in path if unicodedata.category(sign) != "Cf")
    parts = unicodedata.normalize("NFKC", seen).casefold().split("/")
    return "/".join(part.rstrip(" .") for part in parts)
