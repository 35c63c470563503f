"""The codes and rules by which tools call what they complain of. Pure."""

import re

CODE = re.compile(
    r"\[(?P<a>[A-Z]+\d+)\]|\b(?P<b>[A-Z]{1,6}-?\d{2,5})\b"
    r"|[\[(](?P<c>[a-z@][\w@/.]*[-/][\w/.-]+|report\w+)[\])]\s*$"
)


def code_in(text: str) -> str | None:
    """Find the code or the rule that a tool gives to what it complains of."""
    found = CODE.search(text)
    return next(code for code in found.groups() if code) if found else None
