"""Why an issue is, or is not, worked on: asked of a whole Mulligan, which may be at work."""

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.world import Fault
from mulligan.config.load import load_operator
from mulligan.daemon.explain import NO_SUCH_ISSUE, explain
from mulligan.domain.errors import UnavailableError
from mulligan.domain.explanation import LOCKED, NOBODY_AT_WORK, Explanation
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.interfaces.bootstrap.container import build_read_only
from mulligan.interfaces.bootstrap.stores import at_work
from world.issue_names import ref_of
from world.place import MAINTAINER, NAME, MulliganInstallation, mulligan_installation

FILES = {"notes.txt": "one\n"}
WAIT = "(pathlib.Path.home() / 'started').touch()\nimport time\ntime.sleep(60)\n"
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"
ASK = """
report = '{"status": "blocked", "reason": "Which rounding?"}'
pathlib.Path(os.environ["MULLIGAN_REPORT"]).write_text(report)
"""
GONE = "It will not be worked on: "


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES) as made:
        yield made


def ask(here: MulliganInstallation, ref: IssueRef) -> Explanation:
    operator = load_operator(here.config, here.environment)
    with build_read_only(operator, here.environment) as bench:
        return explain(ref, bench.context, at_work(operator))


def test_an_issue_that_asks_for_work_is_next(here: MulliganInstallation) -> None:
    found = ask(here, here.issue())
    assert found.eligible
    assert found.summary == "Mulligan starts work at the next pass: attempt 1 of 3."
    assert found.act
    assert (found.act.actor, found.act.trusted) == (MAINTAINER, True)
    assert found.notes == (NOBODY_AT_WORK,)
    assert [rule.rule for rule in found.rules if rule.refusal] == []


def claude(here: MulliganInstallation, content: str) -> None:
    """Install a program in the place of Claude Code, which Mulligan's sandbox confines."""
    program = here.directory / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(content)
    program.chmod(0o755)
    here.environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    here.environment["ANTHROPIC_API_KEY"] = "sk-ant-k"
    here.configure(agent={"kind": "claude"})


def test_an_agent_that_rests_is_named_on_every_issue(here: MulliganInstallation) -> None:
    claude(
        here,
        '#!/bin/sh\ntest "$1" = --version && echo 2.1.197 && exit\n'
        "echo 'Not logged in. Please run /login' >&2; exit 1\n",
    )
    first, second = here.issue(), here.issue()
    done = here.run("once")
    (failed,) = here.attempts(first)
    assert (failed.outcome, done.returncode) == (Outcome.DENIED, 1)
    told = ask(here, second).summary
    assert "The agent 'claude' has failed since" in told
    until = failed.last_usage.rest.until if failed.last_usage and failed.last_usage.rest else None
    assert until
    assert f"The next try starts after {until:%Y-%m-%d %H:%M:%S} UTC." in told
    assert f"waits until {until:%H:%M:%S} UTC" in done.stderr
    assert f"It waits until {until:%Y-%m-%d %H:%M:%S} UTC" in ask(here, first).summary
    assert "The agent 'claude' has failed since" in here.run("status").stdout
    (comment,) = here.comments(second)
    assert "is queued" not in comment


def test_a_program_that_does_not_start_is_named(here: MulliganInstallation) -> None:
    claude(here, "#!/nowhere/node\n")
    assert "bin/claude does not start" in ask(here, here.issue()).summary


UNREADABLE = [
    ("/permission", Fault(403, '{"message": "Resource not accessible."}')),
    ("/events", Fault(500)),
    ("/graphql", Fault(500)),
]


@pytest.mark.parametrize(("part", "fault"), UNREADABLE)
def test_what_cannot_be_read_of_a_request_is_named_and_fails_the_pass(
    here: MulliganInstallation, part: str, fault: Fault
) -> None:
    ref = here.issue()
    here.world.faults = lambda _, path: fault if path.endswith(part) else None
    told = here.run("explain", str(ref))
    assert part in told.stdout + told.stderr
    done = here.run("once")
    assert done.returncode == 1
    assert f"{ref}: GitHub" in done.stderr
    assert part in done.stderr


def test_a_label_that_is_misspelled_is_named(here: MulliganInstallation) -> None:
    ref = ref_of(here.world.open_issue(NAME, "Mend it", "Please.", "zoe"))
    for label in ("mulligan:review", "muligan"):
        here.world.label(ref, label, MAINTAINER)
    found = ask(here, ref)
    assert found.summary == (
        f"{GONE}The label 'mulligan' is not on it; it has 'muligan'. Add 'mulligan' instead."
    )
    assert "does not yet report" not in "".join(rule.refusal or "" for rule in found.rules)


def test_a_label_by_somebody_who_may_not_names_that_person(here: MulliganInstallation) -> None:
    ref = ref_of(here.world.open_issue(NAME, "Mend it", "Please.", "zoe"))
    assert "add it" in ask(here, ref).summary
    here.world.label(ref, "mulligan", "tri")
    found = ask(here, ref)
    assert not found.eligible
    assert "tri has the permission triage" in found.summary
    assert found.act
    assert not found.act.trusted


def test_a_pull_request_is_left_alone(here: MulliganInstallation) -> None:
    here.agent(WRITE)
    here.issue()
    assert here.run("once").returncode == 0
    pull = IssueRef(NAME, here.world.pulls_of(NAME)[0].number)
    here.world.label(pull, "mulligan", MAINTAINER)
    assert ask(here, pull).summary == f"{GONE}It is a pull request; add the label to an issue."


def test_an_issue_that_is_gone_is_a_sentence(here: MulliganInstallation) -> None:
    here.agent(ASK)
    deleted, moved = here.issue(), here.issue()
    here.run("once")
    here.world.add_repository("acme/other", here.bare)
    here.world.delete(deleted)
    here.world.transfer(moved, "acme/other", MAINTAINER)
    ends = {deleted: "was deleted", moved: "was transferred to another repository"}
    for ref, how in ends.items():
        found = ask(here, ref)
        assert found.summary == f"{GONE}{ref} {how}."
        assert (found.stage, found.title, found.eligible) == (Stage.HITL, "Mend it", False)
    never = ask(here, IssueRef(NAME, 99))
    assert never.summary == f"{GONE}{NO_SUCH_ISSUE}"


def test_an_archived_repository_is_told_and_left_alone(here: MulliganInstallation) -> None:
    ref = here.issue()
    here.world.archive(NAME)
    assert ask(here, ref).summary == f"{GONE}The repository is archived; unarchive it."
    assert "The repository is archived" in here.run("once").stdout
    assert here.comments(ref) == []


def test_a_repository_that_is_out_of_sight_is_a_sentence(here: MulliganInstallation) -> None:
    ref = here.issue()
    here.world.repositories[NAME].private = True
    here.world.set_role(NAME, "mulligan-bot", "none")
    found = ask(here, ref)
    assert "GitHub does not find the repository" in found.summary
    assert "token can read" in found.summary


def test_a_locked_conversation_does_not_stop_the_work(here: MulliganInstallation) -> None:
    ref = here.issue()
    here.world.set_lock(ref, MAINTAINER, locked=True)
    found = ask(here, ref)
    assert found.eligible
    assert LOCKED in found.notes


def test_a_github_that_is_away_is_no_answer(here: MulliganInstallation) -> None:
    ref = here.issue()
    here.world.faults = lambda _method, _path: Fault(502)
    with pytest.raises(UnavailableError, match="try again later"):
        ask(here, ref)


def test_beside_a_worker_it_names_the_worker_and_takes_nothing(here: MulliganInstallation) -> None:
    here.agent(WAIT)
    ref, other = here.issue(), here.issue()
    worker = here.start("once")
    timeout = time.monotonic() + 120
    while not here.agent_started():
        assert time.monotonic() < timeout
        time.sleep(0.02)
    found = ask(here, ref)
    assert "is working on it now: attempt 1, since" in found.summary
    assert found.stage is Stage.RUNNING
    assert ask(here, other).notes == ()
    assert "is working on it now" in ask(here, ref).summary
    assert worker.poll() is None
    worker.kill()
    worker.communicate()


def test_the_command_prints_every_rule_behind_its_mark(here: MulliganInstallation) -> None:
    here.agent(ASK)
    ref = here.issue()
    here.run("once")
    done = here.run("explain", str(ref).upper())
    assert (done.returncode, done.stderr) == (0, "")
    headline, summary, asked, gap, *rules = done.stdout.splitlines()
    assert headline == f"{ref}  Mend it"
    assert summary.startswith("It needs human review: ")
    assert "Which rounding?" in summary
    assert "#issuecomment-" in summary
    assert asked.startswith(f"{MAINTAINER} requested the work with the label at ")
    assert gap == ""
    assert "✓ It is open." in rules
    asks = "For new attempts, add the label, or write `/mulligan retry`."
    assert f"✗ It needs human review. {asks}" in rules


def test_programs_get_json(here: MulliganInstallation) -> None:
    ref = here.world.open_issue(NAME, "Mend it", "Please.", "zoe")
    found = here.ask("explain", str(ref))
    assert isinstance(found, dict)
    rules = found.pop("rules")
    reason = "The label 'mulligan' is not on it; add it."
    assert found == {
        "issue": str(ref),
        "stage": "ready",
        "eligible": False,
        "summary": f"{GONE}{reason}",
        "asked_by": None,
        "notes": [],
    }
    assert isinstance(rules, list)
    assert {"rule": "open", "ok": True, "reason": None} in rules
    assert {"rule": "labelled", "ok": False, "reason": reason} in rules


def test_a_repository_that_is_not_served_is_named(here: MulliganInstallation) -> None:
    done = here.run("explain", "acme/other#1")
    assert done.returncode == 2
    assert done.stderr == (
        "mulligan: acme/other is not in the configuration. Add it to `repositories` in"
        " mulligan.yml.\n"
    )
