"""What a command prints with `--json` has the published schema."""

import json
import os
from pathlib import Path

import pytest

from mulligan.interfaces.json_types import ADAPTERS
from world.fork_server import run_forked
from world.place import MulliganInstallation, mulligan_installation
from world.repositories import git

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_links_to_every_schema() -> None:
    listed = PAGE.read_text(encoding="utf-8")
    assert [name for name in ADAPTERS if f"(schemas/output/{name}.json)" not in listed] == []


AGENT = """\
import json
if "Retry context" not in prompt:
    sys.exit(0)
pathlib.Path("notes.txt").write_text("two\\n")
told = {"learned": ["Integration tests need a database on port 5433."]}
pathlib.Path(__import__("os").environ["MULLIGAN_REPORT"]).write_text(json.dumps(told))
"""


@pytest.mark.deep
def test_every_command_prints_what_its_schema_says(tmp_path: Path) -> None:
    checks = [{"name": "notes", "run": "grep -q two notes.txt", "kind": "test"}]
    files = {"notes.txt": "one\n"}
    with mulligan_installation(tmp_path, files, checks, learnings="repository") as here:
        here.agent(AGENT)
        ref, waiting = str(here.issue()), str(here.issue("Another"))
        assert here.run("once", "--limit", "1").returncode == 0
        asserted(here, "pause", "pause", waiting.partition("#")[0])
        asserted(here, "status", "status")
        asserted(here, "pause", "resume")
        asserted(here, "command", "pause", waiting)
        assert here.run("once").returncode == 0
        (noted,) = json.loads(asserted(here, "learnings-issue", "learnings", "--issue", ref))
        assert here.run("debug", "learnings", "accept", ref, noted["id"]).returncode == 0
        for name in ("status", "stats", "doctor", "config-check", "learnings"):
            asserted(here, name, *name.split("-"))
        asserted(here, "config-check", "config", "check", "--policy", "missing.yml")
        for name in ("inspect", "explain", "prompt"):
            asserted(here, name, name, ref)
        asserted(here, "inspect-verify", "inspect", ref, "--verify")
        asserted(here, "command", "retry", ref)
        git(tmp_path, "clone", "--quiet", str(here.bare), "clone")
        (tmp_path / "clone" / "policy.yml").write_text("checks: [{name: fails, run: exit 3}]\n")
        home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        check = ("check", "--policy", "policy.yml", "--json")
        tried = run_forked(check, tmp_path / "clone", home).stdout
        assert ADAPTERS["check"].validate_json(tried, strict=True, extra="forbid")
        digest = run_forked(("debug", "digest", "--json"), tmp_path, home, said="E: boom\n").stdout
        assert ADAPTERS["digest"].validate_json(digest, strict=True, extra="forbid")


def asserted(here: MulliganInstallation, name: str, *arguments: str) -> str:
    """Run a command with `--json`, validate what it prints, and return that."""
    done = here.run(*arguments, "--json")
    assert done.returncode in {0, 2}, done.stderr
    found = ADAPTERS[name].validate_json(done.stdout, strict=True, extra="forbid")
    assert found or arguments == ("resume",)
    return done.stdout
