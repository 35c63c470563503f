"""Every rule by itself, their order, and when a new epoch opens."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypedDict, Unpack

import pytest

from mulligan.domain.eligibility import (
    CHANGED_BY_SOMEBODY,
    READ_AND_ASK,
    RULES,
    SETTLED_STAGES,
    Facts,
    findings,
    opens_epoch,
    refusal,
)
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue import (
    AuthorisingAct,
    CommentAct,
    Edit,
    Edits,
    Issue,
    IssueRef,
    LabelAct,
    OperatorAct,
    Stage,
)
from mulligan.domain.status import IssueStatus, Phase, Request, SeenText

pytestmark = pytest.mark.pure

NOW = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
EARLIER = NOW - timedelta(minutes=5)
REF = IssueRef("octo/hello", 12)
ISSUE = Issue(REF, "Mend it", "", labels=frozenset({"mulligan"}))
FIRST = AuthorisingAct(LabelAct(7), "ada", EARLIER, trusted=True)
AGAIN = AuthorisingAct(LabelAct(8), "ada", NOW, trusted=True)
STRANGER = AuthorisingAct(LabelAct(7), "eve", EARLIER, trusted=False, reason="eve may only read.")
OPERATOR = AuthorisingAct(OperatorAct("2025-03-01"), "", NOW, trusted=True)
TOLD = AuthorisingAct(CommentAct(9), "wes", NOW, trusted=True)
NEW = IssueStatus(REF)
TOLD_LATER = IssueStatus(
    REF, epoch=2, request=Request(str(CommentAct(9)), "wes", at=NOW), due=LATER
)
KNOWN = IssueStatus(REF, epoch=1, request=Request(str(LabelAct(7)), "ada", at=EARLIER))
SEEN = replace(KNOWN, text=SeenText(ISSUE.title, ISSUE.text_sha256, "labeled:7"))


def seen(sha256: str, act: str = "labeled:7") -> IssueStatus:
    return replace(KNOWN, text=SeenText(sha256=sha256, written_act=act))


REVIEWED = replace(KNOWN, feedback=Feedback(at=NOW))
BY_EVE = Edit("eve", NOW, "title")
SILENT = replace(FIRST, edits=Edits(names_authors=False))
"""A labelling on a server that does not report who edited a text."""


class Parts(TypedDict, total=False):
    issue: Issue
    status: IssueStatus
    act: AuthorisingAct | None
    policy_fault: str


def facts(**parts: Unpack[Parts]) -> Facts:
    found: Parts = {"issue": ISSUE, "status": KNOWN, "act": FIRST, **parts}
    return Facts(
        issue=found["issue"],
        status=found["status"],
        act=found["act"],
        ready_label="mulligan",
        now=NOW,
        policy_fault=found.get("policy_fault", ""),
    )


@pytest.mark.parametrize(
    ("rule", "broken", "kept"),
    [
        (
            "open",
            [facts(issue=replace(ISSUE, is_open=False))],
            [facts()],
        ),
        (
            "issue",
            [facts(issue=replace(ISSUE, is_pull_request=True))],
            [facts()],
        ),
        (
            "repository",
            [replace(facts(), archived=True)],
            [facts()],
        ),
        (
            "labelled",
            [
                facts(issue=replace(ISSUE, labels=frozenset())),
                facts(issue=replace(ISSUE, labels=frozenset({"mulligan:hitl"}))),
                facts(issue=replace(ISSUE, labels=frozenset()), act=None),
            ],
            [
                facts(),
                facts(issue=replace(ISSUE, labels=frozenset({"Mulligan"}))),
                facts(issue=replace(ISSUE, labels=frozenset()), act=OPERATOR),
                facts(issue=replace(ISSUE, labels=frozenset()), status=REVIEWED),
                facts(issue=replace(ISSUE, labels=frozenset()), act=TOLD),
            ],
        ),
        (
            "authorised",
            [facts(act=None), facts(act=STRANGER)],
            [facts(), facts(status=NEW), facts(act=OPERATOR), facts(act=None, status=REVIEWED)],
        ),
        (
            "concluded",
            [
                facts(status=replace(KNOWN, phase=Phase.ATTEMPTING, stage=Stage.RUNNING)),
                facts(status=replace(KNOWN, phase=Phase.COMPLETED, stage=Stage.RUNNING)),
                facts(status=replace(KNOWN, phase=Phase.DECIDED), act=OPERATOR),
            ],
            [facts()],
        ),
        (
            "elsewhere",
            [replace(facts(act=act), elsewhere="It has opened one") for act in (AGAIN, TOLD)],
            [facts(), replace(facts(act=OPERATOR), elsewhere="It has opened one")],
        ),
        (
            "stage",
            [facts(status=replace(KNOWN, stage=stage)) for stage in SETTLED_STAGES]
            + [facts(status=replace(KNOWN, stage=Stage.HITL), act=STRANGER)],
            [facts()]
            + [facts(status=replace(KNOWN, stage=stage), act=AGAIN) for stage in SETTLED_STAGES]
            + [facts(status=replace(KNOWN, stage=stage), act=OPERATOR) for stage in SETTLED_STAGES],
        ),
        (
            "text",
            [
                facts(act=replace(FIRST, edits=Edits((BY_EVE,)))),
                facts(act=replace(TOLD, edits=Edits((BY_EVE,)))),
                facts(act=replace(FIRST, edits=Edits((BY_EVE,), names_authors=False))),
                facts(act=SILENT, status=seen("another")),
            ],
            [
                facts(),
                facts(act=SILENT),
                facts(act=SILENT, status=SEEN),
                facts(act=SILENT, status=seen("another", "labeled:6")),
                facts(act=FIRST, status=seen("another")),
                facts(act=OPERATOR, status=seen("another")),
            ],
        ),
        (
            "dependencies",
            [replace(facts(), waits_for="It waits until #3 is closed.")],
            [facts()],
        ),
        ("in_hand", [replace(facts(), in_hand="The open pull request closes it.")], [facts()]),
        ("base", [replace(facts(), other_base="Its base is `next`.")], [facts()]),
        (
            "paused",
            [facts(status=replace(KNOWN, paused_by="wes"))],
            [facts(), facts(status=replace(KNOWN, paused_by="wes"), act=OPERATOR)],
        ),
        (
            "due",
            [facts(status=replace(KNOWN, due=LATER)), facts(status=TOLD_LATER, act=TOLD)],
            [
                facts(),
                facts(status=replace(KNOWN, due=NOW)),
                facts(status=replace(KNOWN, due=EARLIER)),
                facts(status=replace(KNOWN, due=LATER), act=OPERATOR),
            ],
        ),
        ("policy", [facts(policy_fault="Line 1 is wrong.")], [facts()]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_rule_refuses_what_breaks_it_and_nothing_else(
    rule: str, broken: list[Facts], kept: list[Facts]
) -> None:
    for case in broken:
        assert {found.rule: found.refusal for found in findings(case)}[rule]
    for case in kept:
        assert not {found.rule: found.refusal for found in findings(case)}[rule]


def test_a_settled_issue_without_the_label_only_has_to_get_it() -> None:
    bare = facts(status=replace(KNOWN, stage=Stage.HITL), issue=replace(ISSUE, labels=frozenset()))
    found = {found.rule: found.refusal for found in findings(bare)}
    assert found["stage"] == (
        "It needs human review. For new attempts, add the label, or write `/mulligan retry`."
    )


def test_every_rule_has_its_row_in_the_table_above() -> None:
    names = [rule.name for rule in RULES]
    assert names == [
        *("open", "issue", "repository", "labelled"),
        *("authorised", "concluded", "elsewhere", "stage", "text", "dependencies"),
        *("in_hand", "base"),
        *("paused", "due", "policy"),
    ]


def test_an_issue_that_keeps_all_rules_may_be_worked_on() -> None:
    assert not refusal(facts())
    assert not refusal(facts(status=NEW))
    assert [found.refusal for found in findings(facts())] == [""] * len(RULES)


def test_the_first_rule_that_is_broken_gives_the_reason() -> None:
    case = facts(issue=replace(ISSUE, is_open=False, labels=frozenset()), act=None)
    assert refusal(case) == "The issue is closed; reopen it."
    assert [found.rule for found in findings(case) if found.refusal] == [
        "open",
        "labelled",
        "authorised",
    ]
    assert [found.kept for found in findings(case)] == [rule.kept for rule in RULES]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (facts(act=STRANGER), "eve may only read."),
        (
            facts(act=replace(FIRST, edits=Edits((BY_EVE,)))),
            f"{BY_EVE}; {READ_AND_ASK}",
        ),
        (
            facts(act=SILENT, status=seen("another")),
            f"{CHANGED_BY_SOMEBODY}; {READ_AND_ASK}",
        ),
        (
            facts(status=replace(KNOWN, due=LATER, reason="Not the agent's fault: no disk.")),
            "It waits until 2025-03-01 12:05:00 UTC: Not the agent's fault: no disk.",
        ),
        (
            facts(status=replace(KNOWN, stage=Stage.HITL)),
            (
                "It needs human review. For new attempts, remove the label and add it again, or "
                "write `/mulligan retry`."
            ),
        ),
        (
            facts(issue=replace(ISSUE, labels=frozenset())),
            "The label 'mulligan' is not on it; add it.",
        ),
        (
            facts(act=None),
            "GitHub does not yet report who added the label; wait, or add it again.",
        ),
        (
            facts(status=replace(KNOWN, phase=Phase.ATTEMPTING)),
            "Its last attempt is not finished; the next pass continues it.",
        ),
        (
            facts(policy_fault="`x` is no key."),
            (
                "The repository's policy is invalid: `x` is no key. Fix it on the base branch; "
                "work then starts by itself."
            ),
        ),
    ],
)
def test_a_reason_says_what_would_change_it(case: Facts, reason: str) -> None:
    assert refusal(case) == reason


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({"bug", "Mulligan:ready"}, "Mulligan:ready"),
        ({"bug", "muligan"}, "muligan"),
        ({"Mulligans"}, "Mulligans"),
        ({"ready-for-mulligan"}, "ready-for-mulligan"),
        ({"mull"}, "mull"),
        ({"mul"}, "mul"),
        ({"mu"}, None),
        ({"bug", "milligram", "m", "Mulligan:HITL", "mulligan-first"}, None),
    ],
)
def test_a_label_that_was_probably_meant_is_named(labels: set[str], found: str | None) -> None:
    known = frozenset({"mulligan:hitl", "mulligan-first"})
    issue = replace(ISSUE, labels=frozenset(labels))
    case = replace(facts(issue=issue, act=None), other_labels=known)
    said = {each.rule: each.refusal for each in findings(case)}
    near = f"The label 'mulligan' is not on it; it has {found!r}. Add 'mulligan' instead."
    assert said["labelled"] == (near if found else "The label 'mulligan' is not on it; add it.")
    assert said["authorised"] == "Nobody has requested the work."


@pytest.mark.parametrize(
    ("opens", "status", "act"),
    [
        (True, NEW, FIRST),
        (True, NEW, OPERATOR),
        (False, NEW, None),
        (False, NEW, STRANGER),
        (False, KNOWN, FIRST),
        (True, KNOWN, AGAIN),
        (False, KNOWN, replace(AGAIN, act=LabelAct(6))),
        (False, KNOWN, OPERATOR),
        (False, replace(KNOWN, request=replace(KNOWN.request, written_act="operator:now")), AGAIN),
        (False, replace(KNOWN, phase=Phase.DECIDED), AGAIN),
        (False, replace(KNOWN, stage=Stage.RUNNING), AGAIN),
        (True, replace(KNOWN, stage=Stage.HITL), AGAIN),
        (True, replace(KNOWN, stage=Stage.REVIEW), AGAIN),
        (True, replace(KNOWN, stage=Stage.RESOLVED), AGAIN),
        (True, replace(KNOWN, stage=Stage.HITL, request=Request(str(LabelAct(7)))), AGAIN),
        (False, replace(KNOWN, stage=Stage.HITL), FIRST),
        (True, replace(KNOWN, stage=Stage.HITL), replace(AGAIN, at=EARLIER)),
        (False, replace(KNOWN, stage=Stage.HITL), replace(AGAIN, act=LabelAct(6))),
        (False, replace(KNOWN, stage=Stage.HITL), replace(OPERATOR, at=EARLIER)),
        (False, replace(KNOWN, stage=Stage.HITL), replace(AGAIN, trusted=False)),
    ],
)
def test_only_a_newer_trusted_act_opens_an_epoch_and_none_while_it_is_worked_on(
    *, opens: bool, status: IssueStatus, act: AuthorisingAct | None
) -> None:
    assert opens_epoch(facts(status=status, act=act)) is opens


def test_an_operators_command_goes_over_a_label_that_was_taken_off() -> None:
    assert opens_epoch(replace(facts(act=OPERATOR), withdrawn=True))
    assert not opens_epoch(replace(facts(act=AGAIN, status=SEEN), withdrawn=True, act=FIRST))
    under_way = replace(KNOWN, stage=Stage.RUNNING)
    assert not opens_epoch(replace(facts(act=OPERATOR, status=under_way), withdrawn=True))


def test_an_account_that_is_gone_has_no_name() -> None:
    assert str(Edit("", NOW, "text")) == (
        "A deleted account changed the text at 2025-03-01 12:00:00 UTC, after the label was "
        "added, without the permission to start work"
    )


def test_title_and_text_are_told_apart_in_their_hash() -> None:
    assert Issue(REF, "ab", "c").text_sha256 != Issue(REF, "a", "bc").text_sha256
    assert Issue(REF, "a", "b").text_sha256 == replace(ISSUE, title="a", body="b").text_sha256
