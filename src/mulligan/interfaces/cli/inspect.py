"""`mulligan inspect`, `explain` and `prompt`: the past and next steps of an issue."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mulligan.daemon.explain import explain as find_out
from mulligan.daemon.explain import preview
from mulligan.domain.errors import UsageError
from mulligan.domain.explanation import (
    STAGE_TITLES,
    Explanation,
    describe_request,
    describe_review,
)
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import CheckResult, WorkerResultMeta
from mulligan.domain.status import IssueStatus
from mulligan.domain.verification import Verification
from mulligan.implement.ports import Ledger
from mulligan.implement.prompt.compose import ComposedPrompt
from mulligan.implement.prompt.manifest import verify_manifests
from mulligan.implement.prompt.outcome_text import (
    NOT_RUN,
    attempt_error,
    left_out,
    pluralize,
    run_text,
    seconds_text,
    set_up_files_text,
    times_text,
    title_of,
    verdict,
    verification_text,
)
from mulligan.implement.prompt.retry_context import tokens
from mulligan.interfaces.bootstrap.container import build_read_only
from mulligan.interfaces.bootstrap.stores import at_work, open_ledger, open_records
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.issue_argument import issue_of, not_found
from mulligan.interfaces.cli.setup import (
    as_configured,
    environment,
    make_console,
    read_configuration,
    start_logs,
)
from mulligan.interfaces.cli.terminal import (
    page_diff,
    print_json,
    print_point,
    print_text,
)
from mulligan.interfaces.event_text import DECISIONS
from mulligan.interfaces.json_output import decisions_of, inspection
from mulligan.text.escape import one_line, visible

# `mulligan inspect`


def inspect(config: Path | None, issue: str, attempt: int | None, *, json: bool) -> Exit:
    """Show one issue's attempts and decisions."""
    operator = read_configuration(config, needs_token=False)
    ref = issue_of(issue, operator)
    with open_ledger(operator) as ledger:
        found = _known(ref, ledger)
        history = [each for each in ledger.history(ref) if attempt in {None, each.number}]
        events = ledger.events(ref)
    if attempt and not history and attempt != found.number:
        raise UsageError(
            f"{ref} has no attempt {attempt}. To list its attempts, run `mulligan inspect {ref}`."
        )
    decisions = [row for row in decisions_of(events) if attempt in {None, row["number"]}]
    if json:
        print_json(inspection(found, history, decisions))
        return Exit.DONE
    console = make_console()
    console.print(_headline(found))
    for meta in history:
        print_attempt(meta, console)
    print_decisions(decisions, console)
    return Exit.DONE


def part(
    config: Path | None, issue: str, attempt: int | None, name: str, *, as_bytes: bool
) -> Exit:
    """Print one artifact of an attempt; without a number, of the last attempt.

    Remove terminal control sequences, unless a program reads the content `as_bytes`.
    """
    operator = read_configuration(config, needs_token=False)
    ref = issue_of(issue, operator)
    with open_records(operator) as (ledger, artifacts):
        number = attempt or _known(ref, ledger).number
        stored = artifacts.find(ref, number, name)
        if stored is None:
            failed = [meta for meta in ledger.history(ref) if meta.number == number and meta.set_up]
            raise UsageError(_missing(f"{name} of attempt {number} of {ref}", ref, bool(failed)))
        content = artifacts.read(stored)
    if name.endswith(".diff") and sys.stdout.isatty():
        page_diff(make_console(), visible(content.decode(errors="replace")))
    else:
        _write(content, as_bytes=as_bytes)
    return Exit.DONE


def _missing(what: str, ref: IssueRef, set_up_failed: bool) -> str:  # noqa: FBT001
    if set_up_failed:
        return (
            f"There is no {what}: a setup command failed before the agent started. For its output,"
            f" run `mulligan inspect {ref} --log setup`."
        )
    advice = f"`mulligan inspect {ref}` says how far it came"
    return f"{what} was never written, or was removed; {advice}."


AGENT_LOG, SET_UP_LOG = "agent", "setup"

SET_UP_FILES = ("setup.log", "setup-start.log", "setup-again.log")
"""The logs of the setup commands of an attempt, in the order in which they ran."""


def log(config: Path | None, issue: str, attempt: int | None, name: str, *, as_bytes: bool) -> Exit:
    """Print the log of the setup commands, or of a check, of an attempt."""
    operator = read_configuration(config, needs_token=False)
    ref = issue_of(issue, operator)
    with open_records(operator) as (ledger, artifacts):
        number = attempt or _known(ref, ledger).number
        checks = [c for meta in ledger.history(ref) if meta.number == number for c in meta.checks]
        own = {check.name: check.log_artifact for check in checks if check.log_artifact}
        stored = [own[name]] if name in own else []
        if name == SET_UP_LOG:
            found = [artifacts.find(ref, number, file) for file in SET_UP_FILES]
            stored = [*dict.fromkeys([*filter(None, found), *stored])]
        if not stored:
            names = ", ".join([AGENT_LOG, SET_UP_LOG, *own])
            raise UsageError(
                f"Attempt {number} of {ref} has no log {name!r}. The names are: {names}. Setup "
                "commands have a log in the attempt that ran them; later ones use their files."
            )
        content = b"".join(map(artifacts.read, stored))
    _write(content, as_bytes=as_bytes)
    return Exit.DONE


def _write(content: bytes, *, as_bytes: bool) -> None:
    if sys.stdout.isatty() or not as_bytes:
        content = visible(content.decode(errors="replace")).encode()
    sys.stdout.buffer.write(content)


def verify(config: Path | None, issue: str, *, json: bool) -> Exit:
    """Recompute the hashes of all inputs of an issue's attempts, and print mismatches."""
    operator = read_configuration(config, needs_token=False)
    ref = issue_of(issue, operator)
    with open_records(operator) as (ledger, artifacts):
        _known(ref, ledger)

        def stored(number: int, name: str) -> bytes | None:
            found = artifacts.find(ref, number, name)
            return artifacts.read(found) if found else None

        proofs = verify_manifests(ledger.history(ref), stored)
    if json:
        print_json([{"number": proof.number, "broken": [*proof.broken]} for proof in proofs])
    else:
        for proof in proofs:
            result = (
                " ".join(proof.broken) or "inputs, context, prompt and lineage are as recorded."
            )
            make_console().print(escape(f"attempt {proof.number}: {result}"))
    return Exit.FAILED if any(proof.broken for proof in proofs) else Exit.DONE


def _known(ref: IssueRef, ledger: Ledger) -> IssueStatus:
    found = ledger.status(ref)
    if not (found.number or found.epoch or found.reason):
        raise UsageError(
            f"{ref} is not in the ledger. To list known issues, run `mulligan status`."
        )
    return found


def _headline(found: IssueStatus) -> str:
    lines = [f"[bold]{escape(str(found.issue))}[/]  {escape(one_line(found.text.title, 200))}"]
    again = f" of round {found.epoch}" if found.epoch > 1 else ""
    where = f"{STAGE_TITLES[found.stage]}, attempt {found.attempt}{again}"
    lines.append(where if not found.reason else f"{where}: {escape(found.reason)}")
    if found.pull.url:
        lines.append(escape(found.pull.url))
    if review := describe_review(found):
        lines.append(escape(review))
    lines += map(escape, found.effects.pull_notes)
    return "\n".join(lines)


def print_attempt(meta: WorkerResultMeta, console: Console) -> None:
    """Print one attempt; wrapped lines are indented below their text."""
    took = seconds_text(meta.duration_ms)
    console.print(f"\n[bold]attempt {meta.number}[/]  {title_of(meta)}  {took}")
    for mark, text in _points(meta):
        print_point(console, Text(mark), text)


def _points(meta: WorkerResultMeta) -> Iterator[tuple[str, str]]:
    """Yield the lines about an attempt, each with its mark."""
    if times := times_text([meta]):
        yield " ", times
    if meta.set_up_files:
        yield " ", set_up_files_text(meta.set_up_files)
    if meta.image:
        yield " ", f"image: {meta.image}"
    if error := attempt_error(meta):
        yield " ", error
    if meta.outcome is Outcome.SUCCEEDED:
        yield " ", verification_text(Verification.of(meta))
    if meta.set_up:
        yield from _set_up(meta.set_up)
    yield " ", f"{pluralize(meta.commits, 'commit')}, {meta.diff_summary or 'nothing changed'}"
    for check in meta.checks:
        yield from _check(check)
    for skipped in meta.skipped_checks:
        yield "  –", f"{skipped.name}: {NOT_RUN}"
    for broken in meta.guard_violations:
        yield "  !", broken.message
    for why, paths in left_out(meta):
        yield "  !", f"{why}: {', '.join(paths)}"
    if meta.agent and meta.agent.refused_hosts:
        hosts = ", ".join(meta.agent.refused_hosts)
        yield "  !", f"blocked: {hosts} (see sandbox.hosts)"


def _set_up(failed: CheckResult) -> Iterator[tuple[str, str]]:
    yield "  ✗", f"{failed.name}: {one_line(failed.command, 200)}"
    for line in failed.digest.split("\n"):
        yield "    │", visible(line)


def _check(check: CheckResult) -> Iterator[tuple[str, str]]:
    if check.is_set_up and not check.passed:
        yield from _set_up(check)
        return
    if check.is_proof:
        yield "  ✗", verdict(check)
        return
    took = f"  {run_text(check)}" if check.took_ms else ""
    yield "  ✓" if check.passed else "  ✗", f"{check.name}{took}"
    listed = {"": check.findings, "before the change: ": check.known, "flaky: ": check.unsteady}
    for of, findings in listed.items():
        for found in findings[:5]:
            yield " " * 5, f"{of}{found.summary}"


def print_decisions(decisions: Sequence[dict[str, object]], console: Console) -> None:
    """Print the decisions after the attempts, in words."""
    if decisions:
        console.print("\n[bold]decisions[/]")
    for row in decisions:
        text = f"attempt {row['number']}: {DECISIONS[str(row['decision'])]}. {row['reason']}"
        print_point(console, Text(" "), text)


# `mulligan explain`


def explain(config: Path | None, issue: str, *, json: bool) -> Exit:
    """Explain what Mulligan will do with an issue, rule by rule."""
    operator = read_configuration(config)
    ref = as_configured(issue_of(issue, operator), operator)
    start_logs()
    with build_read_only(operator, environment()) as container:
        found = find_out(ref, container.context, at_work(operator))
    if json:
        print_json(_row(found))
    elif not (found.exists or found.title):
        raise not_found(ref)
    else:
        _print(found, make_console())
    return Exit.DONE if found.exists else Exit.FAILED


def _print(found: Explanation, console: Console) -> None:
    title = escape(one_line(found.title, 200))
    console.print(f"[bold]{escape(str(found.issue))}[/]  {title}".rstrip())
    print_text(console, found.summary)
    if found.rules:
        print_text(console, describe_request(found.act))
    for note in found.notes:
        print_text(console, note)
    if found.rules:
        console.print()
    for rule in found.rules:
        mark = Text("✗", "red") if rule.refusal else Text("✓", "green")
        print_point(console, mark, rule.refusal or rule.kept)


def _row(found: Explanation) -> dict[str, object]:
    act = found.act
    request = act and {
        "actor": act.actor,
        "act": str(act.act),
        "at": act.at.isoformat(),
        "trusted": act.trusted,
    }
    return {
        "issue": str(found.issue),
        "stage": found.stage,
        "eligible": found.eligible,
        "summary": found.summary,
        "asked_by": request,
        "notes": list(found.notes),
        "rules": [
            {"rule": each.rule, "ok": not each.refusal, "reason": each.refusal or None}
            for each in found.rules
        ],
    }


# `mulligan debug prompt`


def prompt(config: Path | None, issue: str, *, json: bool) -> Exit:
    """Print the prompt byte for byte, and its sizes on standard error; escape it on a terminal."""
    operator = read_configuration(config)
    ref = as_configured(issue_of(issue, operator), operator)
    start_logs()
    with build_read_only(operator, environment()) as container:
        composed = preview(ref, container.context)
    if json:
        print_json(_section_row(ref, composed))
        return Exit.DONE
    shown = visible(composed.prompt) if sys.stdout.isatty() else composed.prompt
    sys.stdout.buffer.write(shown.encode())
    sys.stdout.flush()
    sys.stderr.write("\n".join(_sizes(composed)) + "\n")
    return Exit.DONE


def _sizes(composed: ComposedPrompt) -> list[str]:
    """Return the table of the parts with their sizes, and the cuts in them."""
    attempt, most = composed.position
    lines = [f"attempt {attempt} of {most}", f"{'':16}{'bytes':>10}{'tokens':>10}"]
    for name, text in (*composed.sections.items(), ("whole prompt", composed.prompt)):
        size = len(text.encode())
        lines.append(f"{name:16}{size:>10}{tokens(size):>10}")
    cuts = composed.assembled.cuts if composed.assembled else ()
    lines += [f"cut: {one_line(cut.section, 120)}: {cut.reason}" for cut in cuts]
    lines += [f"left out, since nobody sees it: {name} {n}" for name, n in composed.hidden.items()]
    return lines


def _section_row(ref: IssueRef, composed: ComposedPrompt) -> dict[str, object]:
    sizes = {name: len(text.encode()) for name, text in composed.sections.items()}
    whole = len(composed.prompt.encode())
    cuts = composed.assembled.cuts if composed.assembled else ()
    return {
        "issue": str(ref),
        "attempt": composed.position[0],
        "max_attempts": composed.position[1],
        "bytes": whole,
        "tokens": tokens(whole),
        "sections": [
            {"name": name, "bytes": size, "tokens": tokens(size)} for name, size in sizes.items()
        ],
        "context_budget_bytes": composed.assembled.budget if composed.assembled else None,
        "cuts": [{"section": cut.section, "reason": cut.reason} for cut in cuts],
        "hidden": composed.hidden,
        "prompt": composed.prompt,
    }
