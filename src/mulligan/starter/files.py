"""The text of the files that are proposed: the repository's policy, and the operator's. Pure."""

import json
import re
from collections.abc import Iterator

from mulligan.starter.origin import Origin
from mulligan.starter.proposal import Proposal, Proposed

PLAIN = re.compile(r"[A-Za-z./](?:(?! #|: )[\w ./=@+:,()-])*(?<![ :])")
"""What YAML takes for text as it stands."""

POLICY = """\
# How Mulligan works on this repository. It is read from the base branch.
# Each key is explained at docs/configuration.md of Mulligan.
"""
NO_CHECKS = """\
# Name the commands that decide whether a change holds, such as:
# checks:
#   - {name: tests, run: make test, kind: test}
"""
OPERATOR = """\
# What this machine serves, and by which agent. `mulligan doctor` says what is missing.
github:
"""
KINDS = ("claude", "codex", "gemini", "opencode", "aider")
"""Agents that are built in, by the names of their programs."""


def policy_text(proposal: Proposal) -> str:
    """Write `.github/mulligan.yml`."""
    if not proposal.checks:
        return f"{POLICY}{NO_CHECKS}"
    return POLICY + "\n".join(["", *_lines(proposal), ""])


def _lines(proposal: Proposal) -> Iterator[str]:
    if proposal.setup:
        yield "# Run before the agent, with the network: they install what the checks need."
        yield "setup:"
        yield from (f"  - {_scalar(line)}" for line in proposal.setup)
        yield ""
    yield "# They decide whether a change holds, in this order."
    yield "checks:"
    for check in proposal.checks:
        yield from _check(check)


def _check(check: Proposed) -> Iterator[str]:
    yield f"  - name: {_scalar(check.name)}"
    yield f"    run: {_scalar(check.run)}  # from {check.source}"
    yield f"    kind: {check.kind}"
    if check.network:
        yield "    network: true  # it fetches what it needs while it runs"


def operator_text(origin: Origin, agent: str) -> str:
    """Write `mulligan.yml` for one repository."""
    lines = [OPERATOR.rstrip("\n")]
    if origin.api_url:
        lines.append(f"  api_url: {origin.api_url}")
    lines.append("  token: $GITHUB_TOKEN")
    lines += ["repositories:", f"  - name: {origin.name}"]
    lines += ["agent:", f"  kind: {agent}", ""]
    return "\n".join(lines)


def _scalar(text: str) -> str:
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
