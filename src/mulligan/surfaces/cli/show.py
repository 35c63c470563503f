"""`mulligan inspect`: what the ledger knows of an issue, for people and programs."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.markup import escape

from mulligan.domain.explanation import told_of_review
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.errors import UsageError
from mulligan.ports import Ledger
from mulligan.retry.lineage import prove_lineage
from mulligan.retry.words import counted
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json
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
        console.print(_attempt(meta))
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
            advice = f"`mulligan inspect {ref}` lists them"
            message = f"Attempt {number} of {ref} has no {name}; {advice}."
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


def _attempt(meta: WorkerResultMeta) -> RenderableType:
    took = f"{meta.duration_ms / 1000:.1f} s"
    lines = [f"\n[bold]attempt {meta.number}[/]  {meta.outcome}  {took}"]
    if meta.error:
        lines.append(f"  {escape(meta.error)}")
    changed = escape(meta.diff_summary or "nothing changed")
    lines.append(f"  {counted(meta.commits, 'commit')}, {changed}")
    for check in meta.checks:
        lines += _check(check)
    lines += [f"  ! {escape(broken.message)}" for broken in meta.guard_violations]
    if meta.agent and meta.agent.refused_hosts:
        hosts = ", ".join(meta.agent.refused_hosts)
        lines.append(f"  ! not let through to {escape(hosts)} (sandbox.hosts)")
    return Group(*lines)


def _check(check: CheckResult) -> list[str]:
    mark = "✓" if check.passed else "✗"
    listed = {"": check.findings, "before the change: ": check.known, "flaky: ": check.unsteady}
    return [
        f"  {mark} {escape(check.name)}",
        *(
            f"      {of}{escape(found.summary)}"
            for of, findings in listed.items()
            for found in findings[:5]
        ),
    ]


def _print_decisions(decisions: Sequence[dict[str, object]], console: Console) -> None:
    if decisions:
        console.print("\n[bold]decisions[/]")
    for row in decisions:
        said = escape(f"attempt {row['number']}: {row['decision']}: {row['reason']}")
        console.print(f"  {said}")
