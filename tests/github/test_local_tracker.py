"""The tracker of a rehearsal knows one issue, and writes nowhere."""

import pytest

from mulligan.config.policy import Labels
from mulligan.domain.errors import GoneError
from mulligan.domain.issue import Issue, IssueRef, RepositoryFacts, Stage
from mulligan.github.dry_run import LocalTracker
from mulligan.implement.ports import Tracker

REF = IssueRef("local/tools", 1)


def test_labels_are_kept_and_anything_else_is_gone() -> None:
    local = LocalTracker(
        Issue(REF, "Mend it", ""), RepositoryFacts("local/tools", "", "main"), print
    )
    tracker: Tracker = local
    tracker.set_stage_labels(REF, Stage.RUNNING, Labels())
    assert tracker.read(REF).labels == {"mulligan:running"}
    assert tracker.list_labelled("local/tools", "Mulligan:Running") == [REF]
    tracker.set_stage_labels(REF, Stage.HITL, Labels())
    assert tracker.read(REF).labels == {"mulligan:hitl"}
    assert tracker.list_labelled("local/tools", "mulligan") == []
    with pytest.raises(GoneError, match="of local/tools only"):
        tracker.repository("acme/tools")
    with pytest.raises(GoneError, match="of local/tools#1 only"):
        tracker.read(IssueRef("local/tools", 2))
