"""The required tests run on the start tree while the agent works (BASELINE-1)."""

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import JsonValue
from structlog.testing import capture_logs

from mulligan.config.policy import Baseline, Check
from mulligan.daemon.worker import Worker
from mulligan.domain.errors import MulliganError, ShutdownError, UnavailableError
from mulligan.domain.events import AgentFinished, BaselineRecorded, CheckFinished
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckKind, CheckResult, OnBase, WorkerResultMeta
from mulligan.domain.result import RanTests as Names
from mulligan.implement.attempt import begin_attempt
from mulligan.implement.baselines import (
    baseline_of,
    baselines_beside,
    run_baseline,
    run_baseline_again,
)
from mulligan.implement.ports import AttemptContext, BotContext, RunDirectory
from mulligan.implement.stopwatch import Stopwatch
from mulligan.sandbox.cancellation import SHUTDOWN, reason_to_stop
from world.behaviours import AgentInput, Behaviour
from world.scripted_verifier import ScriptedVerifier, Verdict
from world.workers import WorkerEnvironment, fix_the_bug, worker_environment

SECONDS = 30.0
TESTS = Names(ran=("test_a", "test_b[1]"), skipped=("test_c",))
CHECK = Check(name="check", run="check", kind=CheckKind.TEST)
RED = "It is red."


@pytest.fixture
def here(tmp_path: Path) -> Generator[WorkerEnvironment]:
    with worker_environment(tmp_path) as made:
        check: JsonValue = {"name": "check", "run": "check", "kind": "test"}
        made.policy |= {"checks": [check], "flaky_reruns": 0, "max_issue_attempts": 1}
        # What counts for a day counts through the whole test.
        made.desk.clock.time = made.desk.clock.time.replace(hour=12)
        yield made


@dataclass
class Story:
    """What the agent and the check did, in order, and what the check says about each tree."""

    start: Verdict
    change: Verdict
    told: list[str] = field(default_factory=list[str])

    def check(self, tree: Path) -> str | None:
        is_start = (tree / "src/tool.py").read_text() == "X = 1\n"
        name, verdict = ("start", self.start) if is_start else ("change", self.change)
        self.told.append(f"{name} begins")
        failed = verdict(tree)
        self.told.append(f"{name} ends")
        return failed

    def agent(self, given: AgentInput) -> None:
        """Work until the check has ended on the start tree."""
        until(lambda: "start ends" in self.told)
        fix_the_bug(given)
        self.told.append("agent ends")

    def quick_agent(self, given: AgentInput) -> None:
        """End as soon as the check has begun on the start tree."""
        until(lambda: "start begins" in self.told)
        fix_the_bug(given)
        self.told.append("agent ends")


def until(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.01)


def passes(_: Path) -> None:
    """Pass."""


def fails(_: Path) -> str:
    return RED


def runs_until_stopped(_: Path) -> None:
    """Run as a command does that something stops."""
    until(lambda: reason_to_stop() is not None)
    reason = reason_to_stop()
    assert reason
    raise reason


def confined(here: WorkerEnvironment, agent: Behaviour, story: Story | None = None) -> BotContext:
    """Put a worker together whose commands find each worktree at one path, as in a sandbox."""
    if story:
        here.lines["check"] = story.check
    verifier = ScriptedVerifier(here.lines, shown_at="/mulligan/worktree", tests=TESTS)
    return replace(here.context(agent), verifier=verifier)


def attempt(here: WorkerEnvironment, context: BotContext) -> WorkerResultMeta:
    ref = here.desk.ready()
    assert not Worker(context, 1).visit(ref).problem
    return here.ledger.history(ref)[-1]


def recorded(here: WorkerEnvironment) -> list[BaselineRecorded]:
    events = [each.event for each in here.ledger.events()]
    return [event for event in events if isinstance(event, BaselineRecorded)]


def background_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("background")]


def left_in(here: WorkerEnvironment) -> list[Path]:
    """List what is left of second worktrees."""
    return [*(here.directory / "one").glob("*/tmp*")]


RUNS_ON_START = ["start begins", "start ends"]
RUNS_ON_CHANGE = ["change begins", "change ends"]


def test_the_base_runs_while_the_agent_works(here: WorkerEnvironment) -> None:
    story = Story(passes, fails)
    meta = attempt(here, confined(here, story.agent, story))
    assert story.told == [*RUNS_ON_START, "agent ends", *RUNS_ON_CHANGE]
    # The attempt itself ran the check once.
    (check,) = meta.checks
    assert (check.on_base, check.runs) == (OnBase.PASSES, 1)
    (base,) = recorded(here)
    assert (base.runs, base.start_sha) == (1, meta.start_sha)
    kinds = [type(each.event) for each in here.ledger.events()]
    assert kinds.index(BaselineRecorded) < kinds.index(AgentFinished)
    assert (background_threads(), left_in(here)) == ([], [])


def test_a_failure_on_the_base_is_run_once_more_after_the_agent(here: WorkerEnvironment) -> None:
    story = Story(fails, fails)
    assert attempt(here, confined(here, story.agent, story)).checks[0].on_base is OnBase.FAILS
    expected = [*RUNS_ON_START, "agent ends", *RUNS_ON_CHANGE, *RUNS_ON_START]
    assert story.told == expected
    assert [base.runs for base in recorded(here)] == [1, 2]
    # For the next issue, all is known.
    story.told.clear()
    attempt(here, confined(here, fix_the_bug, story))
    assert story.told == RUNS_ON_CHANGE
    assert len(recorded(here)) == 2


def test_only_the_first_attempt_of_a_base_commit_pays(here: WorkerEnvironment) -> None:
    story = Story(passes, passes)
    attempt(here, confined(here, story.agent, story))
    attempt(here, confined(here, fix_the_bug, story))
    assert story.told == [*RUNS_ON_START, "agent ends", *RUNS_ON_CHANGE, *RUNS_ON_CHANGE]
    assert len(recorded(here)) == 1


def test_checks_wait_for_a_base_that_still_runs(here: WorkerEnvironment) -> None:
    story = Story(lambda _: until(lambda: "change ends" in story.told), fails)
    (check,) = attempt(here, confined(here, story.quick_agent, story)).checks
    assert (check.on_base, check.runs) == (OnBase.PASSES, 1)
    assert story.told == ["start begins", "agent ends", *RUNS_ON_CHANGE, "start ends"]


def test_the_wait_ends_with_the_timeout_of_the_check(here: WorkerEnvironment) -> None:
    def hangs_once(tree: Path) -> None:
        if story.told.count("start begins") == 1:
            runs_until_stopped(tree)

    check: JsonValue = {"name": "check", "run": "check", "kind": "test", "timeout": "100ms"}
    here.policy["checks"] = [check]
    story = Story(hangs_once, fails)
    (result,) = attempt(here, confined(here, story.quick_agent, story)).checks
    assert (result.on_base, story.told.count("start begins")) == (OnBase.PASSES, 2)
    assert len(recorded(here)) == 1


@dataclass(frozen=True)
class KillingVerifier(ScriptedVerifier):
    """Ends the first run of a check as `ends` says."""

    ends: dict[str, int | bool] = field(default_factory=dict[str, int | bool])
    ended: list[Path] = field(default_factory=list[Path])

    def check(
        self, check: Check, worktree: RunDirectory, log: Path, check_out: Callable[[], object]
    ) -> CheckResult:
        result = super().check(check, worktree, log, check_out)
        self.ended.append(worktree.path)
        return result.model_copy(update=self.ends if len(self.ended) == 1 else {})


@pytest.mark.parametrize(
    "ends",
    [
        {"timed_out": True, "exit_code": -15},
        {"exit_code": -9},
        {"exit_code": 137},
        {"exit_code": 124},
    ],
)
def test_a_base_that_was_killed_or_timed_out_beside_the_agent_does_not_count(
    here: WorkerEnvironment, ends: dict[str, int | bool]
) -> None:
    story = Story(fails, fails)
    context = confined(here, story.agent, story)
    killing = KillingVerifier(here.lines, shown_at="/mulligan/worktree", ends=ends)
    attempt(here, replace(context, verifier=killing))
    # It ran beside the agent, and twice after it as without that.
    assert story.told.count("start begins") == 3
    assert [base.runs for base in recorded(here)] == [2]


def test_a_check_that_may_be_skipped_runs_there_only_after_it_ran_on_the_change(
    here: WorkerEnvironment,
) -> None:
    check: JsonValue = {"name": "check", "run": "check", "kind": "test", "paths": ["src/"]}
    here.policy["checks"] = [check]
    story = Story(passes, passes)
    attempt(here, confined(here, fix_the_bug, story))
    assert story.told == ["change begins", "change ends", "start begins", "start ends"]


def test_a_fault_beside_the_agent_is_a_warning(here: WorkerEnvironment) -> None:
    def breaks_once(_: Path) -> None:
        if story.told.count("start begins") == 1:
            raise UnavailableError("The disk is slow.")

    story = Story(breaks_once, fails)
    agent = story.quick_agent
    with capture_logs() as logged:
        (check,) = attempt(here, confined(here, agent, story)).checks
    assert (check.on_base, check.runs) == (OnBase.PASSES, 2)
    assert [(each["event"], each["error"]) for each in logged if "error" in each] == [
        ("baseline_failed", "The disk is slow.")
    ]


def test_a_program_that_is_missing_on_the_base_is_known_after_one_run(
    here: WorkerEnvironment,
) -> None:
    here.lines.pop("check", None)

    def agent(given: AgentInput) -> None:
        until(lambda: bool(recorded(here)))
        fix_the_bug(given)

    (check,) = attempt(here, confined(here, agent)).checks
    assert check.on_base is OnBase.CANNOT_RUN
    assert [(base.check, base.runs) for base in recorded(here)] == [(None, 1)]


# The end of the attempt


@pytest.mark.parametrize("is_failing", [True, False])
def test_an_attempt_that_ends_early_stops_the_base(
    here: WorkerEnvironment, *, is_failing: bool
) -> None:
    def gives_up(_: AgentInput) -> int:
        until(lambda: "start begins" in story.told)
        return int(is_failing)

    story = Story(runs_until_stopped, passes)
    meta = attempt(here, confined(here, gives_up, story))
    assert meta.outcome is not Outcome.SUCCEEDED
    assert story.told == ["start begins"]
    assert (recorded(here), background_threads(), left_in(here)) == ([], [], [])
    # Nothing is claimed any more: the next attempt runs it.
    story.start = passes
    attempt(here, confined(here, story.agent, story))
    assert len(recorded(here)) == 1


def test_a_shutdown_stops_the_base(here: WorkerEnvironment) -> None:
    stopped = list[MulliganError]()

    def runs(tree: Path) -> None:
        try:
            runs_until_stopped(tree)
        except MulliganError as reason:
            stopped.append(reason)
            raise

    def agent(_: AgentInput) -> None:
        until(lambda: "start begins" in story.told)
        SHUTDOWN.set()
        until(lambda: bool(stopped))
        raise stopped[0]

    story = Story(runs, passes)
    try:
        meta = attempt(here, confined(here, agent, story))
    finally:
        SHUTDOWN.clear()
    assert [type(reason) for reason in stopped] == [ShutdownError]
    assert meta.outcome is Outcome.INTERRUPTED
    assert (recorded(here), background_threads(), left_in(here)) == ([], [], [])


# Two issues


def test_two_issues_on_one_base_commit_run_it_once(here: WorkerEnvironment) -> None:
    both = threading.Barrier(2)

    def agent(given: AgentInput) -> None:
        both.wait(SECONDS)
        fix_the_bug(given)
        both.wait(SECONDS)
        story.told.append("agent ends")

    story = Story(lambda _: until(lambda: story.told.count("agent ends") == 2), fails)
    context = confined(here, agent, story)
    refs = [here.desk.ready(), here.desk.ready()]
    with ThreadPoolExecutor(2) as pool:
        visits = [pool.submit(Worker(context, 2).visit, ref) for ref in refs]
        assert [each.result(SECONDS).problem for each in visits] == ["", ""]
    assert story.told.count("start begins") == 1
    checks = [here.ledger.history(ref)[-1].checks[0] for ref in refs]
    assert [check.on_base for check in checks] == [OnBase.PASSES, OnBase.PASSES]
    assert len(recorded(here)) == 1


# What ran


@contextmanager
def running_attempt(here: WorkerEnvironment, context: BotContext) -> Generator[AttemptContext]:
    """Begin an attempt at a new issue, without its agent."""
    ref = here.desk.ready()
    case = begin_attempt(context.tracker.read(ref), context)
    with context.worktrees.open(ref) as tree:
        policy = context.policies.at(ref.repository, tree.base_sha)
        stopwatch = Stopwatch(context.clock.now)
        yield AttemptContext(case, policy, tree, context.agents.default, context, stopwatch)


def test_a_check_that_passes_can_be_compared_with_what_ran_before(
    here: WorkerEnvironment,
) -> None:
    story = Story(passes, passes)
    context = confined(here, fix_the_bug, story)
    for _ in range(2):
        with running_attempt(here, context) as at, baselines_beside(at):
            before = baseline_of(CHECK, at)
            assert before
            assert (before.passed, before.tests) == (True, TESTS)
    assert story.told == RUNS_ON_START
    # The names are in a file; there may be 100,000.
    (base,) = recorded(here)
    assert base.check
    assert (base.check.tests, "test_a" in base.model_dump_json()) == (None, False)
    finished = [each.event for each in here.ledger.events()]
    assert all(event.check.tests is None for event in finished if isinstance(event, CheckFinished))


def test_names_of_tests_are_in_no_record_of_an_attempt(here: WorkerEnvironment) -> None:
    story = Story(passes, fails)
    meta = attempt(here, confined(here, story.agent, story))
    assert meta.checks[0].tests is None
    assert "test_b" not in "".join(each.model_dump_json() for each in here.ledger.events())


def test_a_baseline_whose_tests_are_lost_is_not_known(here: WorkerEnvironment) -> None:
    story = Story(passes, passes)
    context = confined(here, fix_the_bug, story)
    with running_attempt(here, context) as at, baselines_beside(at):
        assert baseline_of(CHECK, at)
    (base,) = recorded(here)
    (here.directory / "artifacts" / base.tests).write_bytes(b"not what was written")
    with running_attempt(here, context) as at:
        assert baseline_of(CHECK, at) is None
        (here.directory / "artifacts" / base.tests).unlink()
        assert baseline_of(CHECK, at) is None
        # For a comparison of failures, what is recorded is enough.
        assert run_baseline(CHECK, "again", at, [])
        assert story.told == RUNS_ON_START
        assert run_baseline(CHECK, "again", at, [], needs_tests=True)
        known = baseline_of(CHECK, at)
    assert known
    assert known.tests == TESTS
    assert story.told == [*RUNS_ON_START, *RUNS_ON_START]


def test_the_start_tree_is_run_at_most_twice_for_all_issues(here: WorkerEnvironment) -> None:
    story = Story(passes, passes)
    context = confined(here, fix_the_bug, story)
    with running_attempt(here, context) as at:
        runs = list[str]()
        assert run_baseline_again(CHECK, "unknown", at, runs) is None
        assert runs == []
        with baselines_beside(at):
            assert baseline_of(CHECK, at)
        for _ in range(2):
            again = run_baseline_again(CHECK, "before", at, runs)
            assert again
            assert again.tests == TESTS
    assert runs == ["before-again"]
    assert [base.runs for base in recorded(here)] == [1, 2]
    with running_attempt(here, context) as at:
        assert run_baseline_again(CHECK, "before", at, runs)
    assert runs == ["before-again"]


# Where nothing runs beside the agent


@pytest.mark.parametrize("baseline", [Baseline.ON_FAILURE, Baseline.OFF])
def test_the_policy_may_keep_the_base_from_running_beside(
    here: WorkerEnvironment, baseline: Baseline
) -> None:
    here.policy["baseline"] = baseline.value
    story = Story(passes, fails)
    (check,) = attempt(here, confined(here, fix_the_bug, story)).checks
    is_off = baseline is Baseline.OFF
    assert check.on_base is (None if is_off else OnBase.PASSES)
    assert story.told == (RUNS_ON_CHANGE if is_off else [*RUNS_ON_CHANGE, *RUNS_ON_START])
    here.policy["baseline"] = "on"
    with running_attempt(here, confined(here, fix_the_bug)) as at, baselines_beside(at):
        assert baseline_of(CHECK, at)
        changed = replace(at, policy=at.policy.model_copy(update={"baseline": baseline}))
        assert (baseline_of(CHECK, changed) is None) is is_off


def test_without_a_sandbox_nothing_runs_beside_the_agent(here: WorkerEnvironment) -> None:
    story = Story(passes, fails)
    context = replace(confined(here, fix_the_bug, story), verifier=ScriptedVerifier(here.lines))
    attempt(here, context)
    assert story.told == [*RUNS_ON_CHANGE, *RUNS_ON_START]


@pytest.mark.parametrize("other", [{"kind": "lint"}, {"kind": "test", "required": False}])
def test_only_required_tests_run_beside_the_agent(
    here: WorkerEnvironment, other: dict[str, JsonValue]
) -> None:
    here.policy["checks"] = [{"name": "check", "run": "check", **other}]
    story = Story(passes, passes)
    attempt(here, confined(here, fix_the_bug, story))
    # One with a report of tests is compared after the change, if it is required.
    after = RUNS_ON_START if other.get("required", True) else []
    assert story.told == [*RUNS_ON_CHANGE, *after]


@pytest.mark.parametrize("runs_again", [True, False])
def test_a_test_that_runs_the_second_time_only_fails_no_attempt(
    here: WorkerEnvironment, *, runs_again: bool
) -> None:
    story = Story(passes, passes)
    counted = list[None]()

    def tests(tree: Path) -> Names:
        if (tree / "src/tool.py").read_text() == "X = 1\n":
            return Names(ran=("test_a", "test_b"))
        counted.append(None)
        return Names(ran=("test_a", "test_b") if len(counted) > 1 and runs_again else ("test_a",))

    context = confined(here, fix_the_bug, story)
    verifier = ScriptedVerifier(here.lines, shown_at="/mulligan/worktree", tests=tests)
    meta = attempt(here, replace(context, verifier=verifier))
    assert (meta.outcome is Outcome.SUCCEEDED) == runs_again
    assert len(counted) == 2
    # Once before that, and once more since a test is missing.
    assert story.told.count("start ends") == 2
