"""`mulligan explain`: why an issue is, or is not, being worked on."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from mulligan.domain.explanation import Explanation, told_by
from mulligan.domain.issue import IssueRef
from mulligan.engine.explain import explain as find_out
from mulligan.errors import GoneError
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json, print_point
from mulligan.surfaces.cli.program import as_started
from mulligan.surfaces.cli.setup import (
    environment,
    make_console,
    read_configuration,
    served,
    start_logs,
)
from mulligan.text.escape import one_line
from mulligan.wiring.bench import build_to_look
from mulligan.wiring.records import at_work


def explain(config: Path | None, issue: str, *, json: bool) -> Exit:
    """Say what will be done with an issue, and how each rule comes out for it."""
    operator = read_configuration(config)
    ref = served(IssueRef.parse(issue), operator)
    start_logs()
    with build_to_look(operator, environment()) as bench:
        found = find_out(ref, bench.tools, at_work(operator))
    if json:
        print_json(_row(found))
    elif not (found.exists or found.title):
        message = f"GitHub has no issue {ref}, or not any more; check its number."
        raise GoneError(message)
    else:
        _print(found, make_console())
    return Exit.DONE if found.exists else Exit.FAILED


def _print(found: Explanation, console: Console) -> None:
    title = escape(one_line(found.title, 200))
    console.print(f"[bold]{escape(str(found.issue))}[/]  {title}".rstrip())
    console.print(escape(found.summary))
    if found.rules:
        console.print(escape(told_by(found.act)))
    for note in found.notes:
        console.print(escape(as_started(note)))
    if found.rules:
        console.print()
    for rule in found.rules:
        mark = Text("✗", "red") if rule.refusal else Text("✓", "green")
        print_point(console, mark, rule.refusal or rule.kept)


def _row(found: Explanation) -> dict[str, object]:
    act = found.act
    asked = act and {
        "actor": act.actor,
        "act": act.act,
        "at": act.at.isoformat(),
        "trusted": act.trusted,
    }
    return {
        "issue": str(found.issue),
        "stage": found.stage,
        "eligible": found.eligible,
        "summary": found.summary,
        "asked_by": asked,
        "notes": list(found.notes),
        "rules": [
            {"rule": each.rule, "ok": each.refusal is None, "reason": each.refusal}
            for each in found.rules
        ],
    }
