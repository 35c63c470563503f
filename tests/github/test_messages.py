"""Every word that Mulligan writes on GitHub, as the maintainer reads it: see golden/."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mulligan.config.policy import Escalation
from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.issue import CommentAct, LabelAct, Stage
from mulligan.domain.issue_context import IssueContext, Pattern, PatternKind
from mulligan.domain.outcome import OpenPullRequest, Outcome, StandDown
from mulligan.domain.recorded_effects import (
    NO_EFFECTS,
    Effects,
    PublicationDelayed,
    PullNote,
    Topic,
)
from mulligan.domain.result import (
    AgentFacts,
    AttemptTimes,
    CheckKind,
    FileChange,
    Finding,
    FixRound,
    OnBase,
    WorkerResultMeta,
)
from mulligan.domain.status import Phase, PullStatus
from mulligan.github.escalation import escalation_comment
from mulligan.github.markdown_parts import CUT, MAX_BODY, USAGE, body
from mulligan.github.messages import (
    SHARED_NOTES,
    draft_body,
    draft_title,
    label_comment,
    label_marker,
    pull_request_body,
    pull_request_title,
    reply_comment,
    reply_marker,
    status_comment,
    status_marker,
)
from mulligan.text.commands import parse
from world.attempts import broken_rules
from world.escalations import ESCALATIONS, red_three_times, silent
from world.stories import ISSUE, NOON, attempt, case, escalated, green_check, published, red_check

pytestmark = pytest.mark.pure

GOLDEN = Path(__file__).parent / "golden"
NO_OUTPUT = "The agent changed nothing (zero commits)."
ALL_FAILED = "All 3 attempts failed. The last one: Check 'tests' failed with exit code 1."


def red(number: int, summary: str = "assert 3 == -3") -> WorkerResultMeta:
    """Fail a test whose name and message are known."""
    test = "tests/test_add.py::test_adding_two_negative_numbers_gives_a_negative_one"
    found = Finding(summary=f"{test}: {summary}", message=summary, test_id=test)
    check = red_check().model_copy(update={"findings": (found,), "count": 1})
    return attempt(number).model_copy(update={"checks": (check,)})


def waiting() -> IssueContext:
    cut = attempt(2, Outcome.INFRASTRUCTURE, "GitHub could not be reached.")
    found = case(attempt(1), cut, stage=Stage.READY, reason="GitHub could not be reached.")
    status = replace(found.status, due=NOON + timedelta(minutes=30))
    return replace(found, counted=1, status=status)


def running_again() -> IssueContext:
    found = case(red(1))
    status = replace(found.status, started_at=NOON + timedelta(minutes=10))
    return replace(found, status=status)


def second_try() -> IssueContext:
    return published(red(1), attempt(2, Outcome.SUCCEEDED))


def timed() -> IssueContext:
    """The second try of a change whose first one waited for twenty minutes and ran setup."""
    first = AttemptTimes(waited_ms=1_200_000, set_up_ms=120_000, agent_ms=420_000, checks_ms=93_000)
    again = AttemptTimes(
        waited_ms=2000, set_up_reused=True, agent_ms=300_000, checks_ms=34_100, other_ms=1200
    )
    often = green_check().model_copy(update={"flaky": True, "runs": 3, "wall_ms": 34_000})
    return published(
        attempt(1).model_copy(update={"times": first}),
        attempt(2, Outcome.SUCCEEDED).model_copy(update={"times": again, "checks": (often,)}),
    )


def marked_checks() -> IssueContext:
    found = (Finding(summary="cart.py:3:1: `os` is unused, see @zoe"),)
    flaky = green_check("e2e").model_copy(update={"flaky": True, "unsteady": found})
    old = red_check("lint").model_copy(
        update={
            "preexisting": True,
            "command": "ruff check . | cat",
            "findings": (),
            "known": found * 12,
        }
    )
    loose = red_check("types").model_copy(update={"required": False})
    slow = loose.model_copy(update={"name": "mutation", "timed_out": True})
    checks = (green_check(), flaky, old, loose, slow)
    more = {
        "checks": checks,
        "fix_rounds": (FixRound(number=1),),
        "verifier_feedback": "Mind the tax, @zoe.\nCloses #1",
    }
    return published(attempt(1, Outcome.SUCCEEDED).model_copy(update=more))


def unverified() -> IssueContext:
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"checks": (), "agent_summary": ""})
    return replace(published(meta), verifies=False)


def old_test_failure() -> IssueContext:
    """The only test check failed at its first step, with the change and without it."""
    absent = (Finding(summary="make: *** [Makefile:2: vendor/lib/all.mk] Error 2"),)
    old = red_check().model_copy(update={"preexisting": True, "findings": (), "known": absent})
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"checks": (old,)})
    return published(meta)


def without_set_up(stage: Stage) -> IssueContext:
    """A setup command failed, whose output tries to close its fence."""
    why = "The setup command 'pip install -e .' failed with exit code 1."
    said = "Looking in indexes: https://pypi.example\n```\nSSL: CERTIFICATE_VERIFY_FAILED\n╰─> @zoe"
    failed = red_check("setup", said).model_copy(
        update={"command": "pip install -e .", "is_set_up": True, "kind": CheckKind.OTHER}
    )
    meta = attempt(1, Outcome.INFRASTRUCTURE, why).model_copy(update={"set_up": failed})
    return case(meta, stage=stage, reason=f"Not caused by the agent. {why}")


def set_up_fails_on_change() -> IssueContext:
    said = "The change touches package.json, so the setup commands ran again, with no network."
    failed = red_check("setup", f"{said}\nnpm ERR! network").model_copy(
        update={"command": "npm ci", "is_set_up": True, "kind": CheckKind.OTHER}
    )
    why = "The setup command 'npm ci' failed with exit code 1."
    last = attempt(3, error=why).model_copy(update={"checks": (failed,)})
    return escalated(attempt(1), attempt(2), last, reason=f"All 3 attempts failed. {why}")


CANNOT_RUN = {
    "digest": "/bin/sh: 1: jest: not found\nIt ends in the same way without this change.",
    "exit_code": 127,
    "on_base": OnBase.CANNOT_RUN,
}
STUCK = "The check 'tests' cannot start on the base branch either (exit code 127)."


def stuck() -> IssueContext:
    why = f"{STUCK} /bin/sh: 1: jest: not found"
    meta = attempt(1).model_copy(
        update={
            "outcome": Outcome.MISCONFIGURED,
            "error": why,
            "failure_reason": why,
            "checks": (red_check().model_copy(update=CANNOT_RUN), green_check("lint")),
        }
    )
    return replace(escalated(meta, reason=why), counted=0)


def stuck_and_red() -> IssueContext:
    """A check cannot run, a second one fails on the base too, and the third is the agent's."""
    found = (Finding(summary="cart.py:3:1: `os` is unused", file="cart.py", line=3),)
    base = {"on_base": OnBase.FAILS, "known": found}
    checks = (
        red_check().model_copy(update=CANNOT_RUN),
        red_check("lint").model_copy(update=base),
        red_check("types"),
    )
    why = f"{STUCK} Check 'lint' failed with exit code 1. Check 'types' failed with exit code 1."
    last = attempt(3, error=why).model_copy(update={"checks": checks})
    reason = f"All 3 attempts failed. The last one: {why}"
    return escalated(attempt(1), attempt(2), last, reason=reason)


def lost_checks() -> IssueContext:
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"checks": (), "restored": True})
    return published(meta)


def help_wanted(found: IssueContext) -> str:
    return escalation_comment(found, Escalation(mention=("octo/maintainers",)))


def drafted(*history: WorkerResultMeta) -> IssueContext:
    found = escalated(*(history or (attempt(1), attempt(2), attempt(3))), reason=ALL_FAILED)
    url = "https://github.com/octo/calc/pull/13"
    status = replace(found.status, pull=PullStatus(url, 13, draft_of=3))
    return replace(found, status=status)


def rejected() -> IssueContext:
    why = "The reviewer rejected the work, see @zoe."
    kept = {"files_modified", "diff_summary", "head_sha", "commits"}
    work = attempt(1).model_dump(include=kept)
    return drafted(attempt(1, Outcome.REJECTED, why).model_copy(update=work | {"checks": ()}))


def no_drafts() -> IssueContext:
    why = "GitHub refused POST /repos/octo/calc/pulls (Draft pull requests are not supported)."
    return replace(red_three_times(), no_draft=why)


def in_hitl() -> IssueContext:
    found = drafted()
    url = "https://github.com/octo/calc/issues/12#issuecomment-99"
    return replace(found, status=replace(found.status, stage=Stage.HITL, asked_at=url))


def silent_after_a_draft() -> IssueContext:
    return drafted(*silent().history[:2], attempt(4, Outcome.ZERO_COMMIT, NO_OUTPUT))


def up_to_date() -> IssueContext:
    found = second_try()
    why = "Mulligan cannot do that, because this server has no GraphQL API."
    status = replace(
        found.status,
        pull=replace(found.status.pull, updated_to="0123456789abcdef", left_draft=why),
    )
    return replace(found, status=status)


def escalated_with_a_link() -> IssueContext:
    found = case(attempt(1), stage=Stage.HITL, reason=ALL_FAILED)
    url = "https://github.com/octo/calc/issues/12#issuecomment-99"
    return replace(found, status=replace(found.status, asked_at=url))


def paused() -> IssueContext:
    found = case(attempt(1), stage=Stage.READY)
    return replace(found, status=replace(found.status, paused_by="ann"))


MESSAGES: dict[str, tuple[Callable[[IssueContext], str], Callable[[], IssueContext]]] = {
    "status-queued": (status_comment, lambda: case(stage=Stage.READY)),
    "status-first-attempt": (status_comment, case),
    "status-second-attempt": (status_comment, running_again),
    "status-waiting": (status_comment, waiting),
    "status-review": (status_comment, second_try),
    "status-hitl": (
        status_comment,
        lambda: case(red(1), red(2), red(3, "assert 1 == -3"), stage=Stage.HITL, reason=ALL_FAILED),
    ),
    "status-hitl-linked": (status_comment, escalated_with_a_link),
    "status-resolved": (
        status_comment,
        lambda: case(attempt(1), stage=Stage.RESOLVED, reason="The issue was closed."),
    ),
    "help-drafted": (help_wanted, drafted),
    "help-no-drafts": (help_wanted, no_drafts),
    "help-earlier-draft": (help_wanted, silent_after_a_draft),
    "draft": (draft_body, drafted),
    "draft-rejected": (draft_body, rejected),
    "status-drafted": (status_comment, in_hitl),
    "status-up-to-date": (status_comment, up_to_date),
    "status-paused": (status_comment, paused),
    "pull-request": (pull_request_body, second_try),
    "pull-request-timed": (pull_request_body, timed),
    "status-timed": (status_comment, timed),
    "draft-timed": (draft_body, lambda: drafted(timed().history[0], attempt(2), attempt(3))),
    "pull-request-marked-checks": (pull_request_body, marked_checks),
    "pull-request-tested-by-nothing": (pull_request_body, old_test_failure),
    "status-tested-by-nothing": (status_comment, old_test_failure),
    "status-without-set-up": (status_comment, lambda: without_set_up(Stage.READY)),
    "help-without-set-up": (help_wanted, lambda: without_set_up(Stage.RUNNING)),
    "help-set-up-of-change": (help_wanted, set_up_fails_on_change),
    "help-stuck-check": (help_wanted, stuck),
    "draft-stuck-check": (draft_body, stuck),
    "help-stuck-and-red": (help_wanted, stuck_and_red),
    "status-lost-checks": (status_comment, lost_checks),
    "pull-request-unverified": (pull_request_body, unverified),
    **{f"help-{name}": (help_wanted, told) for name, told in ESCALATIONS.items()},
}


def test_a_publication_that_fails_is_no_agent_at_work() -> None:
    found = published(attempt(1, Outcome.SUCCEEDED))
    status = replace(
        found.status,
        stage=Stage.RUNNING,
        phase=Phase.DECIDED,
        decision=OpenPullRequest(reason="Passed."),
        effects=Effects((PublicationDelayed(since=NOON, reason="GitHub is away."),)),
    )
    text = status_comment(replace(found, status=status))
    assert "The change is ready, and is not published yet." in text
    assert "and is repeated: GitHub is away." in text
    assert "agent is at work" not in text


def test_an_attempt_that_was_not_needed_any_more_is_not_in_the_pull_request() -> None:
    found = published(attempt(1, Outcome.SUCCEEDED))
    status = replace(found.status, decision=StandDown(reason="Approved.", keeps_pull=True))
    text = status_comment(replace(found, status=status))
    assert "succeeded, but its change is not in the pull request." in text


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_read_as_they_were_approved(name: str) -> None:
    word, told = MESSAGES[name]
    assert word(told()) + "\n" == (GOLDEN / f"{name}.md").read_text(encoding="utf-8")


def test_a_draft_is_told_by_its_title() -> None:
    assert draft_title(drafted()) == f"Not verified: {ISSUE.title}"


def test_no_golden_file_is_left_over() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == set(MESSAGES)


def test_commands_that_do_not_exist_are_not_promised() -> None:
    promised = re.compile(r"`(/mulligan [^`]*)`")
    for word, told in MESSAGES.values():
        for typed in promised.findall(word(told())):
            said = re.sub(r"<[^>]*>", "do it", typed).replace("[reason]", "it is old")
            found = parse(f"{said} do it" if said.endswith(":") else said)
            assert found, typed
            assert found.verb is not Verb.MISTYPED, typed


def test_markers_name_the_issue_and_the_epoch() -> None:
    named = f"<!-- mulligan:status octo/calc#12 by={case().status.instance} -->"
    assert status_marker(case()) == named
    assert status_comment(case()).startswith(named)


def test_the_status_comment_links_to_the_page_of_the_last_attempt() -> None:
    link = "[Details on the dashboard](https://bot.example/issues/octo/calc/12/attempts/2)"
    tried = case(attempt(1), attempt(2))
    assert link in status_comment(tried, dashboard="https://bot.example")
    assert "dashboard" not in status_comment(tried)
    assert "dashboard" not in status_comment(case(), dashboard="https://bot.example")


def test_a_review_without_a_successful_attempt_claims_none() -> None:
    found = second_try()
    left = replace(found, status=replace(found.status, outcome=None))
    assert "succeeded;" in status_comment(found)
    assert "succeeded;" not in status_comment(left)


@pytest.mark.parametrize("stage", [Stage.REVIEW, Stage.READY, Stage.RESOLVED, Stage.HITL])
def test_notes_about_the_pull_request_are_shown_by_topic(stage: Stage) -> None:
    found = case(attempt(1), stage=stage)
    effects = NO_EFFECTS.plus(PullNote(topic=Topic.TEXT, text="`a*b` is by @zoe *too*."))
    status = replace(found.status, effects=effects, asked_at="#13")
    assert "\n\n**Note:** `a*b` is by `@zoe` \\*too\\*." in status_comment(
        replace(found, status=status)
    )
    same = replace(status, reason="`a*b` is by @zoe *too*.")
    assert status_comment(replace(found, status=same)).count("`@zoe`") == 1
    none = replace(found.status, effects=effects.plus(PullNote(topic=Topic.TEXT, text="")))
    assert "a*b" not in status_comment(replace(found, status=none))


@pytest.mark.parametrize("text_of", [status_comment, pull_request_body, draft_body, help_wanted])
def test_the_link_to_a_comment_is_kept_and_no_other(
    text_of: Callable[[IssueContext], str],
) -> None:
    found = case(attempt(1), stage=Stage.REVIEW)
    link = f"{found.issue.url}#issuecomment-5"
    said = f"dep[bot] commented ({link}), not https://evil.org#issuecomment-5 of @zoe now."
    effects = NO_EFFECTS.plus(PullNote(topic=Topic.MEANWHILE, text=said))
    text = text_of(replace(found, status=replace(found.status, effects=effects)))
    shown = f"dep\\[bot\\] commented ({link}), not `https://evil.org#issuecomment-5` of `@zoe` now."
    assert text.count(shown) == 1


def order(verb: Verb) -> PendingCommand:
    return PendingCommand(CommentAct(9), verb, "", "ada", NOON, Stage.HITL)


def test_a_command_is_answered_under_its_own_marker() -> None:
    named = f"{reply_marker(ISSUE.ref, 'comment:9')}\n\n"
    assert reply_comment(case(), order(Verb.RETRY), "It is queued.") == f"{named}It is queued."
    mistyped = reply_comment(case(), order(Verb.MISTYPED), "There is no `/mulligan rety`.")
    assert mistyped == f"{named}There is no `/mulligan rety`.\n\n{USAGE}"
    told = reply_comment(second_try(), order(Verb.STATUS), "Replied with the status.")
    assert told.startswith(f"{named}**Mulligan asks for a review:")
    assert "Replied" not in told
    new = case(stage=Stage.READY)
    unasked = replace(new, status=replace(new.status, epoch=0))
    assert "Nobody has asked Mulligan" in reply_comment(unasked, order(Verb.STATUS), "")


def test_a_request_for_the_label_says_who_changed_the_text() -> None:
    told = label_comment(case(), LabelAct(77), "eve edited\nthe title of @zoe")
    assert told.startswith(f"{label_marker(ISSUE.ref, LabelAct(77))}\n\n")
    assert "the issue was edited.** eve edited the title of `@zoe`.\n\n" in told
    assert "remove the label `mulligan`" in told


def test_an_issue_of_another_installation_is_left_to_it() -> None:
    found = case(attempt(1), stage=Stage.RESOLVED, reason="See its pull request.")
    elsewhere = status_comment(replace(found, status=replace(found.status, elsewhere=True)))
    assert "**Another installation of Mulligan has this issue.**" in elsewhere
    assert "/mulligan retry" not in elsewhere
    assert "/mulligan retry" in status_comment(found)


def test_a_queued_issue_that_cannot_start_says_why() -> None:
    told = status_comment(case(stage=Stage.READY, reason="The disk is full."))
    assert "**Mulligan cannot start work yet.**" in told
    assert "The disk is full." in told


def test_a_pull_request_lists_the_notes_that_its_merge_accepts() -> None:
    noted = attempt(1, Outcome.SUCCEEDED).model_copy(update={"learned": ("Ask @zoe first.",)})
    own = pull_request_body(published(noted))
    assert "### Notes of the agent about this repository\n\n- Ask `@zoe` first." in own
    assert SHARED_NOTES not in own
    assert SHARED_NOTES in pull_request_body(replace(published(noted), learnings=()))
    assert "Notes of the agent" not in pull_request_body(second_try())


def test_a_pull_request_names_what_the_agent_wrote_beside_the_change() -> None:
    update = {"nested": (".worktrees/x", "`@zoe\n"), "leftovers": ("node_modules/",)}
    own = pull_request_body(published(attempt(1, Outcome.SUCCEEDED).model_copy(update=update)))
    assert (
        "Not part of the change (has its own git repository): `.worktrees/x`, `'@zoe`.\n"
        "Not part of the change (left behind by tools): `node_modules/`.\n" in own
    )


def test_a_draft_of_rejected_work_has_the_words_of_the_reviewer() -> None:
    found = rejected()
    last = found.history[-1].model_copy(update={"verifier_feedback": "The tax is wrong."})
    told = draft_body(replace(found, history=(*found.history[:-1], last)))
    assert "> The reviewer rejected the work, see @zoe.\n>\n> The tax is wrong." in told


def test_the_label_is_called_what_the_policy_calls_it() -> None:
    for word, told in MESSAGES.values():
        renamed = replace(told(), ready_label="please fix")
        assert "`mulligan`" not in word(renamed)


def test_only_the_last_attempts_of_a_long_history_are_listed() -> None:
    history = [attempt(number) for number in range(1, 24)]
    text = status_comment(case(*history))
    assert "3 earlier attempts not shown." in text
    assert "Attempt 3:" not in text
    assert "\n- **Attempt 4: Checks failed**" in text


def test_attempts_before_the_last_request_are_counted_only() -> None:
    old = attempt(1).model_copy(update={"epoch": 0})
    text = status_comment(case(old, attempt(1)))
    assert "Before the last command or label: 1 attempt." in text
    assert text.count("Checks failed") == 1


def test_deaths_beyond_the_limit_count() -> None:
    deaths = [attempt(number, Outcome.INTERRUPTED, "Mulligan died.") for number in (1, 2)]
    assert "not counted" in status_comment(replace(case(*deaths), counted=0))
    assert "not counted" not in status_comment(replace(case(*deaths), counted=1))


def test_a_list_of_attempts_needs_no_wide_table() -> None:
    """A table with a test's name is wider than a phone; a list wraps (STATUS-2)."""
    for text in (status_comment(case(red(1), red(2))), help_wanted(escalated(red(1), reason=""))):
        assert "\n| " not in text.replace(USAGE, "")
        assert text.count("test_adding_two_negative_numbers_gives_a_negative_one`: assert 3") >= 1
        assert "failed with exit code" not in text.rpartition("-->")[2]


def test_each_failing_check_is_named_by_its_first_failure() -> None:
    lint = red_check("lint").model_copy(
        update={
            "findings": (Finding(summary="a.py:3:1: F401 @zoe", message="F401 @zoe", file="a.py"),),
            "count": 4,
        }
    )
    both = red(1).model_copy(update={"checks": (*red(1).checks, lint)})
    text = status_comment(case(both))
    assert "gives_a_negative_one`: assert 3 == -3; `a.py`: F401 `@zoe` (and 3 more)" in text


def test_attempts_are_listed_once_on_an_issue_that_was_handed_over() -> None:
    found = escalated(red(1), reason="It failed.")
    ended = replace(found.status, stage=Stage.RESOLVED, asked_at="https://github.com/x#1")
    text = status_comment(replace(found, status=ended))
    assert "[Cause and attempts](https://github.com/x#1)" in text
    assert "Attempt 1" not in text


def for_a_review(found: IssueContext, start: int, counted: int) -> IssueContext:
    status = replace(found.status, review_start=start, attempt=len(found.history))
    return replace(found, status=status, counted=counted)


def test_attempts_for_a_review_are_counted_for_it() -> None:
    first = [red(1), attempt(2, Outcome.SUCCEEDED)]
    text = status_comment(for_a_review(case(*first), 2, 0))
    assert "attempt 1 of 3 for this review" in text
    assert "earlier attempts failed" not in text
    assert "- **Attempt" not in text
    again = status_comment(for_a_review(case(*first, red(3), red(4, "assert 1")), 2, 2))
    assert "attempt 3 of 3 for this review" in again
    assert "- **Attempt 1: Checks failed**" in again
    assert "Before the review: 2 attempts." in again
    done = for_a_review(published(*first, attempt(3, Outcome.SUCCEEDED)), 2, 1)
    for text in (status_comment(done), pull_request_body(done)):
        assert "Attempt 1 of 3 for this review succeeded; 1m35s, $0.21" in text


def made_by(meta: WorkerResultMeta, model: str = "", name: str = "") -> WorkerResultMeta:
    agent = AgentFacts(kind="claude", name=name, model=model, cost_usd=0.21)
    return meta.model_copy(update={"agent": agent})


def test_agent_and_model_are_named_once() -> None:
    opus = made_by(red(1), model="opus-4")
    good = made_by(attempt(2, Outcome.SUCCEEDED), model="opus-4")
    text = "Attempt 2 of 3 succeeded; 3m10s, $0.42, by `claude` with `opus-4`."
    assert text in status_comment(published(opus, good))
    assert text in pull_request_body(published(opus, good))
    assert status_comment(published(opus, good)).count("`claude`") == 1
    assert "\n\nAgent: `claude` with `opus-4`\n\n" in status_comment(case(opus))
    both = case(opus, made_by(red(2), name="careful"))
    assert "Agent: `claude` with `opus-4`, `careful`\n" in status_comment(both)
    assert "Agent:" not in status_comment(case(red(1)))
    hostile = made_by(red(1), model="`@zoe` fixes #3")
    assert "Agent: `claude` with `'@zoe' fixes #3`" in status_comment(case(hostile))


def test_costs_are_added_up_over_fix_rounds() -> None:
    fixed = FixRound(number=1, usage=AgentFacts(kind="command", cost_usd=0.3))
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"fix_rounds": (fixed,)})
    assert "$0.51" in pull_request_body(published(meta))


IMAGE = f"ghcr.io/octo/{'tools-' * 20}ci:22.04@sha256:{'5e' * 32}"


def test_a_pull_request_and_a_draft_name_the_image_of_the_checks() -> None:
    in_image, text = (
        {"image": IMAGE},
        f"Container image of the setup commands and checks: `{IMAGE}`",
    )
    good = attempt(1, Outcome.SUCCEEDED).model_copy(update=in_image)
    assert text in pull_request_body(published(good))
    bad = attempt(1).model_copy(update=in_image)
    assert text in draft_body(drafted(bad))
    assert text in draft_body(drafted(bad.model_copy(update={"checks": ()})))


def test_tokens_are_told_where_no_cost_is_known() -> None:
    used = AgentFacts(kind="command", input_tokens=12_000, output_tokens=345)
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"agent": used})
    assert "12,345 tokens" in pull_request_body(published(meta))


def test_an_agent_that_reports_nothing_costs_nothing_known() -> None:
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"agent": None})
    body = pull_request_body(published(meta))
    assert "$" not in body
    assert "token" not in body


def test_a_pull_request_without_an_attempt_on_record_still_closes_its_issue() -> None:
    assert pull_request_body(published()).startswith("Closes #12\n")


def test_a_long_summary_is_cut() -> None:
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(update={"agent_summary": "word " * 2000})
    assert "word…\n" in pull_request_body(published(meta))


def test_the_title_is_the_issues_and_closes_nothing() -> None:
    found = replace(published(attempt(1)), issue=replace(ISSUE, title="Fixes #3\nfor @ann"))
    assert pull_request_title(found) == "Fixes `#3` for `@ann`"
    named = attempt(1, Outcome.SUCCEEDED).model_copy(update={"title": "fix: sums for @ann"})
    assert pull_request_title(published(named)) == "fix: sums for `@ann`"
    unnamed = replace(found, issue=replace(ISSUE, title=" "))
    assert pull_request_title(unnamed) == "Work on octo/calc issue 12"


ATTACK = (
    "` @everyone fixes #3 closes octo/other#4 resolves https://github.com/octo/calc/issues/5 | "
    '![x](https://evil.example/x.png) <img src="https://evil.example"> </details> <!-- -- '
    "[click](https://evil.example) ``` ~~~ \u202e\x1b[31m ` @everyone ` fixes #6"
)


def poisoned() -> WorkerResultMeta:
    """Put the attack into every field that a repository, a tool or an agent fills."""
    check = red_check(name=ATTACK[:90], digest=f"```\n{ATTACK}\n````\n{ATTACK}")
    check = check.model_copy(update={"command": ATTACK})
    return attempt(1).model_copy(
        update={
            "error": ATTACK,
            "failure_reason": ATTACK,
            "agent_summary": f"# Done\n\n{ATTACK}\n\n```\n{ATTACK}",
            "checks": (check,),
            "guard_violations": broken_rules(ATTACK),
            "files_modified": (FileChange(path=ATTACK, status=ATTACK, insertions=1, deletions=0),),
        }
    )


@pytest.mark.parametrize("outcome", Outcome)
def test_text_of_others_cannot_do_anything(outcome: Outcome) -> None:
    meta = poisoned().model_copy(update={"outcome": outcome})
    told = escalated(meta, reason=ATTACK, fix=ATTACK)
    told = replace(
        told, observed=(Pattern(PatternKind.NAMES, ATTACK),), issue=replace(ISSUE, title=ATTACK)
    )
    shown = replace(told, status=replace(told.status, stage=Stage.HITL))
    for text in (
        escalation_comment(told, Escalation()),
        status_comment(shown),
        pull_request_body(told),
    ):
        harmless(text.replace("Closes #12", ""))


FOLD = "<details>\n<summary>All commands, attempts, output and files</summary>"


def harmless(text: str) -> None:
    """See to it that nothing outside code is a mention, a reference, a link, an image or HTML."""
    without_markers = re.sub(r"<!-- mulligan:[^\n]* -->", "", text)
    without_markers = without_markers.replace(FOLD, "").removesuffix("</details>")
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(without_markers)
    for token in (inner for outer in tokens for inner in (outer, *(outer.children or []))):
        assert token.type not in {"link_open", "image", "html_block", "html_inline"}, token
        if token.type == "text":
            shown = token.content.replace("comment on #12,", "").replace("here or on #12", "")
            assert not re.search(r"@\w|#\d|://", shown), shown
    assert "\x1b" not in text
    assert "\u202e" not in text


@given(
    st.text(max_size=1000),
    st.integers(min_value=1, max_value=25),
    st.sampled_from(["`", "@a ", "|", "x", "\n", "<!--", "\\", "*_"]),
)
def test_no_message_is_longer_than_github_takes(text: str, times: int, filler: str) -> None:
    meta = poisoned().model_copy(
        update={
            "error": text,
            "agent_summary": text + filler * 9000,
            "checks": tuple(red_check(digest=text + filler * 9000) for _ in range(times)),
            "files_modified": tuple(
                FileChange(path=text + filler * 300, status="M") for _ in range(times)
            ),
        }
    )
    told = escalated(*[meta] * times, reason=text + filler * 2000)
    told = replace(told, observed=(Pattern(PatternKind.NAMES, text),) * times)
    for word in (help_wanted, status_comment, pull_request_body):
        assert len(word(told)) <= MAX_BODY


def test_a_cut_falls_between_lines() -> None:
    text = body(*["`@everyone fixes #3`"] * 5000)
    assert text.endswith(f"\n\n{CUT}")
    assert MAX_BODY - 100 < len(text) <= MAX_BODY
    harmless(text)
