"""What any dispatcher does: each issue once, within the limits, until all visits have ended."""

import threading
import time
from collections import Counter

import pytest

from mulligan.domain.issue import IssueRef
from mulligan.engine.dispatch import InlineDispatcher, PoolDispatcher
from mulligan.ports import Dispatcher

REFS = [IssueRef(f"o/r{number % 3}", number) for number in range(1, 13)]


@pytest.fixture(params=["inline", "pool"])
def dispatcher(request: pytest.FixtureRequest) -> Dispatcher:
    return InlineDispatcher() if request.param == "inline" else PoolDispatcher(4, 2)


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


def test_each_issue_is_visited_once(dispatcher: Dispatcher) -> None:
    visitor = Visitor()
    dispatcher.visit_all(REFS, visitor)
    assert visitor.seen == Counter(REFS)
    assert visitor.now.total() == 0


def test_the_limits_hold(dispatcher: Dispatcher) -> None:
    visitor = Visitor()
    dispatcher.visit_all(REFS, visitor)
    assert visitor.most_at_once <= 4
    assert visitor.most_in_one_repository <= 2


def test_nothing_to_visit_is_nothing_to_wait_for(dispatcher: Dispatcher) -> None:
    dispatcher.visit_all([], Visitor())


def test_a_pool_visits_several_at_a_time() -> None:
    visitor = Visitor()
    PoolDispatcher(4, 2).visit_all(REFS, visitor)
    assert visitor.most_at_once > 1


def test_one_slow_repository_does_not_hold_up_the_others() -> None:
    released, order = threading.Event(), list[str]()

    def visit(ref: IssueRef) -> None:
        if ref.repository == "slow/one":
            assert released.wait(5)
        order.append(ref.repository)
        if len(order) == 2:
            released.set()

    refs = [
        IssueRef("slow/one", 1),
        IssueRef("slow/one", 2),
        IssueRef("a/b", 1),
        IssueRef("c/d", 1),
    ]
    PoolDispatcher(2, 1).visit_all(refs, visit)
    assert order == ["a/b", "c/d", "slow/one", "slow/one"]
