"""List the files that an agent may not change, by kind: patterns, reason, and words. Pure.

They control more than the program itself. `checks/guards/scope.py` refuses a change of them, and
the prompt names them.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Protected(StrEnum):
    """Kinds of files that control more than the program itself; see Guards."""

    WORKFLOWS = "workflows"
    INSTRUCTIONS = "instructions"
    POLICY = "policy"
    OWNERS = "owners"
    GIT = "git"
    AUTORUN = "autorun"


PROTECTED_BY_DEFAULT = tuple(kind for kind in Protected if kind is not Protected.AUTORUN)
"""Not AUTORUN: work on such files is common, and they do no more than the person who opens them
lets them do."""


@dataclass(frozen=True, slots=True)
class ProtectedFiles:
    """The files of a kind, as a prompt names them, and the reason for which a change is refused.

    The `patterns` are those of `.gitignore`, for a path after `normalised_path`.
    """

    named: str
    reason: str
    patterns: tuple[str, ...]


PROTECTED: Mapping[Protected, ProtectedFiles] = {
    Protected.WORKFLOWS: ProtectedFiles(
        "CI workflows",
        "it decides what runs in CI",
        (
            *("/.github/workflows/", "/.github/actions/", "/.gitlab-ci.yml", "/.gitlab/ci/"),
            *("/.circleci/", "/.buildkite/", "/.woodpecker/", "/.woodpecker.yml", "/.drone.yml"),
            *("/.travis.yml", "/jenkinsfile", "/azure-pipelines.yml", "/bitbucket-pipelines.yml"),
        ),
    ),
    Protected.INSTRUCTIONS: ProtectedFiles(
        "instruction files of coding agents (`AGENTS.md` and the like)",
        "it tells coding agents what to do",
        (
            *("claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md"),
            *("qwen.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roorules"),
            *(".goosehints", ".aider.conf.yml", ".mcp.json", "opencode.json", "opencode.jsonc"),
            *(".claude/", ".codex/", ".gemini/", ".cursor/", ".opencode/", ".agents/"),
            *(".windsurf/", ".roo/", ".junie/", ".kiro/", ".continue/", "/.vscode/mcp.json"),
            *("/.github/copilot-instructions.md", "/.github/instructions/", "/.github/prompts/"),
            *("/.github/agents/", "/.github/chatmodes/", "/.github/skills/"),
        ),
    ),
    Protected.POLICY: ProtectedFiles(
        "`.github/mulligan.yml`, `.github/mulligan/`",
        "it configures Mulligan",
        ("/.github/mulligan.yml", "/.github/mulligan.yaml", "/.github/mulligan/"),
    ),
    Protected.OWNERS: ProtectedFiles(
        "`CODEOWNERS`",
        "it decides who reviews",
        ("/codeowners", "/.github/codeowners", "/docs/codeowners"),
    ),
    Protected.GIT: ProtectedFiles(
        "`.gitattributes`, `.gitmodules`, `.lfsconfig`",
        "it changes how git reads this repository",
        (".gitmodules", ".gitattributes", ".lfsconfig"),
    ),
    Protected.AUTORUN: ProtectedFiles(
        "files that run when somebody opens the work (`.vscode/`, `.husky/`, `.env` and the like)",
        "it runs, or bots read it, when somebody opens or merges the work",
        (
            *(".env", ".envrc", "mise.toml", ".mise.toml", ".exrc", ".nvim.lua", ".dir-locals.el"),
            *(".vscode/", "*.code-workspace", ".idea/", ".fleet/", ".zed/", ".devcontainer/"),
            *(".devcontainer.json", ".gitpod.yml", ".gitpod.dockerfile"),
            *(".husky/", ".githooks/", "lefthook.yml", "lefthook.yaml", ".lefthook.yml"),
            *(".pre-commit-config.yaml", ".pre-commit-hooks.yaml", ".overcommit.yml"),
            *(".lintstagedrc*", "/.github/settings.yml", "/.github/dependabot.yml"),
            *("/.github/dependabot.yaml", "renovate.json", "renovate.json5", ".renovaterc"),
            *(".renovaterc.json", ".mergify.yml", "/.mergify/", "/.github/mergify.yml"),
            *("owners", "owners_aliases"),
        ),
    ),
}


def normalised_path(path: str) -> str:
    """Normalise a path, so that names that a file system treats as equal become equal."""
    seen = "".join(sign for sign in path if unicodedata.category(sign) != "Cf")
    parts = unicodedata.normalize("NFKC", seen).casefold().split("/")
    return "/".join(part.rstrip(" .") for part in parts)
