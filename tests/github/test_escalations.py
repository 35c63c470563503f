"""The comment that hands an issue to a person: asked for first is what helps first."""

import re
from dataclasses import replace

import pytest

from mulligan.config.policy import Escalation
from mulligan.domain.events import Remark
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue_context import IssueContext, Pattern, PatternKind
from mulligan.domain.outcome import Outcome, ZeroKind
from mulligan.domain.result import FileChange, Finding, GuardKind, GuardViolation
from mulligan.github.escalation import (
    ADVICE,
    AGENT_KILLED_ADVICE,
    ANSWER_IT,
    MAX_ACTIONS,
    NESTED,
    NOT_CHECKED_OUT,
    ON_GUARDS,
    ONLY_IGNORED,
    QUESTION,
    Advice,
    advice_on,
    escalation_comment,
    escalation_marker,
)
from world.escalations import ESCALATIONS, not_published, red_three_times
from world.stories import NOON, REF, attempt, escalated, red_check

pytestmark = pytest.mark.pure

ORDER = [
    "Failure summary",
    "Suggested actions",
    "Your options",
    "All commands",
    "Attempt history",
    "Last failure",
    "Files changed by the last attempt",
    "Observed patterns",
]
ALWAYS = {"Failure summary", "Suggested actions", "Your options", "All commands", "Attempt history"}
FIRST = {
    "checks-failed": "The same failure occurred again. Check `tests/test_add.py::test_negative`",
    "drift": "If `e2e` is slow, raise its `timeout`",
    "same-change": "Two attempts made nearly the same change",
    "zero-commit": "No checks are configured",
    "scope-violation": "To allow changes of `docs/index.md`, widen `scope`",
    "timed-out": "It reached `agent.timeout`",
    "stalled": "It printed nothing for `agent.stall_timeout`",
    "own-limit": "The agent reached its own limit",
    "blocked": "Answer in a comment: `/mulligan fix:",
    "question": "Answer in a comment: `/mulligan fix:",
    "misconfigured": "Fix it as described above",
    "tools-refused": "The sandbox blocked `pypi.example`",
    "not-published": "Fix this, then write /mulligan retry",
    "review-rounds": "Say it in one `/mulligan fix:`",
}


def help_wanted(found: IssueContext) -> str:
    return escalation_comment(found, Escalation())


def section(text: str, name: str) -> str:
    return text.partition(f"### {name}\n\n")[2].partition("\n\n### ")[0]


def test_there_is_a_story_for_every_outcome_that_comes_to_a_person() -> None:
    told = (story() for story in ESCALATIONS.values())
    shown = {found.history[-1].outcome for found in told if found.history}
    assert shown == set(Outcome) - {Outcome.CANCELLED}


@pytest.mark.parametrize("name", FIRST)
def test_what_helps_first_is_chosen_from_the_facts(name: str) -> None:
    actions = section(help_wanted(ESCALATIONS[name]()), "Suggested actions")
    assert actions.startswith(f"- {FIRST[name]}")


@pytest.mark.parametrize("kind", GuardKind)
def test_each_broken_rule_says_what_a_person_can_decide(kind: GuardKind) -> None:
    broken = (GuardViolation(kind=kind, path="a.py", message="a.py must not."),)
    last = attempt(1, Outcome.SCOPE_VIOLATION).model_copy(update={"guard_violations": broken})
    actions = section(help_wanted(escalated(last, reason="It is refused.")), "Suggested actions")
    assert f"- {ON_GUARDS[kind].format('`a.py`')}" in actions


def test_attempts_that_end_alike_are_told_once() -> None:
    for name in ("zero-diff", "timed-out", "interrupted", "rejected", "scope-violation"):
        text = help_wanted(ESCALATIONS[name]())
        assert "The outcome was" not in text
        history = section(text, "Attempt history")
        assert history.count("The same as in attempt 1.") == text.count("same as in attempt") > 0


def test_the_words_of_the_reviewer_and_of_github_are_shown() -> None:
    rejected = section(help_wanted(ESCALATIONS["rejected"]()), "Failure summary")
    assert "> See \\`price.py\\`." in rejected
    assert "OSError" in section(help_wanted(ESCALATIONS["red-on-github"]()), "Last failure")


def test_a_pull_request_that_came_back_is_not_said_to_be_unpublished() -> None:
    for name in ("review-rounds", "red-on-github"):
        text = help_wanted(ESCALATIONS[name]())
        assert "could not publish" not in text
        assert "publishes the work" not in text


def test_kept_work_that_is_refused_again_is_still_unpublished() -> None:
    found = not_published()
    again = replace(found, status=replace(found.status, outcome=None, is_kept=True))
    assert help_wanted(again) == help_wanted(found)


def test_there_is_advice_on_every_outcome() -> None:
    assert set(ADVICE) == set(Outcome)


@pytest.mark.parametrize(
    ("outcome", "kind", "advice"),
    [
        (Outcome.ZERO_COMMIT, ZeroKind.ASKED, QUESTION),
        (Outcome.ZERO_DIFF, ZeroKind.NESTED, NESTED),
        (Outcome.ZERO_DIFF, ZeroKind.NOT_CHECKED_OUT, NOT_CHECKED_OUT),
        (Outcome.ZERO_DIFF, ZeroKind.ONLY_IGNORED, ONLY_IGNORED),
        (Outcome.AGENT_CRASHED, ZeroKind.KILLED, AGENT_KILLED_ADVICE),
        (Outcome.AGENT_CRASHED, ZeroKind.CUT_OFF, ADVICE[Outcome.AGENT_CRASHED]),
        (Outcome.AGENT_TIMED_OUT, ZeroKind.CUT_OFF, ADVICE[Outcome.AGENT_TIMED_OUT]),
        (Outcome.AGENT_CRASHED, ZeroKind.NOTHING, ADVICE[Outcome.AGENT_CRASHED]),
        (Outcome.ZERO_DIFF, ZeroKind.UNDONE, ADVICE[Outcome.ZERO_DIFF]),
        (Outcome.ZERO_COMMIT, None, ADVICE[Outcome.ZERO_COMMIT]),
    ],
)
def test_an_agent_that_left_nothing_is_advised_on_by_how_that_came(
    outcome: Outcome, kind: ZeroKind | None, advice: Advice
) -> None:
    last = attempt(1, outcome).model_copy(update={"zero_kind": kind})
    assert advice_on(last) is advice
    assert advice.ask in help_wanted(escalated(last, reason="It did not work out."))


@pytest.mark.parametrize("outcome", Outcome)
def test_the_escalation_comment_keeps_its_order_whatever_happened(outcome: Outcome) -> None:
    text = help_wanted(escalated(attempt(1, outcome), reason="It did not work out."))
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert headings == [name for name in ORDER if name in headings]
    assert set(headings) >= ALWAYS
    assert not re.search(r"^###.*\n\n(?:###|</details>)", text, re.MULTILINE)
    assert ADVICE[outcome].ask in text
    assert "{" not in text


FITTING = {
    "checks-failed": ["fix: <what to do differently>", "skip [reason]"],
    "drift": ["fix: <what to do differently>", "retry", "skip [reason]"],
    "question": ["fix: <your answer>", "retry", "skip [reason]"],
    "blocked": ["fix: <your answer>", "retry", "skip [reason]"],
    "nothing-to-do": ["skip [reason]", "fix: <how to see what is missing>"],
    "scope-violation": ["fix: <which files to change>", "retry", "skip [reason]"],
    "crashed": ["retry", "skip [reason]"],
    "infrastructure": ["retry", "skip [reason]"],
    "no-attempt": ["retry", "skip [reason]"],
    "not-published": ["retry", "skip [reason]"],
    "review-rounds": ["fix: <what to do>", "skip [reason]"],
}


@pytest.mark.parametrize("name", FITTING)
def test_only_the_commands_that_fit_the_cause_are_offered(name: str) -> None:
    options = section(help_wanted(ESCALATIONS[name]()), "Your options").partition("<details>")[0]
    assert re.findall(r"^- `/mulligan ([^`]*)`", options, re.MULTILINE) == FITTING[name]


def test_the_suggestions_are_few() -> None:
    for story in ESCALATIONS.values():
        actions = section(help_wanted(story()), "Suggested actions")
        assert 1 <= actions.count("\n- ") + 1 <= MAX_ACTIONS


@pytest.mark.parametrize(
    ("outcome", "words", "asked"),
    [
        (Outcome.CHECKS_FAILED, "I tried.\n\n**Is the test or the issue right?**", True),
        (Outcome.REJECTED, "Which rounding do you want?", True),
        (Outcome.CHECKS_FAILED, "Right? I think so.", False),
        (Outcome.CHECKS_FAILED, "", False),
        (Outcome.AGENT_CRASHED, "Shall I go on?", False),
    ],
)
def test_a_question_at_the_end_of_an_agent_is_to_be_answered(
    outcome: Outcome, words: str, *, asked: bool
) -> None:
    last = attempt(1, outcome).model_copy(update={"agent_summary": words})
    text = help_wanted(escalated(last, reason="It failed."))
    first = section(text, "Suggested actions").partition("\n")[0]
    assert (first == f"- {ANSWER_IT}") is asked
    assert ("`/mulligan fix: <your answer>` starts 3 new attempts" in text) is asked


def test_the_last_line_of_an_agent_whose_change_was_refused_is_quoted() -> None:
    words = "I changed add().\nThe test expects 4, the issue 3: @zoe decides."
    last = attempt(1).model_copy(update={"agent_summary": words})
    summary = section(help_wanted(escalated(last, reason="It failed.")), "Failure summary")
    assert "The agent ended with:\n\n> The test expects 4, the issue 3: `@zoe` decides." in summary
    assert "I changed add()" not in summary


def test_the_marker_names_the_issue_and_the_epoch() -> None:
    assert escalation_marker(REF, 2) == "<!-- mulligan:hitl octo/calc#12 epoch=2 -->"


def test_a_mention_is_written_once_however_it_was_configured() -> None:
    text = escalation_comment(red_three_times(), Escalation(mention=("@ann", "octo/core")))
    assert "\n@ann @octo/core **This issue needs human review.**" in text


def test_a_digest_that_is_long_is_cut_with_a_mark() -> None:
    red = attempt(1).model_copy(update={"checks": (red_check(digest="x" * 7000),)})
    assert "[... 1000 characters omitted]" in help_wanted(escalated(red, reason="Red."))


def test_a_check_without_a_word_says_so() -> None:
    red = attempt(1).model_copy(update={"checks": (red_check(digest="\n"),)})
    assert "(no output)" in help_wanted(escalated(red, reason="Red."))


def test_long_lists_are_counted_instead_of_shown() -> None:
    checks = tuple(red_check(f"check-{number}") for number in range(5))
    files = tuple(FileChange(path=f"f{number}", status="A") for number in range(25))
    red = attempt(1).model_copy(update={"checks": checks, "files_modified": files})
    text = help_wanted(escalated(red, reason="Red."))
    assert "(+ 2 failing checks)" in text
    assert "- `f19` (added, binary)\n- (+ 5 more)" in text
    assert "check-3" not in text


def test_the_failing_test_stands_before_the_suggestions() -> None:
    summary = section(help_wanted(red_three_times()), "Failure summary")
    assert "Failing test: `tests/test_add.py::test_negative`" in summary


def test_several_failing_tests_are_named_each_once() -> None:
    names = [f"tests/test_add.py::test_{number}" for number in (1, 2, 1)]
    findings = tuple(Finding(summary="assert 1 == 2", test_id=name) for name in names)
    check = red_check().model_copy(update={"findings": findings, "fingerprint": "f1"})
    red = attempt(1).model_copy(update={"checks": (check,)})
    summary = section(help_wanted(escalated(red, reason="Red.")), "Failure summary")
    shown = "Failing tests: `tests/test_add.py::test_1`, `tests/test_add.py::test_2`"
    assert shown in summary.splitlines()


@pytest.mark.parametrize(
    ("outcome", "words", "shown"),
    [
        (Outcome.ZERO_COMMIT, "I could not find the file.", True),
        (Outcome.ZERO_DIFF, "x" * 700, True),
        (Outcome.ZERO_COMMIT, "", False),
        (Outcome.ZERO_COMMIT, "It failed.", False),
        (Outcome.CHECKS_FAILED, "I changed add().", False),
    ],
)
def test_an_agent_without_a_change_is_quoted_once(
    outcome: Outcome, words: str, *, shown: bool
) -> None:
    last = attempt(1, outcome).model_copy(update={"agent_summary": words})
    text = help_wanted(escalated(last, reason="It failed."))
    assert ("The agent's last message:" in text) is shown
    assert "x" * 601 not in text


def test_a_review_without_a_change_is_quoted_and_can_be_merged() -> None:
    remarks = tuple(
        Remark(author="ann", body=f"Use Decimal {n}.", path="src/add.py", line=n) for n in range(7)
    )
    found = ESCALATIONS["review-rounds"]()
    silent = attempt(2, Outcome.ZERO_DIFF)
    status = replace(found.status, feedback=Feedback(at=NOON, remarks=remarks))
    text = help_wanted(replace(found, status=status, history=(*found.history, silent)))
    assert "The review by `ann` on `src/add.py:1`:\n\n> Use Decimal 1." in text
    assert "(+ 2 comments in the review)" in text
    assert "The agent changed nothing for the review." in text
    assert "good as it is, merge it." in section(text, "Suggested actions")
    assert "Merge pull request #13 as it is, or close it." in section(text, "Your options")


def test_what_does_not_fit_is_omitted_whole() -> None:
    files = (FileChange(path="a.py", status="M"),)
    long = attempt(1).model_copy(update={"error": "@" * 200, "files_modified": files})
    many = [long] * 20
    text = help_wanted(
        replace(
            escalated(*many, reason="Red."), observed=(Pattern(PatternKind.NAMES, "`" * 300),) * 100
        )
    )
    assert text.endswith("</details>")
    assert "Observed patterns" not in text
