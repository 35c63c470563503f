"""What a retry is worth (SPEC 8): one scripted agent, one set of faults, four kinds of prompt.

Each fault is a case of the corpus: a failure planted in a small project, and what the real tool
said of it. The agent knows the answer to every fault, but mends one only when its prompt names what
it needs: place or test, and message, by the corpus's own fixed match, which no arm can see. What a
tool would say with some of its faults mended is not known, so a case is mended by a prompt that
names all it needs (of more than five findings, any five). Attempts see the same failure on another
day.

All arms get the same task before and the same instructions behind. Sizes are the bytes of what
stands between, as the median of all cases.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mulligan.checks.digest import digest
from mulligan.config.policy import Check, ContextLimits, Policy
from mulligan.domain.issue import Issue
from mulligan.domain.issue_context import IssueContext as IssueCase
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckKind, CheckResult, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.implement.prompt.context_sections import BYTES_PER_TOKEN, assemble
from mulligan.implement.prompt.prompt import PromptRequest, render_prompt
from mulligan.text.escape import fence
from world.digest_corpus import CorpusCase, cases, recall
from world.ledgers import ISSUES, completed

MOST = 3
"""The attempts of an issue (`max_issue_attempts`)."""
TAIL = 2000
LIMITS = ContextLimits()
BUDGET = LIMITS.max_context_tokens * BYTES_PER_TOKEN
ISSUE = Issue(ISSUES[0], "Make the checks pass", "Some checks of this repository fail. Mend them.")
COMMITTED_SHARE = 0.95
MOST_TOLD = 1.5
"""Committed: the size of Mulligan's context, in times of the last 2,000 characters."""

Arm = Callable[[Sequence[bytes], CorpusCase], str | None]
"""Makes the context of the next attempt from what the tool said after each attempt so far."""


def blind(_said: Sequence[bytes], _case: CorpusCase) -> str | None:
    return None


def last_characters(said: Sequence[bytes], _case: CorpusCase) -> str:
    return fence("the last attempt's check", said[-1].decode(errors="replace")[-TAIL:])


def raw_output(said: Sequence[bytes], _case: CorpusCase) -> str:
    """Give as much of the beginning as Mulligan's own budget holds."""
    return fence("the last attempt's check", said[-1][: BUDGET - 200].decode(errors="ignore"))


def mulligan(said: Sequence[bytes], case: CorpusCase) -> str:
    history = [_record(number, output, case) for number, output in enumerate(said, start=1)]
    status = IssueStatus(ISSUE.ref, epoch=1, attempt=len(history) + 1)
    known = IssueCase(ISSUE, status, tuple(history), MOST, counted=len(history))
    return assemble(known, LIMITS, b"").text


def _record(number: int, output: bytes, case: CorpusCase) -> WorkerResultMeta:
    found = digest(output, command=case.command, exit_code=case.exit_code, report=case.report)
    check = CheckResult(
        name="checks",
        kind=CheckKind.TEST,
        command=case.command,
        passed=False,
        exit_code=case.exit_code,
        digest=found.text,
        findings=found.findings,
        fingerprint=found.fingerprint,
    )
    meta = completed(ISSUE.ref, number, Outcome.CHECKS_FAILED).meta
    return meta.model_copy(update={"checks": (check,), "commits": 1})


ARMS: dict[str, Arm] = {
    "blind retry": blind,
    "last 2,000 characters": last_characters,
    "raw output, same budget": raw_output,
    "Mulligan": mulligan,
}


@dataclass(frozen=True)
class Lived:
    """How an issue ended, and the bytes that its retries were told, one number each."""

    mended: bool
    told: tuple[int, ...]


def live(case: CorpusCase, arm: Arm) -> Lived:
    """Let the agent try until the fault is mended, or no attempt is left."""
    policy = Policy(checks=(Check(name="checks", run=case.command),))
    said, told = list[bytes](), list[int]()
    for position in range(1, MOST + 1):
        context = arm(said, case) if said else None
        prompt = render_prompt(PromptRequest(ISSUE, policy, (position, MOST), context))
        if said:
            told.append(len((context or "").encode()))
        if agent_mends(prompt, case):
            return Lived(mended=True, told=tuple(told))
        said.append(case.output if position % 2 else case.again)
    return Lived(mended=False, told=tuple(told))


def agent_mends(prompt: str, case: CorpusCase) -> bool:
    """Tell whether the agent finds in its prompt what it needs for this fault."""
    return recall(case, prompt) == 1.0


def test_a_retry_that_knows_what_failed_mends_it() -> None:
    found = [case for case in cases() if recall(case, render_first(case)) < 1.0]
    tools = Counter(case.tool for case in found)
    report(f"{len(found)} faults, {len(tools)} tools")
    shares, sizes = dict[str, float](), dict[str, float]()
    for name, arm in ARMS.items():
        lives = [live(case, arm) for case in found]
        shares[name] = sum(each.mended for each in lives) / len(lives)
        sizes[name] = statistics.median(each.told[0] for each in lives)
        long = [each.mended for each, case in zip(lives, found, strict=True) if case.is_long]
        largest = max(max(each.told) for each in lives)
        report(
            name,
            f"mended {shares[name]:.3f}",
            f"of outputs over 2,000 characters {sum(long) / len(long):.3f}",
            f"median {sizes[name]:,.0f} bytes",
            f"largest {largest:,} bytes",
        )
    assert min(len(found) / 60, len(tools) / 8) >= 1
    assert shares["Mulligan"] >= COMMITTED_SHARE
    assert shares["Mulligan"] > max(share for name, share in shares.items() if name != "Mulligan")
    assert sizes["Mulligan"] <= MOST_TOLD * sizes["last 2,000 characters"]


def render_first(case: CorpusCase) -> str:
    """Write the first prompt, which must not give the answer away."""
    policy = Policy(checks=(Check(name="checks", run=case.command),))
    return render_prompt(PromptRequest(ISSUE, policy, (1, MOST), None))


def report(*cells: str) -> None:
    print("retry |", " | ".join(cells))  # noqa: T201 - what a benchmark is for
