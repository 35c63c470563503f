"""Labels follow the stage, and nobody else's label is ever touched."""

import pytest

from mulligan.config.policy import Labels
from mulligan.domain.issue import Stage
from mulligan.github.labels import LabelChange, label_change, label_styles

pytestmark = pytest.mark.pure

READY, RUNNING, REVIEW, HITL = "mulligan", "mulligan:running", "mulligan:review", "mulligan:hitl"
ALL = (READY, RUNNING, REVIEW, HITL)

TABLE: list[tuple[Stage, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = [
    (Stage.READY, (), (), ()),
    (Stage.READY, (READY, RUNNING), (), (RUNNING,)),
    (Stage.READY, ALL, (), (RUNNING, REVIEW, HITL)),
    (Stage.RUNNING, (), (RUNNING,), ()),
    (Stage.RUNNING, (READY,), (RUNNING,), ()),
    (Stage.RUNNING, (READY, HITL), (RUNNING,), (HITL,)),
    (Stage.RUNNING, (READY, RUNNING), (), ()),
    (Stage.REVIEW, (READY, RUNNING), (REVIEW,), (READY, RUNNING)),
    (Stage.REVIEW, (REVIEW,), (), ()),
    (Stage.HITL, (READY, RUNNING), (HITL,), (READY, RUNNING)),
    (Stage.HITL, (READY, REVIEW, HITL), (), (READY, REVIEW)),
    (Stage.RESOLVED, ALL, (), ALL),
    (Stage.RESOLVED, (), (), ()),
]


@pytest.mark.parametrize(("stage", "current", "add", "remove"), TABLE)
def test_a_stage_has_its_label(
    stage: Stage, current: tuple[str, ...], add: tuple[str, ...], remove: tuple[str, ...]
) -> None:
    assert label_change(current, stage, Labels()) == LabelChange(add, remove)


@pytest.mark.parametrize("stage", Stage)
def test_mulligan_never_puts_the_ready_label_on(stage: Stage) -> None:
    assert READY not in label_change((), stage, Labels()).add


@pytest.mark.parametrize("stage", Stage)
def test_other_labels_stay(stage: Stage) -> None:
    others = ("bug", "mulligan:priority", "mulligan-2")
    assert not set(label_change((*ALL, *others), stage, Labels()).remove) & set(others)


@pytest.mark.parametrize("stage", Stage)
def test_a_change_once_made_is_not_made_again(stage: Stage) -> None:
    change = label_change(ALL, stage, Labels())
    after = {*ALL, *change.add} - set(change.remove)
    assert label_change(after, stage, Labels()) == LabelChange()


def test_labels_are_called_what_the_policy_calls_them() -> None:
    labels = Labels(ready="bot", running="bot: busy", review="bot: look", hitl="help wanted")
    change = label_change(("bot", "bot: busy", "mulligan"), Stage.HITL, labels)
    assert change == LabelChange(("help wanted",), ("bot", "bot: busy"))


def test_case_makes_no_other_label() -> None:
    change = label_change(("Mulligan", "Mulligan:Running"), Stage.HITL, Labels())
    assert change == LabelChange((HITL,), ("Mulligan", "Mulligan:Running"))
    assert label_change(("MULLIGAN:HITL",), Stage.HITL, Labels()) == LabelChange()


def test_one_label_for_two_stages_is_not_taken_off_while_it_is_wanted() -> None:
    labels = Labels(review="mulligan:look", hitl="mulligan:look")
    change = label_change(("mulligan", "mulligan:look"), Stage.HITL, labels)
    assert change == LabelChange((), ("mulligan",))


def test_the_labels_to_create_have_the_configured_names_and_differ_in_colour() -> None:
    named = Labels(ready="please", running="busy", review="look", hitl="help")
    styles = label_styles(named)
    assert [each.name for each in styles] == ["please", "busy", "look", "help"]
    assert len({each.color for each in styles}) == 4
    assert styles[3].description == "This needs human review (HITL)"
