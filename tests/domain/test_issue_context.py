"""What is known of one issue at one moment."""

import pytest

from mulligan.domain.issue import Issue
from mulligan.domain.issue_context import IssueContext, bases_of, is_on_others
from mulligan.domain.outcome import Outcome
from mulligan.domain.recorded_effects import NO_EFFECTS, BaseMerged
from mulligan.domain.result import WorkerResultMeta
from mulligan.domain.status import IssueStatus
from world.ledgers import ISSUES, completed

pytestmark = pytest.mark.pure

REF = ISSUES[0]
OLD = completed(REF, 1).meta
NEW = completed(REF, 2).meta.model_copy(update={"epoch": 2})


def case(*, epoch: int, attempt: int = 1) -> IssueContext:
    issue, status = Issue(REF, "Mend it", ""), IssueStatus(REF, epoch=epoch, attempt=attempt)
    return IssueContext(issue, status, (OLD, NEW), max_attempts=3)


def test_the_last_attempt_is_the_newest_of_all_epochs() -> None:
    assert case(epoch=3).last == NEW
    assert IssueContext(Issue(REF, "", ""), IssueStatus(REF), (), max_attempts=3).last is None


def test_an_epoch_has_its_own_attempts_only() -> None:
    assert case(epoch=1).epoch_history == (OLD,)
    assert case(epoch=2).epoch_history == (NEW,)
    assert case(epoch=3).epoch_history == ()
    assert (
        IssueContext(Issue(REF, "", ""), IssueStatus(REF), (), max_attempts=3).epoch_history == ()
    )


def test_an_epoch_without_attempts_lives_on_the_one_before() -> None:
    assert case(epoch=3, attempt=0).epoch_history == (NEW,)


def test_work_goes_on_top_of_others_where_the_last_that_succeeded_does() -> None:
    def made(number: int, outcome: Outcome, start: str) -> WorkerResultMeta:
        shas = {"base_sha": "base", "start_sha": start}
        return completed(REF, number, outcome).meta.model_copy(update=shas)

    alone = made(1, Outcome.SUCCEEDED, "base")
    joined = made(2, Outcome.SUCCEEDED, "theirs")
    failed = made(3, Outcome.CHECKS_FAILED, "base")
    assert not is_on_others(())
    assert not is_on_others((failed,))
    assert not is_on_others((joined, alone, failed))
    assert is_on_others((alone, joined, failed))


def test_work_stands_on_the_bases_of_its_attempts_and_on_those_that_were_merged() -> None:
    status = IssueStatus(
        REF, effects=NO_EFFECTS.plus(BaseMerged(base_sha="merged", head_sha="head", merge="merge"))
    )
    assert bases_of(status, (OLD.model_copy(update={"base_sha": "first"}), NEW)) == {
        *("merged", "first")
    }
