"""Give a bare repository the hook that enforces its rules."""

import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from pydantic import JsonValue

from github_simulator import pre_receive
from github_simulator.records import Repository, User


def enforce(repository: Repository, users: Iterable[User]) -> None:
    """Write the hook and its rules. A rule that somebody may bypass is not enforced.

    Pushes reach the bare repository by its path, so nobody knows whose they are.
    """
    classic = (
        (kind, (branch,), dict[str, JsonValue]())
        for branch, kinds in repository.protected.items()
        for kind in sorted(kinds)
    )
    binding = (
        (each.type, each.branches, dict(each.parameters))
        for each in repository.rules
        if not each.bypassed_by
    )
    rules = [
        {"type": kind, "branches": branches, "parameters": parameters}
        for kind, branches, parameters in (*binding, *classic)
    ]
    hooks = repository.bare / "hooks"
    hooks.mkdir(exist_ok=True)
    keys = [key for user in users for key in user.signing_keys]
    (hooks / "rules.json").write_text(json.dumps({"rules": rules, "keys": keys}))
    words = (sys.executable, str(Path(pre_receive.__file__)), str(hooks / "rules.json"))
    hook = hooks / "pre-receive"
    merges = '[ -z "$SIMULATOR_MERGES" ] || exit 0'
    hook.write_text(f"#!/bin/sh\n{merges}\nexec {shlex.join(words)}\n")
    hook.chmod(0o755)
