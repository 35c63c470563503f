"""`mulligan prompt`: what an agent would be told now, how large it is, and what is cut."""

import sys
from pathlib import Path

from mulligan.domain.issue import IssueRef
from mulligan.engine.preview import preview
from mulligan.retry.compose import Told
from mulligan.retry.layout import tokens
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json
from mulligan.surfaces.cli.setup import environment, read_configuration, served, start_logs
from mulligan.text.escape import one_line, visible
from mulligan.wiring.bench import build_to_look


def prompt(config: Path | None, issue: str, *, json: bool) -> Exit:
    """Print the prompt byte for byte, and its sizes on standard error; to a terminal, safely."""
    operator = read_configuration(config)
    ref = served(IssueRef.parse(issue), operator)
    start_logs()
    with build_to_look(operator, environment()) as bench:
        told = preview(ref, bench.tools)
    if json:
        print_json(_row(ref, told))
        return Exit.DONE
    shown = visible(told.prompt) if sys.stdout.isatty() else told.prompt
    sys.stdout.buffer.write(shown.encode())
    sys.stdout.flush()
    sys.stderr.write("\n".join(_sizes(told)) + "\n")
    return Exit.DONE


def _sizes(told: Told) -> list[str]:
    """Write the table of the parts, and what is left out of them."""
    attempt, most = told.position
    lines = [f"attempt {attempt} of {most}", f"{'':16}{'bytes':>10}{'tokens':>10}"]
    for name, text in (*told.sections.items(), ("whole prompt", told.prompt)):
        size = len(text.encode())
        lines.append(f"{name:16}{size:>10}{tokens(size):>10}")
    cuts = told.assembled.cuts if told.assembled else ()
    lines += [f"cut: {one_line(cut.section, 120)}: {cut.reason}" for cut in cuts]
    lines += [f"not told, since nobody sees it: {name} {n}" for name, n in told.hidden.items()]
    return lines


def _row(ref: IssueRef, told: Told) -> dict[str, object]:
    sizes = {name: len(text.encode()) for name, text in told.sections.items()}
    whole = len(told.prompt.encode())
    cuts = told.assembled.cuts if told.assembled else ()
    return {
        "issue": str(ref),
        "attempt": told.position[0],
        "max_attempts": told.position[1],
        "bytes": whole,
        "tokens": tokens(whole),
        "sections": [
            {"name": name, "bytes": size, "tokens": tokens(size)} for name, size in sizes.items()
        ],
        "context_budget_bytes": told.assembled.budget if told.assembled else None,
        "cuts": [{"section": cut.section, "reason": cut.reason} for cut in cuts],
        "hidden": told.hidden,
        "prompt": told.prompt,
    }
