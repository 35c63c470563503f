"""The workflow that tries the newest agents has no secret, and opens or updates one issue."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / ".github" / "workflows" / "agents.yml"
TEXT = FILE.read_text()
# YAML 1.1 takes a bare `on` for true.
WORKFLOW = yaml.safe_load(TEXT.replace("\non:", '\n"on":'))
TRY, REPORT = WORKFLOW["jobs"]["try"], WORKFLOW["jobs"]["report"]
TITLE = "The newest coding agents fail make check-agents"

GH = """\
#!/usr/bin/env python3
import json, pathlib, sys
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["issue", "list"]:
    print((here / "known").read_text())
"""


def test_it_runs_every_week_and_on_request() -> None:
    assert {*WORKFLOW["on"]} == {"schedule", "workflow_dispatch"}
    ((cron,),) = [each.values() for each in WORKFLOW["on"]["schedule"]]
    *_, month, weekday = cron.split()
    assert (month, weekday.isdigit()) == ("*", True)


def test_new_programs_run_in_a_job_that_only_reads_and_has_no_token() -> None:
    assert WORKFLOW["permissions"] == {}
    assert TRY["permissions"] == {"contents": "read"}
    assert REPORT["permissions"] == {"contents": "read", "issues": "write"}
    assert "secrets." not in TEXT
    assert "token" not in json.dumps(TRY)
    assert TRY["steps"][0]["with"] == {"persist-credentials": False}
    assert not any("uses" in step for step in REPORT["steps"])
    assert any("make check-agents NEWEST=1" in step.get("run", "") for step in TRY["steps"])


def test_actions_are_pinned_and_no_value_becomes_part_of_a_script() -> None:
    steps = [step for job in (TRY, REPORT) for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    others = "".join((FILE.parent / name).read_text() for name in ("ci.yml", "release.yml"))
    assert used
    assert all(re.search(r"@[0-9a-f]{40}$", each) and each in others for each in used)
    assert not any("${{" in step.get("run", "") for step in steps)


def report(tmp_path: Path, summary: str, known: str) -> tuple[list[list[str]], str]:
    """Run the step that reports, with a program in place of gh; give its calls and the text."""
    program = tmp_path / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(GH)
    program.chmod(0o755)
    (program.parent / "known").write_text(known)
    (step,) = REPORT["steps"]
    path = f"{program.parent}:{os.environ['PATH']}"
    given = {"PATH": path, "SUMMARY": summary, "RUN": "https://x.example/run"}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=given, check=True)
    calls = [json.loads(line) for line in (program.parent / "calls").read_text().splitlines()]
    return calls, (tmp_path / "body.md").read_text()


@pytest.mark.parametrize(
    ("known", "call"),
    [
        ("", ["issue", "create", "--title", TITLE, "--body-file", "body.md"]),
        ("7", ["issue", "edit", "7", "--body-file", "body.md"]),
    ],
)
def test_there_is_one_issue(tmp_path: Path, known: str, call: list[str]) -> None:
    failed = "agent claude: @anthropic-ai/claude-code 9.1.0\nFAILED tests/real/x.py::test[claude]"
    (asked, made), body = report(tmp_path, failed, known)
    assert (asked[:2], made) == (["issue", "list"], call)
    assert f'select(.title == "{TITLE}")' in asked[-1]
    assert f"```text\n{failed}\n```\n" in body
    assert "https://x.example/run" in body


def test_what_agents_wrote_stays_short_and_plain(tmp_path: Path) -> None:
    evil = "```\n<script>alert(1)</script> $(touch evil) `touch evil` %s\x1b[31m\n" + "x" * 5000
    _, body = report(tmp_path, evil + "\ny" * 500, "")
    assert len(body) < 3000
    assert body.count("```") == 2
    assert not re.search(r"[<>$\x1b%]", body)
    assert not (tmp_path / "evil").exists()


def test_the_summary_has_the_versions_and_the_failed_tests(tmp_path: Path) -> None:
    (step,) = (step for step in TRY["steps"] if step.get("id") == "summary")
    log = "agent claude: c 1 in /x\nsome output\nFAILED tests/real/x.py::test[claude] - E\n" * 50
    (tmp_path / "agents.log").write_text(log)
    given = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(tmp_path / "out")}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=given, check=True)
    first, *lines, last = (tmp_path / "out").read_text().splitlines()
    assert first == f"summary<<{last}"
    assert len(lines) == 40
    assert {line.split()[0] for line in lines} == {"agent", "FAILED"}
