"""A dry run says everything that it would do, once, and does nothing."""

import pytest

from mulligan.config.policy import Escalation, Labels, PullRequestSettings
from mulligan.domain.errors import LeaseLostError
from mulligan.domain.issue import Stage
from mulligan.domain.outcome import Outcome
from world.simulated import NAME
from world.stories import attempt, case, escalated, published
from world.trackers import TrackerEnvironment, case_for


def test_nothing_is_written_and_everything_is_said(office: TrackerEnvironment) -> None:
    ref = office.ready()
    office.branch(ref)
    writer = office.dry_run()
    writer.set_stage_labels(ref, Stage.RUNNING, Labels())
    writer.update_status(case_for(case(), ref))
    writer.update_status(case_for(case(attempt(1)), ref))
    writer.post_escalation(case_for(escalated(attempt(1), reason="It is hard."), ref), Escalation())
    verified = case_for(published(attempt(1, Outcome.SUCCEEDED)), ref)
    writer.open_pull_request(verified, "main", PullRequestSettings(draft=True))
    writer.set_stage_labels(ref, Stage.REVIEW, Labels())
    writer.open_draft(case_for(escalated(attempt(1), reason="It is hard."), ref), "main")
    assert [said.partition("\n")[0] for said in office.said] == [
        f"Would change the labels of {ref}: +mulligan:running",
        f"Would write the status comment of {ref}:",
        f"Would change the status comment of {ref}:",
        f"Would write the escalation comment of {ref}:",
        f"Would write a draft pull request of {ref.branch} into main of {NAME}:",
        f"Would change the labels of {ref}: +mulligan:review -mulligan -mulligan:running",
        f"Would change a draft pull request of {ref.branch} into main of {NAME}:",
    ]
    assert "attempt 1 of 3" in office.said[1]
    assert "It is hard." in office.said[3]
    assert "Closes #" in office.said[4]
    assert all(line.startswith("GET ") for line in office.requests())
    assert office.hub.world.labels_of(ref) == ["mulligan"]


def test_what_was_said_is_not_said_again(office: TrackerEnvironment) -> None:
    ref = office.ready()
    writer = office.dry_run()
    for _ in range(2):
        writer.set_stage_labels(ref, Stage.RUNNING, Labels())
        writer.update_status(case_for(case(), ref))
    assert len(office.said) == 2


def test_labels_are_remembered_and_the_ready_label_is_never_put_on(
    office: TrackerEnvironment,
) -> None:
    ref, writer = office.ready(), office.dry_run()
    for stage in (Stage.RUNNING, Stage.READY, Stage.RUNNING, Stage.HITL, Stage.READY):
        writer.set_stage_labels(ref, stage, Labels())
        writer.set_stage_labels(ref, stage, Labels())
    assert [said.partition(": ")[2] for said in office.said] == [
        "+mulligan:running",
        "-mulligan:running",
        "+mulligan:running",
        "+mulligan:hitl -mulligan -mulligan:running",
        "-mulligan:hitl",
    ]


def test_nothing_is_said_once_the_lease_is_lost(office: TrackerEnvironment) -> None:
    def lost() -> None:
        message = "Another worker has taken over."
        raise LeaseLostError(message)

    ref, writer = office.ready(), office.dry_run().guarded(lost)
    with pytest.raises(LeaseLostError):
        writer.set_stage_labels(ref, Stage.RUNNING, Labels())
    with pytest.raises(LeaseLostError):
        writer.update_status(case_for(case(), ref))
    assert office.said == []
