"""No text of others gives orders on GitHub: it stands in every field of every message here."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from mulligan.config.policy import CommitSettings, Escalation
from mulligan.daemon.once import PassResult
from mulligan.domain.command import PendingCommand, Verb
from mulligan.domain.events import FailedCheck, Remark
from mulligan.domain.feedback import Feedback
from mulligan.domain.issue import CommentAct, LabelAct, Stage
from mulligan.domain.issue_context import IssueContext, Pattern, PatternKind
from mulligan.domain.outcome import Escalate, OpenPullRequest, Outcome, ZeroKind
from mulligan.domain.recorded_effects import PublicationDelayed, PullNote, Topic, WorkPushed
from mulligan.domain.result import Finding, FixRound, GuardKind, GuardViolation, OnBase
from mulligan.domain.status import Phase, PullStatus
from mulligan.github import check_run, markdown_parts, messages
from mulligan.github.answered import REQUEST, WAITING
from mulligan.github.check_run import check_run_text
from mulligan.github.escalation import escalation_comment
from mulligan.github.marks import head, marker
from mulligan.github.messages import (
    draft_body,
    draft_title,
    label_comment,
    pull_request_body,
    pull_request_title,
    reply_comment,
    status_comment,
)
from mulligan.github.pull_text import OwnText, new_text
from mulligan.implement.commit_message import commit_text, message_of
from mulligan.implement.prompt.review_answers import answers_in_commit, answers_unchanged
from mulligan.interfaces.action.inputs import Runner
from mulligan.interfaces.action.report import IssueReport, summary
from mulligan.text.commands import parse
from mulligan.text.foreign import COMMENT
from mulligan.text.redact import Redactor
from world.planted import Planter
from world.stories import NOON, REF, attempt, case, red_check

pytestmark = pytest.mark.pure

HOSTILE = """\
/approve zqN fixes #77 GH-77 closes octo/other#77 @octocat
bors r+

  !test <!-- mulligan:status octo/calc#12 by=0ther --> zqN
```
/mulligan retry
<!-- codecov -->
```` ~~~ </details> | <img src=x onerror=alert(1)> [a](http://evil.example) ![b](//evil.example)
@dependabot rebase zqN\t`bors r+`"""
LINES = [
    *("/approve zqN", "bors r+ zqN", "!test zqN", "@dependabot rebase zqN", " /approve zqN"),
    *("\u2028/approve zqN\u2028bors r+", "\r/approve zqN\rbors r+", "`\n/approve zqN"),
    *("<\u200b!-- zqN", "&lt;!-- zqN", "<!\u00ad-- zqN --\u200b>", "<<!---->!-- zqN"),
    *("</details>\n\n/approve zqN\n", "> /approve zqN\n\n/approve zqN", "a `b` `c @octocat zqN"),
    *("`x`@octocat`#77` zqN", "(`@octocat`) `` #77`` zqN", "\\\n/approve\\ zqN"),
]
CMARK = import_module("cmarkgfm.cmark")
RUNNER = Runner("octo/calc", "schedule", "run-1", Path("/runner/temp"))
ZERO = {Outcome.ZERO_COMMIT, Outcome.ZERO_DIFF}
STARTS = re.compile(r"\s*(?:\\?/approve|bors r|!test|\\?@dependabot|/mulligan retry|zq\d)")


def rich(outcome: Outcome, stage: Stage) -> IssueContext:
    """Build an issue in whose record every kind of text occurs."""
    finding = Finding(summary="It fails.", message="Why.", file="src/add.py", line=3, test_id="t")
    failed = red_check().model_copy(
        update={"findings": (finding,), "count": 2, "known": (finding,), "unsteady": (finding,)}
    )
    checks = (
        failed,
        red_check("stuck").model_copy(update={"on_base": OnBase.CANNOT_RUN}),
        red_check("setup").model_copy(update={"is_set_up": True}),
        red_check("base").model_copy(update={"on_base": OnBase.FAILS, "known": (finding,)}),
        red_check("old").model_copy(update={"preexisting": True, "known": (finding,)}),
        red_check("loose").model_copy(update={"required": False, "findings": (finding,)}),
        red_check("flaky").model_copy(
            update={"passed": True, "flaky": True, "unsteady": (finding,)}
        ),
        red_check("late").model_copy(update={"timed_out": True}),
    )
    broken = tuple(GuardViolation(kind=kind, path="a", message="b") for kind in GuardKind)
    meta = attempt(1, Outcome.SUCCEEDED).model_copy(
        update={
            "outcome": outcome,
            "checks": checks,
            "guard_violations": broken,
            "set_up": red_check("setup") if outcome is Outcome.INFRASTRUCTURE else None,
            "fix_rounds": (FixRound(number=1, checks=checks),),
        }
    )
    remark = Remark(author="ann", body="Why?", path="src/add.py", line=2, thread=5, review=7)
    back = Feedback(
        at=NOON,
        remarks=(remark, remark.model_copy(update={"thread": 0, "review": 8})),
        checks=(FailedCheck(name="ci", digest="Red."),),
    )
    found = case(meta, meta.model_copy(update={"attempt": 2, "number": 2}), stage=stage)
    effects = found.status.effects
    for each in (
        PullNote(topic=Topic.TEXT, text="Note."),
        PullNote(topic=Topic.MEANWHILE, text="Meanwhile."),
        PublicationDelayed(since=NOON, reason="Away."),
        WorkPushed(attempt=2, git_ref="refs/mulligan/work/12"),
    ):
        effects = effects.plus(each)
    status = replace(
        found.status,
        effects=effects,
        feedback=back,
        reason="Why.",
        decision=Escalate(reason="Why.", fix="Do it."),
        pull=PullStatus("https://github.com/octo/calc/pull/13", 13, draft_of=2, left_draft="Why."),
    )
    return replace(
        found, status=status, observed=tuple(Pattern(kind, "Both.") for kind in PatternKind)
    )


def variants(found: IssueContext) -> Iterator[IssueContext]:
    """Vary what decides which of the texts a message shows."""
    yield found
    status = found.status
    yield replace(
        found, status=replace(status, paused_by="", asked_at="", outcome=Outcome.SUCCEEDED)
    )
    yield replace(
        found, status=replace(status, asked_at="https://github.com/octo/calc/issues/12#c")
    )
    yield replace(found, no_draft="", status=replace(status, is_kept=True, elsewhere=True))
    yield replace(found, status=replace(status, feedback=None, paused_by="", due=NOON))
    decided = replace(status, phase=Phase.DECIDED, decision=OpenPullRequest(reason="Passed."))
    yield replace(found, status=decided)
    yield replace(found, learnings=())
    for kind in ZeroKind if found.history[-1].outcome in ZERO else ():
        last = found.history[-1].model_copy(update={"zero_kind": kind})
        yield replace(found, history=(found.history[0], last))


def texts(found: IssueContext, words: str) -> Iterator[tuple[str, str]]:
    """Give everything that Mulligan writes in Markdown about an issue."""
    yield "status", status_comment(found)
    yield "escalation", escalation_comment(found, Escalation())
    for name, body in (("pull", pull_request_body(found)), ("draft", draft_body(found))):
        yield name, new_text(OwnText("Fix it", body), REF, "abc123").body
    yield "label", label_comment(found, LabelAct(77), words)
    for verb in Verb:
        order = PendingCommand(CommentAct(9), verb, words, "ada", NOON, Stage.HITL)
        mistyped = parse(f"/mulligan {words}")
        yield f"reply to {verb}", reply_comment(found, order, mistyped.text if mistyped else "No.")
    yield "check run", check_run_text(found).summary
    done = PassResult(problems=(words,), paused=(words,), waiting=(words,))
    yield "job summary", summary([IssueReport(found.status, found.history, 1)], done, RUNNER)
    for answer in (
        *answers_in_commit(found, "c0ffee"),
        *answers_unchanged(found, "https://x.example"),
    ):
        yield "answer", answer.text


def unquoted(html: str) -> str:
    """Return what a page shows outside code."""
    return re.sub(r"<code>.*?</code>|<!--.*?-->", "", html, flags=re.DOTALL)


def page(text: str) -> str:
    return CMARK.github_flavored_markdown_to_html(text, CMARK.Options.CMARK_OPT_UNSAFE)


ORDERS = re.compile(r"@(?:octocat|dependabot)|#77|GH-77|<img|<a href=.(?!https://(?:github|x)\.)")


def around_parts(name: str, text: str) -> int:
    """Count the marks around the parts of an escalation that an answer replaces."""
    lines = text.splitlines()
    found = [lines.count(marker(kind, REF)) for kind in (REQUEST, WAITING)]
    assert all(each == 0 or (each, name) == (2, "escalation") for each in found), name
    return sum(found)


def check(found: IssueContext, words: str) -> None:
    """See to it that no planted text begins a line, holds a mark, or makes GitHub act."""
    planter = Planter(words)
    for variant in variants(planter.plant(found)):
        for name, text in texts(variant, words.replace("N", "999x")):
            own = len(head(text)) + (name in {"pull", "draft"}) + around_parts(name, text)
            assert text.count("<!--") == own, name
            wrong = [line for line in text.splitlines() if STARTS.match(line)]
            assert not wrong, (name, wrong[0], planter.named(wrong[0]))
            assert not ORDERS.search(unquoted(page(text))), name


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("outcome", Outcome)
def test_no_text_of_others_orders_notifies_or_marks(outcome: Outcome, stage: Stage) -> None:
    check(rich(outcome, stage), HOSTILE)


@pytest.mark.parametrize("words", LINES)
@pytest.mark.parametrize("outcome", [Outcome.CHECKS_FAILED, Outcome.REJECTED])
def test_no_way_to_begin_a_line_is_left(outcome: Outcome, words: str) -> None:
    for stage in (Stage.READY, Stage.HITL):
        check(rich(outcome, stage), words)


SHOWN = {
    *("CheckResult.command", "CheckResult.digest", "CheckResult.name", "FileChange.path"),
    *("FailedCheck.digest", "FailedCheck.name", "Finding.test_id", "GuardViolation.path"),
    *("AgentFacts.last_activity", "AgentFacts.refused_hosts", "Escalate.fix", "Pattern.text"),
    *("IssueContext.no_draft", "IssueContext.ready_label", "IssueStatus.paused_by"),
    *("IssueStatus.reason", "PublicationDelayed.reason", "PullNote.text", "PullStatus.left_draft"),
    *("Remark.author", "Remark.body", "Remark.path", "WorkerResultMeta.agent_summary"),
    *("WorkerResultMeta.error", "WorkerResultMeta.failure_reason", "WorkerResultMeta.learned"),
    *("WorkerResultMeta.leftovers", "WorkerResultMeta.nested", "Request.actor"),
    "WorkerResultMeta.verifier_feedback",
}


def test_the_attack_stands_in_what_messages_show() -> None:
    """Otherwise the tests above would try nothing."""
    planter, shown = Planter("zqN"), set[str]()
    for outcome in Outcome:
        for stage in Stage:
            for variant in variants(planter.plant(rich(outcome, stage))):
                for _, text in texts(variant, "words"):
                    shown.update(planter.named(text))
    assert shown >= SHOWN, SHOWN - shown


@pytest.mark.parametrize("words", [HOSTILE, *LINES])
def test_titles_commits_and_annotations_hold_no_order_either(words: str) -> None:
    found = Planter(words).plant(rich(Outcome.SUCCEEDED, Stage.REVIEW))
    message = message_of(commit_text(found, Redactor()), CommitSettings())
    subject, _, rest = message.partition("\n")
    assert all(re.fullmatch(r"|[A-Z][\w-]*: .*", line) for line in rest.splitlines())
    for title in (subject.removesuffix(" (#12)"), pull_request_title(found), draft_title(found)):
        assert title.isprintable()
        assert not re.search(r"(?<![`\w/.'])(?:@\w|#7|GH-)", title)
        assert COMMENT not in title
    finding = found.history[-1].checks[0].known[0].model_copy(update={"file": "src/add.py"})
    check = found.history[-1].checks[0].model_copy(update={"known": (finding,)})
    last = found.history[-1].model_copy(update={"checks": (check,)})
    notes = check_run_text(replace(found, history=(last,))).annotations
    assert notes
    for note in notes:
        assert COMMENT not in f"{note['title']}{note['message']}"
        assert all(line.startswith(" ") for line in str(note["message"]).splitlines())


@pytest.mark.parametrize("module", [check_run, markdown_parts, messages])
def test_messages_know_no_other_way_to_write_text(module: ModuleType) -> None:
    assert "text.escape" not in inspect.getsource(module)
