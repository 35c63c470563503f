"""Who starts work: every role, and everything that GitHub may answer when it is asked (TRUST-1)."""

from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from github_simulator.world import Fault, Faults
from mulligan.config.operator import Trust
from mulligan.daemon.worker import Visit, Worker
from mulligan.domain.eligibility import refusal
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import Outcome
from mulligan.github.authorization import PERMISSION_TTL
from mulligan.github.tracker import GitHubTracker
from mulligan.implement.issue_snapshot import collect_facts
from mulligan.implement.phase import resume
from world.behaviours import AgentInput
from world.issue_names import ref_of
from world.scripted_agent import ScriptedAgent
from world.simulated import NAME
from world.trackers import FrozenClock
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

ROLES = {
    "none": ("none", None),
    "read": ("read", None),
    "triage": ("triage", None),
    "write": ("write", None),
    "maintain": ("maintain", None),
    "admin": ("admin", None),
    "custom from write": ("write", "security-champion"),
    "custom from triage": ("triage", "issue-sorter"),
}
MEMORY = FrozenClock()
"""The clock of what is remembered of permissions; that of the leases stands still."""
BOT, DELETED = "bot", "deleted user"
MAY = {"write", "maintain", "admin", "custom from write"}
ANSWERS = {
    "ok": None,
    "403": ("/permission", Fault(403, '{"message": "Must have push access to view it."}')),
    "404": ("/permission", Fault(404)),
    "500": ("/permission", Fault(500)),
    "event not there yet": ("/events", Fault(200, "[]")),
    "events 500": ("/events", Fault(500)),
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Generator[WorkerEnvironment]:
    """Share one private repository: there, whoever has no role may do nothing."""
    with worker_environment(tmp_path_factory.mktemp("shop")) as made:
        made.desk.hub.world.repositories[NAME].private = True
        remember_by_a_clock_of_its_own(made)
        yield made


def remember_by_a_clock_of_its_own(here: WorkerEnvironment) -> None:
    here.desk.tracker = GitHubTracker(here.desk.client, Trust(), MEMORY)


def labelled_by(here: WorkerEnvironment, who: str, login: str) -> IssueRef:
    """Have an issue labelled by somebody new, who is something to the repository."""
    world, ref = here.desk.hub.world, here.desk.hub.issue()
    if who == BOT:
        world.add_user(login := f"{login}[bot]", "Bot")
        world.set_role(NAME, login, "admin")
    elif who != DELETED:
        role, name = ROLES[who]
        world.set_role(NAME, login, role, name)
    world.add_user(login)
    world.label(ref, "mulligan", login)
    if who == DELETED:
        world.delete_user(login)
    return ref


def answering(answer: str) -> Faults | None:
    found = ANSWERS[answer]
    if found is None:
        return None
    part, fault = found
    return lambda _, path: fault if path.endswith(part) else None


def visit(here: WorkerEnvironment, ref: IssueRef, agent: ScriptedAgent) -> Visit:
    return Worker(here.context(agent)).visit(ref)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("who", [*ROLES, BOT, DELETED])
def test_work_is_started_by_those_who_may_once_github_says_so(
    here: WorkerEnvironment, who: str, answer: str
) -> None:
    agent, world = ScriptedAgent(fix_the_bug), here.desk.hub.world
    ref = labelled_by(here, who, f"{who}-{answer}".replace(" ", "-"))
    world.faults = answering(answer)
    done = visit(here, ref, agent)
    world.faults = None
    started = who in MAY and answer == "ok"
    unread = answer == "events 500" or (answer in {"403", "404", "500"} and who in ROLES)
    assert len(agent.tasks) == started
    assert bool(done.problem) is unread
    assert bool(done.skipped) is not (started or unread)
    assert (here.pushed(ref) is not None) is started
    if not started:
        assert here.said(ref) == []
        assert here.ledger.history(ref) == ()
    MEMORY.time += PERMISSION_TTL
    if who in MAY and not started:
        assert visit(here, ref, agent).attempts == 1
        assert here.ledger.status(ref).stage is Stage.REVIEW


@pytest.mark.parametrize("who", [BOT, "read"])
def test_whom_the_operator_lists_may_whatever_they_are(here: WorkerEnvironment, who: str) -> None:
    ref = labelled_by(here, who, f"listed-{who}")
    listed = (f"Listed-{who}", f"listed-{who}[bot]")
    tracker = GitHubTracker(here.desk.client, Trust(users=listed), here.desk.clock)
    context = replace(here.context(agent := ScriptedAgent(fix_the_bug)), tracker=tracker)
    assert Worker(context).visit(ref).attempts == 1
    assert len(agent.tasks) == 1


def test_an_issue_form_labels_in_the_name_of_a_stranger(here: WorkerEnvironment) -> None:
    ref = ref_of(here.desk.hub.world.open_issue(NAME, "A form", "Do it.", "zoe", ["mulligan"]))
    skipped = visit(here, ref, agent := ScriptedAgent(fix_the_bug)).skipped
    assert skipped
    assert "zoe has the permission none" in skipped
    assert agent.tasks == []


def test_somebody_who_took_over_a_login_may_not(here: WorkerEnvironment) -> None:
    world = here.desk.hub.world
    ref = labelled_by(here, "write", "oldname")
    world.rename_user("oldname", "newname")
    world.set_role(NAME, "newname", "read")
    world.add_user("oldname")
    world.set_role(NAME, "oldname", "admin")
    skipped = visit(here, ref, agent := ScriptedAgent(fix_the_bug)).skipped
    assert skipped
    assert "newname has the permission read" in skipped
    assert agent.tasks == []


def test_a_label_by_one_who_may_counts_after_one_who_may_not_and_the_other_way_round(
    here: WorkerEnvironment,
) -> None:
    world, ref = here.desk.hub.world, here.desk.hub.issue()
    found = list[bool]()
    for login in ("tri", "wes", "tri", "ada"):
        world.label(ref, "mulligan", login)
        found.append(not refusal(collect_facts(ref, here.context(fix_the_bug))))
        world.unlabel(ref, "mulligan", login)
    assert found == [False, True, False, True]


def revoke(here: WorkerEnvironment, login: str) -> None:
    here.desk.hub.world.set_role(NAME, login, "read")
    MEMORY.time += PERMISSION_TTL


@pytest.mark.parametrize("moment", ["before the agent", "during the agent", "during the checks"])
def test_who_lost_the_right_has_nothing_published(here: WorkerEnvironment, moment: str) -> None:
    login = moment.replace(" ", "-")
    ref = labelled_by(here, "write", login)

    def announced(method: str, path: str) -> Fault | None:
        if (method, moment) == ("POST", "before the agent") and path.endswith("/comments"):
            revoke(here, login)
        return None

    def work(given: AgentInput) -> None:
        fix_the_bug(given)
        if moment == "during the agent":
            revoke(here, login)

    def verdict(_: Path) -> None:
        if moment == "during the checks":
            revoke(here, login)

    agent = ScriptedAgent(work)
    here.check(verdict)
    here.desk.hub.world.faults = announced
    visit(here, ref, agent)
    here.desk.hub.world.faults = None
    here.policy.clear()
    assert len(agent.tasks) == (moment != "before the agent")
    status = here.ledger.status(ref)
    assert (status.stage, here.pushed(ref)) == (Stage.RESOLVED, None)
    assert status.reason.startswith(f"{login} has the permission read on {NAME}")
    assert here.labels(ref) == []
    assert len(here.said(ref)) == 1


def test_a_right_that_cannot_be_read_again_ends_the_attempt_and_costs_none(
    here: WorkerEnvironment,
) -> None:
    ref, agent = labelled_by(here, "write", "unread"), ScriptedAgent(fix_the_bug)
    asked = list[str]()

    def faults(_: str, path: str) -> Fault | None:
        if not path.endswith("unread/permission"):
            return None
        asked.append(path)
        return Fault(500) if len(asked) > 1 else None

    def announced(method: str, path: str) -> Fault | None:
        if method == "POST" and path.endswith("/comments"):
            MEMORY.time += PERMISSION_TTL
        return faults(method, path)

    here.desk.hub.world.faults = announced
    visit(here, ref, agent)
    here.desk.hub.world.faults = None
    (meta,) = here.ledger.history(ref)
    assert agent.tasks == []
    assert meta.outcome is Outcome.INFRASTRUCTURE
    assert "could not be read" in meta.error
    here.desk.clock.time += timedelta(hours=1)
    assert visit(here, ref, agent).attempts == 1
    assert here.ledger.status(ref).stage is Stage.REVIEW


def test_a_right_that_cannot_be_read_before_publishing_is_read_at_the_next_pass(
    tmp_path: Path,
) -> None:
    with worker_environment(tmp_path) as here:
        remember_by_a_clock_of_its_own(here)
        ref, agent = here.desk.ready(), ScriptedAgent(fix_the_bug)

        def verdict(_: Path) -> None:
            MEMORY.time += PERMISSION_TTL
            here.desk.hub.world.faults = answering("500")

        here.check(verdict)
        done = visit(here, ref, agent)
        assert done.problem
        assert "could not be read" in done.problem
        assert here.pushed(ref) is None
        here.desk.hub.world.faults = None
        Worker(here.context(agent)).run_leased(
            ref, lambda context: Visit(ref, bool(resume(ref, context)))
        )
        assert len(agent.tasks) == 1
        assert here.ledger.status(ref).stage is Stage.REVIEW
