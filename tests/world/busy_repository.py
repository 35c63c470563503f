"""A repository where people and Mulligan do anything in any order, and what must hold of it.

All is in this process, on one simulated clock. Mulligan can be killed before any of its effects,
lose its state, and meet any fault of GitHub. `broken_promises` looks from outside: at GitHub, at
git's refs and at the ledger. The real processes of tests/soak/test_random_kills.py are looked at
in the same way.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import Random
from unittest.mock import patch

from github_simulator.records import Comment
from github_simulator.world import Fault
from mulligan.config.operator import Trust
from mulligan.daemon.daemon import Daemon, Runtime
from mulligan.daemon.lease_guard import FencedGit
from mulligan.daemon.worker import Worker
from mulligan.domain.issue import IssueRef, Stage
from mulligan.domain.outcome import FREE
from mulligan.domain.status import Phase
from mulligan.github.client import Client, RetrySettings
from mulligan.github.comments import StatusComments
from mulligan.github.status_record import record_in
from mulligan.github.tracker import GitHubTracker
from mulligan.github.writer import GitHubWriter
from mulligan.implement.ports import Guard, Ledger, LedgerReader
from mulligan.storage import memory
from mulligan.storage.memory import MemoryLeases, MemoryLedger
from mulligan.storage.usage import MemoryUsageStore
from world.behaviours import AgentInput
from world.crash_points import AFTER, BEFORE, CountedLedger
from world.faults import FaultyGitHub
from world.issue_names import ref_of
from world.ledgers import folded
from world.repositories import git
from world.simulated import NAME
from world.simulated_github import World
from world.trackers import BOT, TOKEN
from world.workers import WorkerEnvironment, worker_environment

READY = "mulligan"
STAGE_LABELS: Mapping[Stage, list[str]] = {
    Stage.REVIEW: ["mulligan:review"],
    Stage.HITL: ["mulligan:hitl"],
}
"""Which of Mulligan's own labels an issue at rest carries; none in the other stages."""
MARKED = re.compile(r"<!-- mulligan:(\S+) \S+?(?: (\S+))? -->")
BRANCH = re.compile(r"mulligan/issue-(\d+)")
MOST_ATTEMPTS = 3
OPENING = ("/mulligan retry", "/mulligan fix:")
PASSES = 12
IN_REVIEW = 0.4
"""How many of the acts are on pull requests."""


class KilledError(BaseException):
    """Mulligan was killed here; no code of it may handle that."""


@dataclass
class Killer:
    """Kills Mulligan before an effect; from then on nothing of it has any effect."""

    left: int | None = None
    is_dead: bool = False
    effects: int = 0

    def reach(self, side: str, effect: str) -> None:
        """Come to an effect; the one before it is done, and Mulligan may not know."""
        if side == AFTER:
            return
        self.effects += 1
        if self.left is not None:
            self.left -= 1
        if self.is_dead or (self.left is not None and self.left < 0):
            self.is_dead = True
            raise KilledError


@dataclass(frozen=True)
class CountedGit(FencedGit):
    """Git that Mulligan can be killed before each write of; `note` is called for each push."""

    note: Guard

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        FencedGit.push(self, ref, head_sha, expected)
        self.note()


@dataclass
class Maintainers:
    """What people do on the issues of one repository, and what they did.

    `asked` counts by issue what may open a round of attempts. `untrusted` are the issues whose
    label or text is a stranger's. `merges` are the tips of the base branch, which only they move.
    Before they act, they wait until it is `later`: GitHub's times are whole seconds.
    """

    world: World
    random: Random
    later: Callable[[], object]
    merges: list[str]
    refs: list[IssueRef] = field(default_factory=list[IssueRef])
    asked: Counter[IssueRef] = field(default_factory=Counter[IssueRef])
    untrusted: set[IssueRef] = field(default_factory=set[IssueRef])
    commands: dict[int, IssueRef] = field(default_factory=dict[int, IssueRef])

    def open_issue(self, by: str = "wes") -> IssueRef:
        """Open an issue and ask for work on it."""
        self.later()
        ref = ref_of(
            self.world.open_issue(NAME, f"Issue {len(self.refs) + 1}", "Please mend it.", "zoe")
        )
        self.refs.append(ref)
        self.label(ref, by)
        return ref

    def label(self, ref: IssueRef, by: str = "wes") -> None:
        self.later()
        if READY not in self.world.labels_of(ref):
            self.world.label(ref, READY, by)
            self.asked[ref] += by != "tri"
            (self.untrusted.add if by == "tri" else self.untrusted.discard)(ref)

    def unlabel(self, ref: IssueRef) -> None:
        self.later()
        if READY in self.world.labels_of(ref):
            self.world.unlabel(ref, READY, "wes")

    def close(self, ref: IssueRef) -> None:
        self.later()
        self.world.close(ref, "wes")

    def reopen(self, ref: IssueRef) -> None:
        self.later()
        self.world.reopen(ref, "wes")

    def edit(self, ref: IssueRef, by: str) -> None:
        self.later()
        if by == "zoe":
            self.untrusted.add(ref)
        self.world.edit(ref, by, body=f"Please mend it, says {by} at {self.world.stamps.now()}.")

    def say(self, ref: IssueRef, text: str, by: str = "wes") -> int:
        """Write a comment; a trusted person's command has to be answered."""
        self.later()
        number = self.world.comment(ref, text, by)
        if text.startswith("/mulligan") and by == "wes":
            self.commands[number] = ref
            self.asked[self.issue_of(ref)] += text.startswith(OPENING)
        return number

    def issue_of(self, ref: IssueRef) -> IssueRef:
        """Give the issue that a pull request is for; an issue is for itself."""
        pull = self.world.issue_of(ref).pull
        found = BRANCH.fullmatch(pull.head_ref) if pull else None
        return IssueRef(NAME, int(found[1])) if found else ref

    def pulls(self, *, is_open: bool = True) -> list[IssueRef]:
        """List the pull requests, or the open ones."""
        found = self.world.pulls_of(NAME)
        return [
            IssueRef(NAME, each.number) for each in found if each.state == "open" or not is_open
        ]

    def review(self, pull: IssueRef, verdict: str) -> None:
        self.later()
        self.world.review(pull, "wes", verdict, f"I say {verdict}.")
        self.asked[self.issue_of(pull)] += verdict == "REQUEST_CHANGES"

    def merge(self, pull: IssueRef) -> None:
        self.later()
        self.merges.append(self.world.merge(pull, "wes"))


@dataclass
class BusyRepository:
    """One repository, its people, and a daemon that is killed and started again.

    `runs` counts the runs of the agent by issue, `cut_off` those that a kill may have made vain.
    `kills` are those while Mulligan worked, `losses` the times it lost its state.
    """

    here: WorkerEnvironment
    faulty: FaultyGitHub
    people: Maintainers
    mood: str = "works"
    killer: Killer = field(default_factory=Killer)
    daemon: Daemon | None = None
    runs: Counter[IssueRef] = field(default_factory=Counter[IssueRef])
    cut_off: Counter[IssueRef] = field(default_factory=Counter[IssueRef])
    pushes: int = 0
    kills: int = 0
    losses: int = 0
    started: int = 0

    @property
    def world(self) -> World:
        return self.here.desk.hub.world

    def later(self, time: timedelta = timedelta(seconds=1)) -> None:
        """Advance the clock: GitHub's times are whole seconds."""
        self.here.desk.clock.time += time

    # What Mulligan does, and what is done to it.

    def start(self) -> None:
        """Start a daemon on what the disk has; nobody else holds a lease (see stores.py)."""
        self.killer, self.started = Killer(), self.started + 1
        self.here.leases.release_all()
        desk = self.here.desk
        timeout = RetrySettings(timeout=120, sleep=self._sleep, now=self._seconds)
        client = Client(desk.hub.url, lambda _: TOKEN, timeout)
        tracker = GitHubTracker(client, Trust(), desk.clock)
        writer = GitHubWriter(client, tracker.own_login, StatusComments(desk.clock))
        context = self.here.context(self.work, f"worker-{self.started}")
        context = replace(
            context,
            tracker=tracker,
            writer=writer,
            ledger=CountedLedger(self.here.ledger, self.killer),
            git=CountedGit(context.git, self._reach, self._reach, self._note_push),
        )
        runtimes = [Runtime((NAME,), context, Worker(context))]
        self.daemon = Daemon(lambda: runtimes.pop() if runtimes else None)

    def make_pass(self, kill_after: int | None = None) -> bool:
        """Poll, and visit due issues; return whether Mulligan is alive.

        A kill comes before an effect.
        """
        if self.daemon is None:
            self.start()
        daemon, self.killer.left = self.daemon, kill_after
        assert daemon
        self.later()
        woken = list[IssueRef]()
        try:
            daemon.poll(woken.extend)
            for ref in woken:
                daemon.visit(ref)
        except KilledError:
            pass
        if self.killer.is_dead:
            self.kills += 1
            self.cut_off.update(self.people.refs)
            self.daemon = None
        self.killer.left = None
        return self.daemon is not None

    def stop(self) -> None:
        """Kill a daemon that has nothing to do."""
        self.daemon = None

    def lose_state(self) -> None:
        """Delete ledger, leases and files, as with the disk.

        An attempt whose record GitHub did not take is made again. Without faults it takes each.
        """
        self.stop()
        self.losses += 1
        for status in self.here.ledger.statuses():
            said = (each.body for each in self.people.world.comments_of(status.issue))
            records = (record for text in said if (record := record_in(text)))
            recorded = max((each.number + each.running for each in records), default=0)
            if self.faulty.met:
                self.cut_off[status.issue] += max(0, status.number - recorded)
        leases = MemoryLeases(self.here.desk.clock)
        ledger = MemoryLedger(self.here.desk.clock, leases)
        directory = self.here.directory / f"disk-{self.losses}"
        directory.mkdir()
        self.here = replace(
            self.here,
            ledger=ledger,
            leases=leases,
            accounts=MemoryUsageStore(),
            directory=directory,
        )

    def broken(self, *, at_rest: bool = False) -> list[str]:
        """List every promise that is broken now."""
        ledger, bare = self.here.ledger, self.here.desk.hub.bare
        return broken_promises(self.people, bare, ledger, self.runs, self.cut_off, at_rest=at_rest)

    def settle(self) -> None:
        """Make passes without faults, until nothing is left to do."""
        self.faulty.rate, self.mood = 0.0, "works"
        for _ in range(PASSES):
            self.later(timedelta(minutes=20))
            self.make_pass()

    def answer(self, method: str, path: str) -> Fault | None:
        """Answer a request of Mulligan's: with a kill, a fault, or the truth."""
        if method != "GET" and path != "/graphql":
            self._reach()
        fault = self.faulty.fault(method, path)
        if fault and fault.delay:
            self.later(timedelta(seconds=fault.delay))
            return replace(fault, delay=0.0)
        return fault

    def _sleep(self, seconds: float) -> None:
        self.later(timedelta(seconds=seconds))

    def _seconds(self) -> float:
        return self.here.desk.clock.time.timestamp()

    def _note_push(self) -> None:
        self.pushes += 1

    def _reach(self) -> None:
        self.killer.reach(BEFORE, "an effect")

    def work(self, given: AgentInput) -> int:
        """Be the agent, in its mood."""
        ref = IssueRef.parse(given.environment["MULLIGAN_ISSUE"])
        self._reach()
        self.runs[ref] += 1
        self.later(timedelta(seconds=30))
        match self.mood:
            case "works":
                given.write(f"src/issue-{ref.number}.py", f"X = {self.runs[ref]}\n")
            case "fails":
                given.write(f"src/issue-{ref.number}.py", f"BAD = {self.runs[ref]}\n")
            case "idles":
                return 0
            case _:
                return 3
        self._reach()
        return 0


COMMANDS = (
    *("/mulligan retry", "/mulligan fix: Do it well.", "/mulligan skip", "/mulligan abort"),
    *("/mulligan pause", "/mulligan resume", "/mulligan status", "/mulligan rerty", "Thank you!"),
)
VERDICTS = ("APPROVE", "REQUEST_CHANGES", "COMMENT")
MOODS = ("works", "works", "fails", "idles", "crashes")


def _comment(here: Maintainers, place: IssueRef) -> None:
    here.say(place, here.random.choice(COMMANDS), here.random.choice(["wes", "wes", "zoe"]))


def _review(here: Maintainers, pull: IssueRef) -> None:
    here.review(pull, here.random.choice(VERDICTS))


ON_ISSUES: tuple[Callable[[Maintainers, IssueRef], object], ...] = (
    lambda here, ref: here.label(ref, here.random.choice(["wes", "tri"])),
    lambda here, ref: here.unlabel(ref),
    lambda here, ref: here.close(ref),
    lambda here, ref: here.reopen(ref),
    lambda here, ref: here.edit(ref, here.random.choice(["zoe", "wes"])),
    *[_comment] * 3,
)
ON_PULLS: tuple[Callable[[Maintainers, IssueRef], object], ...] = (
    lambda here, pull: here.merge(pull),
    lambda here, pull: here.close(pull),
    lambda here, pull: here.say(pull, here.random.choice(COMMANDS)),
    *[_review] * 3,
)
"""The acts of people; frequent ones are listed twice."""


def act(here: Maintainers) -> None:
    """Do a random act of a random person on an issue or a pull request."""
    draw, pulls = here.random, here.pulls()
    if pulls and draw.random() < IN_REVIEW:
        draw.choice(ON_PULLS)(here, draw.choice(pulls))
    else:
        draw.choice(ON_ISSUES)(here, draw.choice(here.refs) if here.refs else here.open_issue())


def red(tree: Path) -> str | None:
    """Find fault with what the agent does in the mood `fails`."""
    texts = [each.read_text() for each in (tree / "src").glob("issue-*.py")]
    return "It is red." if any("BAD" in text for text in texts) else None


# What must hold.


def broken_promises(
    people: Maintainers,
    bare: Path,
    ledger: Ledger,
    runs: Mapping[IssueRef, int],
    cut_off: Mapping[IssueRef, int],
    *,
    at_rest: bool,
) -> list[str]:
    """List every promise that is broken."""
    world, refs = people.world, people.refs
    most = {ref: people.asked[ref] * MOST_ATTEMPTS + cut_off[ref] for ref in refs}
    return [
        *broken_on_github(world, refs, people.asked),
        *broken_in_git(bare, people.merges[-1], refs),
        *broken_in_ledger(ledger, refs),
        *(f"{ref}: {runs[ref]} runs" for ref in refs if runs[ref] > most[ref]),
        *(broken_at_rest(world, ledger, refs, people.untrusted) if at_rest else ()),
    ]


def doubled_comments(comments: Collection[Comment]) -> list[str]:
    """List the markers that two of Mulligan's comments carry: each is for one event."""
    own = [MARKED.search(each.body) for each in comments if each.author.login == BOT]
    counted = Counter(
        found[1] if found[1] == "status" else " ".join(filter(None, found.groups()))
        for found in own
        if found
    )
    return [what for what, times in counted.items() if times > 1]


def broken_on_github(
    world: World, refs: Collection[IssueRef], asked: Mapping[IssueRef, int]
) -> list[str]:
    """List what is doubled on GitHub: at any time, after anything."""
    wrong, pulls = list[str](), world.pulls_of(NAME)
    for ref in refs:
        mine = [each for each in pulls if each.pull and each.pull.head_ref == ref.branch]
        if sum(each.state == "open" for each in mine) > 1 or len(mine) > asked[ref]:
            wrong.append(f"{ref} has {len(mine)} pull requests for {asked[ref]} requests")
        places = (ref, *(IssueRef(ref.repository, each.number) for each in mine))
        for place in places:
            twice = doubled_comments(world.comments_of(place))
            wrong += [f"{place} has two comments: {what}" for what in twice]
    return wrong


def broken_in_git(bare: Path, base: str, refs: Collection[IssueRef]) -> list[str]:
    """List what should not be in the remote; `base` is where people left the base branch."""
    told = git(bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    heads = dict(line.split(" ") for line in told.splitlines())
    wrong = [] if heads.pop("refs/heads/main") == base else ["the base branch was pushed to"]
    strange = heads.keys() - {f"refs/heads/{ref.branch}" for ref in refs}
    return [*wrong, *(f"strange branch {each}" for each in sorted(strange))]


def broken_in_ledger(ledger: Ledger, refs: Collection[IssueRef]) -> list[str]:
    """List what is wrong in the ledger: at any time, after anything."""
    wrong = list[str]()
    for ref in refs:
        if ledger.status(ref) != folded(ledger, ref):
            wrong.append(f"{ref}: the status is not that of the events")
        paid = Counter(m.epoch for m in ledger.history(ref) if m.outcome not in FREE)
        wrong += [
            f"{ref}: {times} attempts in round {epoch}"
            for epoch, times in paid.items()
            if times > MOST_ATTEMPTS
        ]
        keys = Counter(
            each.event.key for each in ledger.events(ref) if each.event.kind == "human_responded"
        )
        wrong += [f"{ref}: {key} answered twice" for key, times in keys.items() if times > 1]
    return wrong


def broken_at_rest(
    world: World,
    ledger: LedgerReader,
    refs: Collection[IssueRef],
    untrusted: Collection[IssueRef] = (),
) -> list[str]:
    """List what was lost: when all is settled, every issue is somebody's, and is shown so.

    An issue may wait whose label or text is `untrusted`, and one that is paused.
    """
    wrong = list[str]()
    for ref in refs:
        status, issue = ledger.status(ref), world.issue_of(ref)
        shown = [name for name in issue.label_names if name.startswith("mulligan:")]
        if status.phase is not Phase.IDLE or status.pending:
            wrong.append(f"{ref} is not at rest: {status.phase} {status.pending}")
        if sorted(shown) != STAGE_LABELS.get(status.stage, []):
            wrong.append(f"{ref} in {status.stage} carries {shown}")
        may_wait = ref in untrusted or status.paused_by
        waits = status.stage in {Stage.READY, Stage.RUNNING} and not may_wait
        if waits and issue.state == "open" and READY in issue.label_names:
            wrong.append(f"{ref} is asked for, and waits: {status.reason}")
    return wrong


@contextmanager
def busy_repository(directory: Path, seed: int) -> Generator[BusyRepository]:
    """Set up a repository without issues; GitHub and Mulligan go by one clock."""
    # Leases are renewed by the true time.
    lasting = patch.object(memory, "LEASE_TIME", timedelta(days=1000))
    with lasting, worker_environment(directory) as here:
        world, clock = here.desk.hub.world, here.desk.clock
        world.stamps = replace(world.stamps, clock=clock.now)
        world.meter.clock, world.meter.limit = clock.now, 10**9
        here.check(red)
        here.policy["review"] = {"settle": "0s"}
        random = Random(seed)

        def wait() -> None:
            clock.time += timedelta(seconds=1)

        tip = git(here.desk.hub.bare, "rev-parse", "main")
        people = Maintainers(world, random, wait, [tip])
        made = BusyRepository(here, FaultyGitHub(random), people)
        world.faults = made.answer
        yield made
