"""The sample outputs of docs/commands.md, compared with what a command really prints."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
SAMPLE = re.compile(r"^```console\n\$ mulligan (.*)\n((?:(?!```).*\n)*)```", re.MULTILINE)
VARIES = re.compile(r"…|[\w-]+/[\w-]+(?:#\d+)?(?![\w/])|\d[\d,.]*")
"""An omission, the name of a repository or issue, and a number: what differs from run to run."""


def is_as_documented(command: str, said: str) -> bool:
    """Return whether an output has the lines of the sample, in their order."""
    shown = next(out for line, out in SAMPLE.findall(PAGE.read_text()) if command in line)
    lines = [_pattern(line) for line in shown.splitlines() if line != "…"]
    return bool(lines) and re.search(r"(?:.*\n)*?".join(lines), said) is not None


def _pattern(line: str) -> str:
    parts, end = list[str](), 0
    for each in VARIES.finditer(line):
        parts += [re.escape(line[end : each.start()]), ".*" if each[0] == "…" else r"\S+?"]
        end = each.end()
    return "".join([*parts, re.escape(line[end:])]) + r"\s*\n"
