"""Three people and a stranger act at once on one issue, beside a daemon that is killed meanwhile.

What comes of it depends on who was first; that each was answered once, and that there is one of
everything, does not.
"""

import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, Lock
from zlib import crc32

import pytest

from mulligan.domain.command import Verb
from mulligan.domain.events import (
    Authorised,
    CommandReceived,
    HumanResponded,
    Published,
    ReviewReceived,
)
from mulligan.domain.issue import Act, CommentAct, IssueRef, ReviewAct, Stage
from mulligan.domain.outcome import FREE
from mulligan.domain.status import Phase
from mulligan.github.shapes import REVIEWS
from mulligan.text.commands import parse
from world.environments import SIMULATOR, ScenarioEnvironment, scenario_environment
from world.fork_server import ForkedProcess
from world.place import NAME
from world.processes import wait_until
from world.repositories import branch_head

SEED, MOST, PATIENCE, STRANGER = 1, 2, 60, "zoe"
ON, OFF, REVIEW = "+ready", "-ready", "review"
AGENT = """
import time
time.sleep(0.2)
if 'Do badly.' in prompt and 'Write four.' not in prompt:
    sys.exit(1)
pathlib.Path('notes.txt').write_text(f'{time.time_ns()}\\n')
"""
ROUNDS: tuple[dict[str, tuple[str, ...]], ...] = (
    {
        "ada": (OFF, ON, "status"),
        "mia": ("fix: Do badly.", "rettry"),
        "wes": ("pause", "retry"),
        STRANGER: ("skip", "fix: Do badly."),
    },
    {
        "ada": ("abort", "status", "resume"),
        "mia": (REVIEW, "retry"),
        "wes": (ON, "fix: Write two.", REVIEW),
        STRANGER: (REVIEW, "abort", "rettry"),
    },
    {
        "ada": ("skip enough", "status", ON),
        "mia": ("fix: Write three.", OFF),
        "wes": ("resume", "retry", "status"),
        STRANGER: ("pause", ON),
    },
    {"ada": ("resume",), "mia": ("status",), "wes": ("fix: Write four.",), STRANGER: ("skip",)},
)
KILLED_IN, A_POLL = 1, 0.4


@dataclass
class Crowd:
    """Who wrote what: comments by id with their words, by people who may and by the stranger."""

    here: ScenarioEnvironment
    ref: IssueRef
    commands: dict[int, Verb] = field(default_factory=dict[int, Verb])
    strangers: list[int] = field(default_factory=list[int])
    lock: Lock = field(default_factory=Lock)

    def act(self, together: Barrier, who: str, what: tuple[str, ...]) -> None:
        """Do it bit by bit, at moments that are another's in every round."""
        together.wait()
        for number, each in enumerate(what):
            time.sleep(crc32(f"{SEED} {who} {number} {each}".encode()) % 400 / 1000)
            self._do(who, each)

    def _do(self, who: str, what: str) -> None:
        """Do one thing; to take off what is not on, or review what is not there, is refused."""
        issue = f"/repos/{NAME}/issues/{self.ref.number}"
        match what:
            case "+ready":
                self.here.people.send("POST", f"{issue}/labels", {"labels": ["mulligan"]}, who)
            case "-ready":
                self.here.people.send("DELETE", f"{issue}/labels/mulligan", None, who)
            case "review":
                said = {"event": "REQUEST_CHANGES", "body": f"Not so, says {who}."}
                self.here.people.send("POST", f"/repos/{NAME}/pulls/2/reviews", {**said}, who)
            case _:
                words = f"/mulligan {what}"
                written, command = self.here.people.comment(self.ref, words, who), parse(words)
                with self.lock:
                    if who == STRANGER:
                        self.strangers.append(written)
                    elif command:
                        self.commands[written] = command.verb

    def reviews(self) -> dict[str, list[int]]:
        """List who reviewed, with the ids of what was submitted."""
        found = self.here.people.ask(REVIEWS, "GET", f"/repos/{NAME}/pulls/2/reviews?per_page=100")
        by = {one.user.login for one in found if one.user}
        return {who: [one.id for one in found if one.user and one.user.login == who] for who in by}

    def reactions(self, comment: int) -> list[str]:
        """List how Mulligan reacted to a comment, once it was carried out."""
        found = self.here.here.world.issue_of(self.ref).comments
        (one,) = [each for each in found if each.id == comment]
        return [each.content for each in one.reactions if each.content != "eyes"]

    def rests(self) -> bool:
        """Tell whether everything was heard, carried out and shown."""
        status = self.here.ledger.status(self.ref)
        told: set[Act] = {CommentAct(number) for number in self.commands}
        told |= {ReviewAct(number) for who in ("mia", "wes") for number in self.reviews()[who]}
        settled = status.stage is Stage.REVIEW and status.phase is Phase.IDLE and status.is_shown
        return settled and not status.pending and all(act in status.handled for act in told)


@contextmanager
def daemon(here: ScenarioEnvironment) -> Generator[ForkedProcess]:
    started = here.here.start("run")
    try:
        before = len(here.here.world.requests)
        wait_until(lambda: len(here.here.world.requests) > before, PATIENCE)
        yield started
    finally:
        started.kill()
        started.communicate()


def meet(crowd: Crowd, number: int, running: ForkedProcess | None = None) -> None:
    """Let all act at once; a daemon is killed when it has heard of some of it, and done no more."""
    acts = ROUNDS[number]
    together = Barrier(len(acts))
    with ThreadPoolExecutor(len(acts)) as pool:
        done = [pool.submit(crowd.act, together, who, what) for who, what in acts.items()]
        if running:
            wait_until(lambda: bool(crowd.here.ledger.status(crowd.ref).pending), PATIENCE)
            running.kill()
        for each in done:
            each.result()
    time.sleep(A_POLL)


@pytest.fixture
def crowd(tmp_path: Path) -> Generator[Crowd]:
    with scenario_environment(
        SIMULATOR, tmp_path, max_issue_attempts=MOST, review={"settle": "0s"}
    ) as here:
        here.here.configure(poll={"interval": "300ms"})
        here.here.agent(AGENT)
        ref = here.people.label(here.issue())
        assert here.here.run("once").returncode == 0
        yield Crowd(here, ref)


def assert_each_was_answered_once(crowd: Crowd) -> None:
    events = crowd.here.events(crowd.ref)
    wanted = Counter(f"comment:{number}" for number in crowd.commands)
    assert Counter(each.key for each in events if isinstance(each, CommandReceived)) == wanted
    assert Counter(each.key for each in events if isinstance(each, HumanResponded)) == wanted
    replies = crowd.here.written(crowd.ref, "reply")
    for number, verb in crowd.commands.items():
        puzzled = verb is Verb.MISTYPED
        assert crowd.reactions(number) == ["confused" if puzzled else "rocket"]
        told = [text for text in replies if f"to=comment:{number} " in text]
        assert len(told) == 1 or (not told and verb not in {Verb.STATUS, Verb.MISTYPED})
    assert [crowd.reactions(number) for number in crowd.strangers] == [[] for _ in crowd.strangers]
    heard = [
        number for each in events if isinstance(each, ReviewReceived) for number in each.reviews
    ]
    reviews = crowd.reviews()
    assert Counter(heard) == Counter([*reviews["mia"], *reviews["wes"]])
    assert reviews[STRANGER]


def assert_there_is_one_of_everything(crowd: Crowd) -> None:
    here, ref = crowd.here, crowd.ref
    events, history = here.events(ref), here.ledger.history(ref)
    assert here.people.labels(ref) == ["mulligan:review"]
    (pull,) = here.people.pulls(NAME)
    assert pull.state == "open"
    assert len(here.written(ref, "status")) == 1
    cries = [text.partition("epoch=")[2].partition(" ")[0] for text in here.written(ref, "hitl")]
    assert len(cries) == len(set(cries))
    acts = [each.act for each in events if isinstance(each, Authorised)]
    assert len(acts) == len(set(acts))
    assert acts == [each for each in acts if each != STRANGER]
    *_, last = [each for each in events if isinstance(each, Published)]
    assert branch_head(here.here.bare, ref.branch) == last.head_sha == history[-1].head_sha
    paid = Counter(meta.epoch for meta in history if meta.outcome not in FREE)
    assert max(paid.values()) <= MOST


@pytest.mark.deep
def test_each_is_answered_once_and_there_is_one_of_everything(crowd: Crowd) -> None:
    with daemon(crowd.here) as first:
        for number in range(KILLED_IN):
            meet(crowd, number)
        meet(crowd, KILLED_IN, first)
    with daemon(crowd.here):
        for number in range(KILLED_IN + 1, len(ROUNDS)):
            meet(crowd, number)
        wait_until(crowd.rests, PATIENCE)
    assert_each_was_answered_once(crowd)
    assert_there_is_one_of_everything(crowd)
