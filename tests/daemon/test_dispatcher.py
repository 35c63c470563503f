"""What the dispatcher does: each issue once, within the limits, until all visits have ended."""

import threading
import time
from collections import Counter

from mulligan.daemon.worker import PoolDispatcher
from mulligan.domain.issue import IssueRef

REFS = [IssueRef(f"o/r{number % 3}", number) for number in range(1, 13)]


class Visitor:
    """Counts who is visited, and how many at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen = Counter[IssueRef]()
        self.now = Counter[str]()
        self.most_at_once = 0
        self.most_in_one_repository = 0

    def __call__(self, ref: IssueRef) -> None:
        with self.lock:
            self.seen[ref] += 1
            self.now[ref.repository] += 1
            self.most_at_once = max(self.most_at_once, self.now.total())
            self.most_in_one_repository = max(self.most_in_one_repository, *self.now.values())
        time.sleep(0.01)
        with self.lock:
            self.now[ref.repository] -= 1


def test_each_issue_is_visited_once() -> None:
    visitor = Visitor()
    with PoolDispatcher(visitor, 4, 2) as dispatcher:
        dispatcher.wake([*REFS, *REFS])
        dispatcher.drain()
    assert visitor.seen == Counter(REFS)
    assert visitor.now.total() == 0


def test_the_limits_hold() -> None:
    visitor = Visitor()
    with PoolDispatcher(visitor, 4, 2) as dispatcher:
        dispatcher.wake(REFS)
        dispatcher.drain()
    assert visitor.most_at_once <= 4
    assert visitor.most_in_one_repository <= 2


def test_an_issue_may_be_visited_again_later() -> None:
    visitor = Visitor()
    with PoolDispatcher(visitor, 4, 2) as dispatcher:
        for _ in range(3):
            dispatcher.wake(REFS[:1])
            dispatcher.drain()
    assert visitor.seen[REFS[0]] == 3


def test_an_issue_that_is_being_visited_is_not_queued_again() -> None:
    begun, go_on, seen = threading.Event(), threading.Event(), list[IssueRef]()

    def visit(ref: IssueRef) -> None:
        begun.set()
        assert go_on.wait(120)
        seen.append(ref)

    with PoolDispatcher(visit, 2, 2) as dispatcher:
        dispatcher.wake(REFS[:1])
        assert begun.wait(120)
        dispatcher.wake(REFS[:1])
        go_on.set()
        dispatcher.drain()
    assert seen == REFS[:1]


def test_nothing_to_visit_is_nothing_to_wait_for() -> None:
    with PoolDispatcher(Visitor(), 4, 2) as dispatcher:
        dispatcher.wake([])
        dispatcher.drain()


def test_a_pool_visits_several_at_a_time_and_says_which() -> None:
    both, names = threading.Barrier(3), set[IssueRef]()

    def visit(_ref: IssueRef) -> None:
        both.wait(120)
        both.wait(120)

    with PoolDispatcher(visit, 2, 1) as dispatcher:
        dispatcher.wake([IssueRef("a/b", 1), IssueRef("c/d", 1)])
        both.wait(120)
        names |= dispatcher.running()
        both.wait(120)
        dispatcher.drain()
        assert dispatcher.running() == frozenset()
    assert names == {IssueRef("a/b", 1), IssueRef("c/d", 1)}


def test_one_slow_repository_does_not_hold_up_the_others() -> None:
    released, order = threading.Event(), list[str]()

    def visit(ref: IssueRef) -> None:
        if ref.repository == "slow/one":
            assert released.wait(120)
        order.append(ref.repository)
        if len(order) == 2:
            released.set()

    refs = [
        IssueRef("slow/one", 1),
        IssueRef("slow/one", 2),
        IssueRef("a/b", 1),
        IssueRef("c/d", 1),
    ]
    with PoolDispatcher(visit, 2, 1) as dispatcher:
        dispatcher.wake(refs)
        dispatcher.drain()
    assert order == ["a/b", "c/d", "slow/one", "slow/one"]


def test_leaving_a_pool_waits_for_what_has_begun_and_starts_nothing_more() -> None:
    begun, go_on, seen = threading.Event(), threading.Event(), list[IssueRef]()

    def visit(ref: IssueRef) -> None:
        begun.set()
        assert go_on.wait(120)
        seen.append(ref)

    with PoolDispatcher(visit, 1, 1) as dispatcher:
        dispatcher.wake(REFS[:2])
        assert begun.wait(120)
        threading.Timer(0.05, go_on.set).start()
    assert seen == REFS[:1]
