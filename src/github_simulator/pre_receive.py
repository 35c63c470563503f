"""The hook with which a bare repository refuses pushes that break its rules, as GitHub does.

Git runs this file with a Python of its own: it imports nothing of Mulligan and of the simulator.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypedDict

MIB = 1024**2

NOTHING = "0" * 40

HEADS = "refs/heads/"


class Parameters(TypedDict, total=False):
    """The parameters of a rule, as in GitHub's API."""

    operator: str
    pattern: str
    negate: bool
    restricted_file_paths: list[str]
    max_file_size: int


class Rule(TypedDict):
    """A rule, and the patterns of its branches."""

    type: str
    branches: list[str]
    parameters: Parameters


class Rules(TypedDict):
    """The file of the hook: the rules, and the public keys that verify signatures."""

    rules: list[Rule]
    keys: list[str]


def main(place: str, pushes: Sequence[str]) -> int:
    """Judge each line `OLD NEW REF` of a push by the rules in a file; 1 refuses all of them."""
    told: Rules = json.loads(Path(place).read_text(encoding="utf-8"))
    with NamedTemporaryFile("w", prefix="allowed-", suffix=".txt") as allowed:
        allowed.write("".join(f"* {key}\n" for key in told["keys"]))
        allowed.flush()
        broken = list(_broken(told["rules"], pushes, allowed.name))
    for reason in broken:
        sys.stderr.write(f"error: GH013: Repository rule violations found: {reason}\n")
    return 1 if broken else 0


def _broken(rules: Sequence[Rule], pushes: Sequence[str], allowed: str) -> Iterator[str]:
    for push in pushes:
        old, new, ref = push.split()
        branch = ref.removeprefix(HEADS)
        for rule in rules:
            is_for_it = any(fnmatchcase(branch, each) for each in rule["branches"])
            if ref.startswith(HEADS) and is_for_it:
                kind, about = rule["type"], rule["parameters"]
                if reason := _reason(kind, about, (old, new, branch), allowed):
                    yield reason


def _reason(kind: str, about: Parameters, push: tuple[str, str, str], allowed: str) -> str:
    """Return why a rule refuses a push, or an empty string."""
    old, new, branch = push
    if new == NOTHING:
        return "Cannot delete this branch" if kind == "deletion" else ""
    commits = _git("rev-list", new, "--not", "--all").split()
    if kind == "creation" and old == NOTHING:
        return "Cannot create ref due to creations being restricted."
    if kind == "update" and old != NOTHING:
        return "Cannot update this protected ref."
    if kind == "branch_name_pattern" and not _accepts(about, branch):
        return "Branch name must match a given pattern."
    if kind == "non_fast_forward" and old != NOTHING:
        return "Cannot force-push to this branch" if _git("rev-list", old, f"^{new}") else ""
    if kind == "pull_request" and old != NOTHING:
        return "Changes must be made through a pull request."
    return next(filter(None, (_wrong(kind, about, sha, allowed) for sha in commits)), "")


def _wrong(kind: str, about: Parameters, sha: str, allowed: str) -> str:
    """Return why a rule refuses a commit, or an empty string."""
    setting = f"gpg.ssh.allowedSignersFile={allowed}"
    texts = {
        "commit_message_pattern": "%B",
        "commit_author_email_pattern": "%ae",
        "committer_email_pattern": "%ce",
    }
    if kind == "required_signatures" and not _succeeds("-c", setting, "verify-commit", sha):
        return "Commits must have verified signatures."
    if kind == "required_linear_history" and " " in _git("show", "-s", "--format=%P", sha).strip():
        return "This branch must not contain merge commits."
    if kind in texts:
        text = _git("show", "-s", f"--format={texts[kind]}", sha)
        return "" if _accepts(about, text) else f"Must match a given pattern: {kind}"
    if kind == "file_path_restriction":
        changed = _git("diff-tree", "--no-commit-id", "--name-only", "-r", sha).splitlines()
        denied = about.get("restricted_file_paths", [])
        found = next((name for name in changed for each in denied if fnmatchcase(name, each)), "")
        return f"File path must not match: {found}" if found else ""
    if kind == "max_file_size":
        listed = (line.split() for line in _git("ls-tree", "-r", "-l", sha).splitlines())
        limit = about.get("max_file_size", 0) * MIB
        return "File is too large" if any(int(each[3]) > limit for each in listed) else ""
    return ""


def _accepts(about: Parameters, text: str) -> bool:
    pattern, text = about.get("pattern", ""), text.rstrip("\n")
    operator = about.get("operator", "")
    found = {
        "starts_with": text.startswith(pattern),
        "ends_with": text.endswith(pattern),
        "contains": pattern in text,
        "regex": operator == "regex" and bool(re.search(pattern, text)),
    }[operator]
    return found is not bool(about.get("negate"))


def _git(*arguments: str) -> str:
    return _run(*arguments).stdout


def _succeeds(*arguments: str) -> bool:
    return _run(*arguments).returncode == 0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.stdin.read().splitlines()))
