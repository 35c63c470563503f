"""Read an issue from a Markdown file: its first heading is the title. Pure."""

import re

HEADING = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*")
FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")


def split_issue(text: str) -> tuple[str, str] | None:
    """Give title and body; None where no heading stands outside of code blocks."""
    lines, fence = text.splitlines(), ""
    for at, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and (heading := HEADING.fullmatch(line)):
            return heading[1], "\n".join([*lines[:at], *lines[at + 1 :]]).strip()
    return None
