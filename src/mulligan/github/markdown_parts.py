"""Markdown that comments and pull requests share: tables, sums, lines. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.recorded_effects import Topic
from mulligan.domain.result import (
    AgentFacts,
    CheckResult,
    FileChange,
    Finding,
    SkippedCheck,
    WorkerResultMeta,
)
from mulligan.domain.spending import Spent, spending_text, spent_by
from mulligan.domain.verification import Verification
from mulligan.implement.prompt.outcome_text import (
    MESSAGE_CHARS,
    NOT_RUN,
    Failure,
    duration_text,
    named_failures,
    pluralize,
    times_text,
    title_of,
    took_text,
    verification_doubt,
    verification_text,
)
from mulligan.text.foreign import code, note, phrase, table_cell

MAX_BODY = 60_000
"""Limit of a comment or pull request in characters; GitHub accepts 65,536."""

CHANGES = {"A": "added", "D": "deleted", "R": "renamed", "C": "copied"}
"""Words for git's letters for a changed file, except for a plain modification."""

BEFORE = "also fails on the base branch, so this change is not the cause"
FLAKY = "is flaky: it failed once and passed once on the same tree"

MAX_ROWS = 20
NAME_CHARS = 60
OWN_PROGRAM = "command"
"""The kind of an agent that is the operator's own program; its name says more."""
MAX_NAMED_FINDINGS = 10
USAGE = """\
| comment | effect |
|---|---|
| `/mulligan retry` | starts new attempts |
| `/mulligan fix: <what to do>` | starts new attempts that follow your instruction |
| `/mulligan skip [reason]` | stops the work |
| `/mulligan abort` | stops the running attempt and keeps its work |
| `/mulligan pause`, `/mulligan resume` | no new attempt until you resume |
| `/mulligan status` | replies with the status |"""

CUT = "[… cut: GitHub does not accept a longer text]"


def body(*parts: str) -> str:
    """Join paragraphs, without empty ones; cut between lines, so that no markup breaks."""
    text = "\n\n".join(part for part in parts if part)
    if len(text) <= MAX_BODY:
        return text
    whole_lines = text[: MAX_BODY - len(CUT) - 2].rpartition("\n")[0]
    return f"{whole_lines}\n\n{CUT}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the cells are Markdown already."""
    lines = (head, ["---"] * len(head), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def attempts_list(case: IssueContext) -> str:
    """List the attempts of the round; a list fits a phone, where a table does not (STATUS-2)."""
    history, start = case.round_history, case.status.review_start
    hidden = max(0, len(history) - MAX_ROWS)
    before = len(case.history) - len(history)
    since = "the last command or label" if start is None else "the review"
    notes = [
        *([f"{pluralize(hidden, 'earlier attempt')} not shown."] if hidden else []),
        *([f"Before {since}: {pluralize(before, 'attempt')}."] if before else []),
    ]
    free, shown = _free(case), dict[str, int]()
    rows = [_row(meta, meta.attempt - (start or 0), free, shown) for meta in history[-MAX_ROWS:]]
    return body("\n".join(rows), " ".join(notes)) if history else ""


def _row(
    meta: WorkerResultMeta, number: int, free: frozenset[Outcome], shown: dict[str, int]
) -> str:
    """Return a list item; a reason that an earlier one in `shown` has is not repeated."""
    reason = _failures(meta) or phrase(meta.error, 200)
    first = shown.setdefault(reason, number)
    same = f"The same as in attempt {first}." if first != number else reason
    facts = [
        duration_text(meta.duration_ms),
        _cost([meta]),
        "not counted" if meta.outcome in free else "",
    ]
    about = ", ".join(fact for fact in facts if fact)
    head = f"- **Attempt {number}: {title_of(meta)}** ({about})"
    return f"{head}. {same}" if reason else f"{head}."


def _failures(meta: WorkerResultMeta) -> str:
    """Name the first failure of each failing check; empty if none is known by name."""
    return "; ".join(map(failure_text, named_failures(meta)))


def failure_text(failure: Failure) -> str:
    """Name a failure, with its message and the number of others in its check."""
    parts = (code(failure.name, 150), phrase(failure.message, MESSAGE_CHARS))
    more = f" (and {failure.more} more)" if failure.more else ""
    return f"{': '.join(part for part in parts if part)}{more}"


def _free(case: IssueContext) -> frozenset[Outcome]:
    """Return the outcomes that cost no attempt; too many interruptions do count (OUTCOME-4)."""
    return FREE if case.counted <= _counted_attempts(case) else FREE - {Outcome.INTERRUPTED}


def _counted_attempts(case: IssueContext) -> int:
    return sum(meta.outcome not in FREE for meta in case.round_history)


def attempts_used(case: IssueContext) -> str:
    """Return how many attempts are used, out of how many, and whether a review counts them."""
    return out_of(max(case.counted, _counted_attempts(case)), case)


def out_of(number: int, case: IssueContext) -> str:
    """Return the number of an attempt, out of how many: `1 of 3 for this review`."""
    whose = "" if case.status.review_start is None else " for this review"
    return f"{number} of {case.max_attempts}{whose}"


def spending_line(case: IssueContext) -> str:
    """Return the duration and cost of the round's attempts, and who made them."""
    history = case.round_history
    if not history:
        return "nothing"
    took = duration_text(sum(meta.duration_ms for meta in history))
    agents = agents_text(history)
    return ", ".join(filter(None, [took, _cost(history), agents and f"by {agents}"]))


def agents_text(history: Iterable[WorkerResultMeta]) -> str:
    """Name the agents of attempts with their models, each once; empty if none is known."""
    named = (_agent_text(meta.agent) for meta in history if meta.agent)
    return ", ".join(dict.fromkeys(filter(None, named)))


def _agent_text(agent: AgentFacts) -> str:
    name = agent.name or ("" if agent.kind == OWN_PROGRAM else agent.kind)
    model = code(agent.model or "", NAME_CHARS)
    return " with ".join(part for part in (code(name, NAME_CHARS), model) if part)


def times_line(case: IssueContext) -> str:
    """Return the time of the round and its parts, as a sentence; empty if it is not recorded."""
    text = times_text(case.round_history)
    return f"{text}." if text else ""


def _cost(history: Iterable[WorkerResultMeta]) -> str:
    """Return the sum that agents reported: dollars, else tokens, else nothing."""
    spent = spent_by(history)
    return spending_text(spent if spent.usd is None else Spent(spent.usd))


def verification(meta: WorkerResultMeta | None) -> str:
    """Say which checks passed on an attempt's change, with a doubt about it in bold."""
    if meta is None:
        return ""
    found = Verification.of(meta)
    text, doubt = verification_text(found, _check_name), verification_doubt(found)
    return text.replace(doubt, f"**{doubt}**", 1) if doubt else text


def image_line(meta: WorkerResultMeta | None) -> str:
    """Name the image in which setup commands and checks ran; empty if they ran in none."""
    named = meta.image if meta else ""
    return f"Container image of the setup commands and checks: {code(named, 400)}" if named else ""


def _check_name(name: str) -> str:
    return code(name, 100)


def baseline_and_flaky_notes(meta: WorkerResultMeta | None) -> str:
    """Return each check's failures before the change, its flaky tests, and the files it changed."""
    checks = meta.checks if meta else ()
    lines = [
        f"- {code(check.name)} {of}: {_named(findings)}"
        for check in checks
        for of, findings in ((BEFORE, check.known), (FLAKY, check.unsteady))
        if findings
    ]
    lines += [f"- {code(check.name)} {_changed(check)}" for check in checks if check.changed]
    return "\n".join(lines)


def _changed(check: CheckResult) -> str:
    """Say that a check changed the files that it judged (CHECK-2)."""
    names = [code(path, 150) for path in check.changed[:MAX_NAMED_FINDINGS]]
    more = len(check.changed) - len(names)
    listed = ", ".join([*names, "and more"] if more else names)
    return f"changed tracked files while it ran: {listed}. Its verdict is about these changes too."


def _named(findings: Sequence[Finding]) -> str:
    names = [code(found.name, 150) for found in findings[:MAX_NAMED_FINDINGS]]
    more = len(findings) - MAX_NAMED_FINDINGS
    return ", ".join([*names, f"(+ {more} more)"] if more > 0 else names)


def checks_table(meta: WorkerResultMeta | None) -> str:
    """Return a table of an attempt's checks, one row each; empty if it has none (PR-1)."""
    if meta is None or not (meta.checks or meta.skipped_checks):
        return ""
    ran = (_check_row(each, _verdict(each), took_text(each)) for each in meta.checks)
    skipped = (_check_row(each, NOT_RUN, "–") for each in meta.skipped_checks)
    return table(("Check", "Result", "Command", "Took"), (*ran, *skipped))


def _check_row(check: CheckResult | SkippedCheck, verdict: str, took: str) -> tuple[str, ...]:
    command = code(check.command, 80).replace("|", "\\|") if check.command else "–"
    return table_cell(check.name, 100), verdict, command, took


def _verdict(check: CheckResult) -> str:
    if check.flaky:
        return "passed, flaky: it failed first, then passed"
    if check.passed:
        return "passed"
    if check.preexisting:
        return "fails on the base branch too (pre-existing)"
    how = "timed out" if check.timed_out else "failed"
    if check.is_broken:
        return f"{how}, on the base branch too"
    return how if check.required else f"{how}, not required"


def moment(at: datetime) -> str:
    """Format a time to the minute, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def missed_line(case: IssueContext) -> str:
    """Say what the work does not take into account; empty if nothing (PR-9)."""
    return noted(case, case.status.effects.pull_note(Topic.MEANWHILE))


def noted(case: IssueContext, text: str) -> str:
    """Format a note for people; empty stays empty."""
    return f"**Note:** {note(text, case.issue.url)}" if text else ""


def file_line(file: FileChange) -> str:
    """Format a changed file as a list item."""
    how = CHANGES.get(file.status[:1].upper(), "changed")
    if file.insertions is None or file.deletions is None:
        return f"- {code(file.path)} ({how}, binary)"
    return f"- {code(file.path)} ({how}, +{file.insertions} −{file.deletions})"
