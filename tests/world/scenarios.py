"""Stories as tables: the acts of people, and the stage of the issue after each."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mulligan.domain.command import Verb
from mulligan.domain.events import AgentStarted, CommandReceived, Escalated, HumanResponded
from mulligan.domain.issue import IssueRef, Stage
from mulligan.github.shapes import ANYTHING
from mulligan.text.commands import parse
from world.environments import ScenarioEnvironment

ExpectedState = tuple[Stage, int, set[str], int, int]
"""Stage, epoch, labels, runs of the agent, replies."""

WAIT_SECONDS = 30
STRANGER = "zoe"


class ActionKind(StrEnum):
    """The acts of people."""

    SAYS = "says"
    PUTS_ON = "puts on"
    TAKES_OFF = "takes off"
    DELETES = "deletes the label"
    REVIEWS = "asks for changes"
    MERGES = "merges"


@dataclass(frozen=True)
class Action:
    """Somebody does something, on the issue or its pull request; `what` is words or a label."""

    who: str
    move: ActionKind
    what: str = ""
    on_pull: bool = False

    @property
    def verb(self) -> Verb | None:
        """Return the command, if it counts."""
        command = (
            parse(self.what) if self.move is ActionKind.SAYS and self.who != STRANGER else None
        )
        return command.verb if command else None

    def perform(self, here: ScenarioEnvironment, ref: IssueRef) -> int:
        """Do it; return the id of the comment."""
        people, place = here.people, here.pull(ref) if self.on_pull else ref
        where = f"/repos/{here.repository}"
        match self.move:
            case ActionKind.SAYS:
                return people.comment(place, self.what, self.who)
            case ActionKind.PUTS_ON:
                people.label(place, self.what, self.who)
            case ActionKind.TAKES_OFF:
                people.unlabel(place, self.what, self.who)
            case ActionKind.DELETES:
                done = people.send("DELETE", f"{where}/labels/{self.what}", None, self.who)
                assert done.ok, done.text
            case ActionKind.REVIEWS:
                people.review(place, self.what, self.who)
            case ActionKind.MERGES:
                path = f"{where}/pulls/{place.number}/merge"
                people.ask(ANYTHING, "PUT", path, {}, self.who)
        return 0


@dataclass(frozen=True)
class Step:
    """What is done, and what is so afterwards.

    `stands` is the stage, the epoch, the labels, and how often the agent ran so far; `told` is in
    the replies that this step gets.
    """

    tale: str
    acts: tuple[Action, ...]
    stands: tuple[Stage, int, tuple[str, ...], int]
    told: tuple[str, ...] = ()
    agent: str = ""
    code: int = 0
    one_attempt: bool = False


@dataclass
class ScenarioRun:
    """A story as it goes: with passes, or beside a daemon."""

    here: ScenarioEnvironment
    ref: IssueRef
    by_daemon: bool = False
    told: list[str] = field(default_factory=list[str])
    commands: list[int] = field(default_factory=list[int])
    reviews: int = 0

    def run_steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._act(step)
            self.told += step.told
            wanted = self._wanted(step)
            if self.by_daemon:
                self._await(wanted)
            else:
                self._make_pass(step)
            assert (step.tale, self._found()) == (step.tale, wanted)
            replies = self.here.written(self.ref, "reply")
            for words, reply in zip(self.told, replies, strict=True):
                assert words in reply, step.tale
        self._look_back()

    def _act(self, step: Step) -> None:
        if step.agent:
            self.here.here.agent(step.agent)
        if any(act.move is ActionKind.TAKES_OFF for act in step.acts):
            # Only GitHub's times order a command and a label, and they are whole seconds: a label
            # that is taken off in the second of a command leaves the command in force.
            time.sleep(1 - time.time() % 1)
        for act in step.acts:
            said = act.perform(self.here, self.ref)
            self.commands += [said] if act.verb else []
            self.reviews += act.move is ActionKind.REVIEWS and act.who != STRANGER

    def _await(self, wanted: ExpectedState) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while self._found() != wanted and time.monotonic() < until:
            time.sleep(0.05)

    def _make_pass(self, step: Step) -> None:
        limit = ("--attempts", "1") if step.one_attempt else ()
        done = self.here.here.run("once", *limit)
        assert (done.returncode, done.stderr) == (step.code, ""), step.tale

    def _wanted(self, step: Step) -> ExpectedState:
        stage, epoch, labels, runs = step.stands
        return stage, epoch, set(labels), runs, len(self.told)

    def _found(self) -> ExpectedState:
        status = self.here.ledger.status(self.ref)
        runs = [each for each in self.here.events(self.ref) if isinstance(each, AgentStarted)]
        labels = set(self.here.people.labels(self.ref))
        replies = len(self.here.written(self.ref, "reply"))
        return status.stage, status.epoch, labels, len(runs), replies

    def _look_back(self) -> None:
        """See that each was answered once, and the stranger not at all."""
        events = self.here.events(self.ref)
        keys = sorted(f"comment:{number}" for number in self.commands)
        assert keys == sorted(each.key for each in events if isinstance(each, CommandReceived))
        assert keys == sorted(each.key for each in events if isinstance(each, HumanResponded))
        assert len(self.here.written(self.ref, "status")) == 1
        cries = [each for each in events if isinstance(each, Escalated)]
        assert len(self.here.written(self.ref, "hitl")) == len(cries)
        if self.reviews:
            pull = self.here.pull(self.ref)
            assert len(self.here.written(pull, "answer")) == self.reviews
