"""People, GitHub's faults, kills and lost state in any order: nothing is lost, nothing doubled.

`make soak` runs all of it and prints what was done. pytest prints the seed (`-p randomly_seed=…`
repeats it), and hypothesis the steps that broke something.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from mulligan.domain.issue import IssueRef
from world.busy_repository import COMMANDS, MOODS, VERDICTS, BusyRepository, act, busy_repository
from world.simulated import NAME

MOST_ISSUES = 5
WHICH = st.integers(0, 1000)
"""Chooses one of those that are there."""


@contextmanager
def fresh(seed: int) -> Generator[BusyRepository]:
    with tempfile.TemporaryDirectory() as scratch, busy_repository(Path(scratch), seed) as made:
        yield made


def told(here: BusyRepository) -> Counter[str]:
    """Count what was done."""
    return Counter(
        {
            "issues": len(here.people.refs),
            "pull requests": len(here.world.pulls_of(NAME)),
            "agent runs": here.runs.total(),
            "kills": here.kills,
            "losses of state": here.losses,
            "requests": here.faulty.requests,
            "faults": here.faulty.met.total(),
        }
    )


class AnyOrder(RuleBasedStateMachine):
    """Each rule is somebody's act; after each, nothing is doubled, and at the end nothing lost."""

    done: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.here = self.stack.enter_context(fresh(0))

    def ref(self, which: int) -> IssueRef:
        return self.here.people.refs[which % len(self.here.people.refs)]

    def on_pull(self, which: int, what: Callable[[IssueRef], object]) -> None:
        self.done["steps"] += 1
        if pulls := self.here.people.pulls():
            what(pulls[which % len(pulls)])

    @initialize()
    def open_two(self) -> None:
        self.here.people.open_issue()
        self.here.people.open_issue()

    @rule()
    def open_issue(self) -> None:
        self.done["steps"] += 1
        if len(self.here.people.refs) < MOST_ISSUES:
            self.here.people.open_issue()

    @rule(which=WHICH, by=st.sampled_from(["wes", "tri"]))
    def label(self, which: int, by: str) -> None:
        self.done["steps"] += 1
        self.here.people.label(self.ref(which), by)

    @rule(which=WHICH)
    def unlabel(self, which: int) -> None:
        self.done["steps"] += 1
        self.here.people.unlabel(self.ref(which))

    @rule(which=WHICH)
    def close(self, which: int) -> None:
        self.done["steps"] += 1
        self.here.people.close(self.ref(which))

    @rule(which=WHICH)
    def reopen(self, which: int) -> None:
        self.done["steps"] += 1
        self.here.people.reopen(self.ref(which))

    @rule(which=WHICH, by=st.sampled_from(["wes", "zoe"]))
    def edit(self, which: int, by: str) -> None:
        self.done["steps"] += 1
        self.here.people.edit(self.ref(which), by)

    @rule(which=WHICH, text=st.sampled_from(COMMANDS), by=st.sampled_from(["wes", "zoe"]))
    def comment(self, which: int, text: str, by: str) -> None:
        self.done["steps"] += 1
        self.here.people.say(self.ref(which), text, by)

    @rule(which=WHICH, text=st.sampled_from(COMMANDS))
    def comment_on_the_pull_request(self, which: int, text: str) -> None:
        self.on_pull(which, lambda pull: self.here.people.say(pull, text))

    @rule(which=WHICH, verdict=st.sampled_from(VERDICTS))
    def review(self, which: int, verdict: str) -> None:
        self.on_pull(which, lambda pull: self.here.people.review(pull, verdict))

    @rule(which=WHICH)
    def merge(self, which: int) -> None:
        self.on_pull(which, self.here.people.merge)

    @rule(which=WHICH)
    def close_the_pull_request(self, which: int) -> None:
        self.on_pull(which, self.here.people.close)

    @rule(mood=st.sampled_from(MOODS), rate=st.sampled_from([0.0, 0.0, 0.05, 0.3]))
    def change_agent_and_github(self, mood: str, rate: float) -> None:
        self.done["steps"] += 1
        self.here.mood, self.here.faulty.rate = mood, rate

    @rule(minutes=st.sampled_from([1, 5, 60, 1500]))
    def wait(self, minutes: int) -> None:
        self.done["steps"] += 1
        self.here.later(timedelta(minutes=minutes))

    @rule(kill_after=st.integers(0, 20))
    def be_killed_in_a_pass(self, kill_after: int) -> None:
        self.done["steps"] += 1
        self.here.make_pass(kill_after)

    @rule()
    def make_a_whole_pass(self) -> None:
        self.done["steps"] += 1
        self.here.make_pass()

    @rule()
    def restart(self) -> None:
        self.done["steps"] += 1
        self.here.stop()

    @rule()
    def lose_the_state(self) -> None:
        self.done["steps"] += 1
        self.here.lose_state()

    @invariant()
    def nothing_is_doubled(self) -> None:
        assert self.here.broken() == []

    def teardown(self) -> None:
        with self.stack:
            self.here.settle()
            AnyOrder.done += told(self.here)
            assert self.here.broken(at_rest=True) == []


def test_a_few_acts_in_any_order_lose_and_double_nothing() -> None:
    short = settings(max_examples=4, stateful_step_count=20, derandomize=True, database=None)
    run_state_machine_as_test(AnyOrder, settings=short)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_acts_in_any_order_lose_and_double_nothing() -> None:
    AnyOrder.done = Counter()
    long = settings(max_examples=80, stateful_step_count=50)
    run_state_machine_as_test(AnyOrder, settings=long)
    print(dict(AnyOrder.done))
    assert AnyOrder.done["steps"] >= 2000


def live(here: BusyRepository, steps: int, fault_rate: float) -> None:
    """Have people, Mulligan, GitHub and whoever kills Mulligan do something, so many times."""
    draw = here.people.random
    for _ in range(steps):
        here.faulty.rate = fault_rate
        match draw.choice(["open", *["act"] * 8, "mood", "later", *["pass"] * 8, "kill"]):
            case "open":
                here.people.open_issue()
            case "act":
                act(here.people)
            case "mood":
                here.mood = draw.choice(MOODS)
            case "later":
                here.later(timedelta(minutes=draw.choice([1, 10, 100])))
            case "pass":
                here.make_pass()
            case _:
                here.make_pass(draw.randrange(60))
        assert here.broken() == []
    here.settle()
    assert here.broken(at_rest=True) == []


@pytest.mark.deep
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("percent", [1, 10, 50])
def test_every_fault_of_github_is_survived(percent: int) -> None:
    total, met = Counter[str](), Counter[str]()
    for _ in range(12):
        seed = random.getrandbits(32)
        with fresh(seed) as here:
            live(here, 80, percent / 100)
            total, met = total + told(here), met + here.faulty.met
    print(f"{percent} % of the requests:", dict(total), dict(met))
    assert total["faults"]


DAY = timedelta(hours=24)
POLL = timedelta(seconds=30)


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_a_day_with_two_hundred_issues_loses_and_doubles_nothing() -> None:
    with fresh(random.getrandbits(32)) as here:
        draw, clock = here.people.random, here.here.desk.clock
        polls, end = DAY // POLL, clock.time + DAY
        opened = sorted(draw.sample(range(polls), 200))
        acts = set(draw.sample(range(polls), 400))
        for number in range(polls):
            clock.time = max(clock.time, end - DAY + number * POLL)
            here.faulty.rate = 0.01
            if opened and opened[0] == number:
                here.people.open_issue()
                opened.pop(0)
            if number in acts:
                here.mood = draw.choice(MOODS)
                act(here.people)
            here.make_pass(draw.randrange(60) if draw.random() < 0.02 else None)
            if number % 100 == 0:
                assert here.broken() == []
        here.settle()
        assert here.broken(at_rest=True) == []
        print(f"{polls} polls:", dict(told(here)))
        assert len(here.people.refs) >= 200
