"""`mulligan inspect`: what the ledger knows of an issue, for people and programs."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mulligan.domain.explanation import told_of_review
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.errors import UsageError
from mulligan.ports import Ledger
from mulligan.retry.lineage import prove_lineage
from mulligan.retry.words import counted
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json, print_point
from mulligan.surfaces.cli.setup import make_console, read_configuration
from mulligan.surfaces.shapes import decisions_of, inspection
from mulligan.text.escape import one_line, visible
from mulligan.wiring.records import open_ledger, open_records


def inspect(config: Path | None, issue: str, attempt: int | None, *, json: bool) -> Exit:
    """Show one issue's attempts and decisions."""
    ref = IssueRef.parse(issue)
    with open_ledger(read_configuration(config, needs_token=False)) as ledger:
        found = _known(ref, ledger)
        history = [each for each in ledger.history(ref) if attempt in {None, each.number}]
        events = ledger.events(ref)
    if attempt and not history and attempt != found.number:
        message = f"{ref} has no attempt {attempt}; `mulligan inspect {ref}` lists those it has."
        raise UsageError(message)
    decisions = [row for row in decisions_of(events) if attempt in {None, row["number"]}]
    if json:
        print_json(inspection(found, history, decisions))
        return Exit.DONE
    console = make_console()
    console.print(_headline(found))
    for meta in history:
        print_attempt(meta, console)
    _print_decisions(decisions, console)
    return Exit.DONE


def part(config: Path | None, issue: str, attempt: int | None, name: str) -> Exit:
    """Print one artifact of an attempt; without a number, of the last attempt.

    Programs get it byte for byte; to a terminal goes nothing that would steer it.
    """
    operator, ref = read_configuration(config, needs_token=False), IssueRef.parse(issue)
    with open_records(operator) as (ledger, artifacts):
        number = attempt or _known(ref, ledger).number
        stored = artifacts.find(ref, number, name)
        if stored is None:
            advice = f"`mulligan inspect {ref}` says how far it came"
            message = f"Attempt {number} of {ref} has no {name}, or not any more; {advice}."
            raise UsageError(message)
        content = artifacts.read(stored)
    if sys.stdout.isatty():
        content = visible(content.decode(errors="replace")).encode()
    sys.stdout.buffer.write(content)
    return Exit.DONE


def verify(config: Path | None, issue: str, *, json: bool) -> Exit:
    """Recompute every hash of what an issue's attempts were told; say where a chain is broken."""
    operator, ref = read_configuration(config, needs_token=False), IssueRef.parse(issue)
    with open_records(operator) as (ledger, artifacts):
        _known(ref, ledger)

        def stored(number: int, name: str) -> bytes | None:
            found = artifacts.find(ref, number, name)
            return artifacts.read(found) if found else None

        proofs = prove_lineage(ledger.history(ref), stored)
    if json:
        print_json([{"number": proof.number, "broken": [*proof.broken]} for proof in proofs])
    else:
        for proof in proofs:
            said = " ".join(proof.broken) or "inputs, context, prompt and lineage are as recorded."
            make_console().print(escape(f"attempt {proof.number}: {said}"))
    return Exit.FAILED if any(proof.broken for proof in proofs) else Exit.DONE


def _known(ref: IssueRef, ledger: Ledger) -> IssueStatus:
    found = ledger.status(ref)
    if not (found.number or found.epoch or found.reason):
        message = f"{ref} is not in the ledger; `mulligan status` lists the issues that are."
        raise UsageError(message)
    return found


def _headline(found: IssueStatus) -> str:
    lines = [f"[bold]{escape(str(found.issue))}[/]  {escape(one_line(found.title, 200))}"]
    where = f"{found.stage}, epoch {found.epoch}, attempt {found.attempt}"
    lines.append(where if not found.reason else f"{where}: {escape(found.reason)}")
    if found.pull_request:
        lines.append(escape(found.pull_request))
    if told := told_of_review(found):
        lines.append(escape(told))
    return "\n".join(lines)


def print_attempt(meta: WorkerResultMeta, console: Console) -> None:
    """Print what an attempt came to; what wraps stays below its own text."""
    took = f"{meta.duration_ms / 1000:.1f} s"
    console.print(f"\n[bold]attempt {meta.number}[/]  {meta.outcome}  {took}")
    for mark, said in _points(meta):
        print_point(console, Text(mark), said)


def _points(meta: WorkerResultMeta) -> Iterator[tuple[str, str]]:
    """Give what is said of an attempt, each with the mark that it stands behind."""
    if meta.error:
        yield " ", meta.error
    yield " ", f"{counted(meta.commits, 'commit')}, {meta.diff_summary or 'nothing changed'}"
    for check in meta.checks:
        yield from _check(check)
    for broken in meta.guard_violations:
        yield "  !", broken.message
    if meta.agent and meta.agent.refused_hosts:
        hosts = ", ".join(meta.agent.refused_hosts)
        yield "  !", f"not let through to {hosts} (sandbox.hosts)"


def _check(check: CheckResult) -> Iterator[tuple[str, str]]:
    yield "  ✓" if check.passed else "  ✗", check.name
    listed = {"": check.findings, "before the change: ": check.known, "flaky: ": check.unsteady}
    for of, findings in listed.items():
        for found in findings[:5]:
            yield " " * 5, f"{of}{found.summary}"


def _print_decisions(decisions: Sequence[dict[str, object]], console: Console) -> None:
    if decisions:
        console.print("\n[bold]decisions[/]")
    for row in decisions:
        said = f"attempt {row['number']}: {row['decision']}: {row['reason']}"
        print_point(console, Text(" "), said)
