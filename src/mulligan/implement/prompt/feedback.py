"""Describe failures and reviews for a prompt (CONTEXT-3). Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence

from mulligan.config.policy import ContextLimits
from mulligan.domain.events import FailedCheck, Remark
from mulligan.domain.feedback import Feedback
from mulligan.domain.outcome import FREE, Outcome, ZeroKind
from mulligan.domain.result import CheckResult, Finding, FixRound, WorkerResultMeta
from mulligan.implement.prompt.outcome_text import (
    WORK_IN_PLACE,
    check_title,
    duration_text,
    failing,
    last_activity,
    left_out,
    pluralize,
    verdict,
    zero_advice,
)
from mulligan.text.escape import Excerpt, fence, one_line, visible
from mulligan.text.visible import visible_text

# What reviewers, GitHub's checks and a conflict request.

ASKED = (
    "People who may ask for work have reviewed the pull request, and ask for these changes. Make "
    "every one of them:"
)

ON_GITHUB = (
    "The checks that GitHub runs on the pull request have failed. Fix what they name in the "
    "change; where it is not the change's doing, report NOTHING_TO_DO and say why:"
)

CONFLICT = (
    "The base branch has moved, and the pull request does not merge into it any more, because of "
    "the files below. Make its change again on the base branch as it is now, keeping both:"
)


def asked_for(feedback: Feedback, remarks: Excerpt, on_github: Excerpt) -> str:
    """Return the requests to the agent; the excerpts are already cut to their limits."""
    parts = [f"{ASKED}\n{fence('the review', str(remarks))}"] if feedback.remarks else []
    if feedback.checks:
        parts.append(f"{ON_GITHUB}\n{fence('checks on GitHub', str(on_github))}")
    if feedback.conflict:
        parts.append(f"{CONFLICT}\n{fence('git', one_line(feedback.conflict, 2000))}")
    return "\n\n".join(parts)


REMARK_CHARS = 1500

CODE_LINES = 12

PLACE_CHARS = 200


def remarks_of(feedback: Feedback) -> Excerpt:
    """Return all remarks, line by line."""
    return Excerpt.of("\n\n".join(_remark(remark) for remark in feedback.remarks))


def _remark(remark: Remark) -> str:
    place = one_line(remark.path, PLACE_CHARS)
    at = f" on {place}:{remark.line}" if remark.line else f" on {place}" if place else ""
    at += " (a deleted line)" if remark.line and remark.side == "LEFT" else ""
    body = str(Excerpt.of(visible_text(remark.body).text).within(REMARK_CHARS))
    lines = [f"{one_line(remark.author, 100)}{at}:", body]
    if remark.code:
        kept = remark.code.split("\n")[-CODE_LINES:]
        lines += ["The code that this is about, the line itself last:", *kept]
    return "\n".join(lines)


def on_github_of(feedback: Feedback, limits: ContextLimits) -> Excerpt:
    """Return the names and outputs of the checks that failed on GitHub."""
    return Excerpt.of("\n\n".join(_failed(check, limits) for check in feedback.checks))


def _failed(check: FailedCheck, limits: ContextLimits) -> str:
    shown = str(window_of(check, limits)).splitlines()
    return "\n".join([f"{one_line(check.name, PLACE_CHARS)} failed.", *shown])


def window_of(check: CheckResult | FailedCheck, limits: ContextLimits) -> Excerpt:
    """Return what the next agent is given of a failed check, within its limits."""
    if not limits.include_check_output:
        return Excerpt()
    digest = Excerpt.of(check.long_digest or check.digest).within(limits.max_digest_chars)
    return digest.both_ends(limits.max_check_output_lines)


# How an earlier attempt failed.

OWN_WORDS = frozenset(
    {
        Outcome.CHECKS_FAILED,
        Outcome.ZERO_COMMIT,
        Outcome.ZERO_DIFF,
        Outcome.AGENT_CRASHED,
        Outcome.AGENT_TIMED_OUT,
        Outcome.REJECTED,
    }
)
"""Outcomes whose error line is Mulligan's own, so that it needs no fence."""

QUOTED = frozenset(
    {ZeroKind.ASKED, ZeroKind.NESTED, ZeroKind.NOT_CHECKED_OUT, ZeroKind.ONLY_IGNORED}
)
"""Kinds of empty changes whose error line quotes the agent."""


def what_went_wrong(
    detailed: WorkerResultMeta, name: str, later: Sequence[WorkerResultMeta], words: int
) -> str:
    """Return outcome, error, commits and duration; at most `words` characters are untrusted."""
    took = (
        f"after {duration_text(detailed.duration_ms)}, with {pluralize(detailed.commits, 'commit')}"
    )
    changed = pluralize(len(detailed.files_modified), "changed file")
    lines = [f"{name} ended {detailed.outcome} {took} and {changed}."]
    lines += [_fix_round(fix) for fix in detailed.fix_rounds]
    if detailed.outcome in FREE:
        lines.append("That was not your doing: work as if it had not happened.")
    lines += [*_error(detailed, words), *_left_out(detailed, words)]
    counts = Counter(meta.outcome for meta in later if meta.outcome in FREE)
    lines += [
        f"Later, {pluralize(n, 'attempt')} ended {o}: not your doing." for o, n in counts.items()
    ]
    empty = [meta for meta in later if meta.outcome not in FREE]
    if empty:
        lines.append(
            f"Since then, {pluralize(len(empty), 'attempt')} left no change; the last ended "
            f"{empty[-1].outcome}."
        )
        lines += [*_error(empty[-1], words), _advice(empty[-1]) if words else ""]
    lines += _last_words((empty or [detailed])[-1], words)
    return "\n".join(line for line in lines if line)


SUMMARY_CHARS = 500


def _last_words(meta: WorkerResultMeta, words: int) -> list[str]:
    """Quote the agent's last message, unless the error line has it."""
    summary = one_line(meta.agent_summary, min(words, SUMMARY_CHARS)) if words else ""
    if not summary or summary in one_line(meta.error, len(meta.error) + 1):
        return []
    return [fence("the agent's last words", summary)]


def _left_out(meta: WorkerResultMeta, words: int) -> Iterator[str]:
    """Name what was not part of the change, unless the error line does."""
    if not words or meta.zero_kind is not None:
        return
    for why, paths in left_out(meta):
        yield f"{why}:\n{fence('the worktree', one_line(', '.join(paths), words))}"
    if meta.nested:
        yield WORK_IN_PLACE


def _fix_round(fix: FixRound) -> str:
    failed = " ".join(verdict(check) for check in failing(fix.checks))
    return f"After fix round {fix.number}: {failed or 'no check failed.'}"


def _error(detailed: WorkerResultMeta, words: int) -> list[str]:
    if not words or not detailed.error:
        return []
    error = one_line(detailed.error, words)
    own = detailed.outcome in OWN_WORDS and detailed.zero_kind not in QUOTED
    lines = [error if own else fence("the attempt's record", error)]
    if detailed.outcome in {Outcome.AGENT_TIMED_OUT, Outcome.AGENT_CRASHED}:
        activity = last_activity(detailed.agent.last_activity if detailed.agent else None)
        lines.append(fence("the agent's output", one_line(activity, words)))
    return lines


# What to do about it.

NOT_ALLOWED = "These changes are not allowed; make the change without them:"

ADVICE = {
    Outcome.AGENT_TIMED_OUT: (
        "The same limit holds again. Make the change early, and run nothing that waits for input "
        "or does not end."
    ),
    Outcome.BLOCKED: "A person has asked for the work again since; look for an answer above.",
    Outcome.NOTHING_TO_DO: "A person has asked for the work again since; look for the reason.",
    Outcome.SUCCEEDED: "The attempt succeeded, and the work has been requested again since.",
}
"""The next step for outcomes without a failed check and without a kind of empty change."""

UNKNOWN_KIND = {Outcome.ZERO_COMMIT: ZeroKind.NOTHING, Outcome.ZERO_DIFF: ZeroKind.UNDONE}
"""The kind for a record without one."""


def actionable(
    detailed: WorkerResultMeta,
    shown: Sequence[tuple[Excerpt, Excerpt]],
    names: int,
    violations: Excerpt,
    told: str,
) -> str:
    """Describe the failures: output and code of the first checks, then `names` by name only.

    `told` is the text above, whose verdicts are not repeated.
    """
    failed = failing(detailed.checks)
    blocks = [
        check_block(check, window, code, told)
        for check, (window, code) in zip(failed, shown, strict=False)
    ]
    by_name = tuple(f"- {verdict(check)}" for check in failed[len(shown) :])
    blocks.append(str(Excerpt(by_name).head(names)))
    if violations.lines:
        blocks.append(f"{NOT_ALLOWED}\n{fence('the guards', str(violations))}")
    blocks.append(_advice(detailed))
    return "\n\n".join(block for block in blocks if block)


def _advice(detailed: WorkerResultMeta) -> str:
    kind = detailed.zero_kind or UNKNOWN_KIND.get(detailed.outcome)
    if detailed.outcome in ADVICE or kind is None:
        return ADVICE.get(detailed.outcome, "")
    return zero_advice(kind)


CODE = "The code around these places, as it was when the check ran:"


def check_block(check: CheckResult, window: Excerpt, code: Excerpt, told: str = "") -> str:
    """Describe one failing check: name, verdict if not `told`, output, and its code (CONTEXT-2)."""
    shown = str(window)
    first = "" if holds_first_finding(shown, check) else first_finding(check)
    body = "\n".join(part for part in (first, shown) if part)
    source = f"check '{check.name}'"
    printed = fence(source, body) if body else "It printed nothing."
    around = f"\n{CODE}\n{fence('the code of that change', str(code))}" if code.lines else ""
    heading = check_title(check) if verdict(check) in told else verdict(check)
    return f"### {heading}\n{printed}{around}"


FINDING_CHARS = 200
SAME_START = 20
"""The characters of a message that continue a shortened summary."""


def first_finding(check: CheckResult) -> str:
    """Return a check's first finding in one line; empty if it has none."""
    if not check.findings:
        return one_line(_first_line(check.digest), FINDING_CHARS)
    found = check.findings[0]
    summary, message = one_line(found.summary, FINDING_CHARS), _first_line(found.message)
    cut = summary.find(message[:SAME_START]) if summary.endswith("…") else -1
    if message in summary:
        parts = [summary]
    elif cut >= 0:
        parts = [one_line(summary[:cut] + message, FINDING_CHARS)]
    else:
        parts = [summary, one_line(message, FINDING_CHARS)]
    if found.test_id and found.test_id not in summary:
        parts.insert(0, one_line(found.test_id, FINDING_CHARS))
    if _place(found) not in " ".join(parts):
        parts.append(one_line(_place(found), FINDING_CHARS))
    return " - ".join(part for part in parts if part)


def holds_first_finding(text: str, check: CheckResult) -> bool:
    """Return whether a text contains a check's first finding."""
    if first_finding(check) in text:
        return True
    if not check.findings:
        return _first_line(check.digest) in text
    found = check.findings[0]
    names = (found.test_id or "", _place(found), _first_line(found.message))
    return bool(names[-1]) and all(name in text for name in names)


def _place(found: Finding) -> str:
    """Return file and line, as far as known."""
    if not found.file:
        return ""
    return found.file if found.line is None else f"{found.file}:{found.line}"


def _first_line(text: str) -> str:
    return visible(text).strip().partition("\n")[0].strip()


def other_checks(detailed: WorkerResultMeta) -> list[str]:
    """List, in one line each, the checks that passed or failed without failing the attempt."""
    groups = {
        "Passed": [check.name for check in detailed.checks if check.passed],
        "Fails without your change as well, and does not count": [
            check.name for check in detailed.checks if check.preexisting
        ],
        "Failed, but not required": [
            check.name for check in detailed.checks if not check.passed and not check.required
        ],
        "Not run, because the change touches none of their paths": [
            check.name for check in detailed.skipped_checks
        ],
    }
    return [
        f"{group}: {', '.join(one_line(name, 100) for name in names)}."
        for group, names in groups.items()
        if names
    ]
