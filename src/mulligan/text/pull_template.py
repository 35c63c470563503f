"""Fill in a repository's pull-request template, as far as Mulligan knows the answers (PR-10). Pure.

The headings, the text and the empty boxes of the template stay. HTML comments, which instruct the
author, go: GitHub does not show them. Mulligan writes a description below the heading that asks for
one, and the issue where the template has room for it. It ticks no box.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.text.foreign import inert, template_line

MAX_TEMPLATE_CHARS = 16_000
"""A longer template is not used; GitHub allows 65,536 characters for the whole text."""

TEMPLATE_NAME = re.compile(r"pull_request_template(?:\.md|\.txt)?", re.IGNORECASE)
"""The name of a template, or of a directory of templates."""

CODE_OR_COMMENT = re.compile(
    r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)|<!--.*?(?:-->|\Z)",
    re.DOTALL | re.MULTILINE,
)

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

ATX = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*")

BOLD = re.compile(r"\s*(?:\*\*|__)(.+?):?(?:\*\*|__)\s*:?\s*")
"""A line in bold: a heading by look."""

UNDERLINE = re.compile(r" {0,3}(?:=+|-{2,})\s*")

NOT_A_LETTER = re.compile(r"[^\w/]+")

DESCRIPTION = re.compile(
    r"(?:(?:pr|pull request|branch|change|changes|brief|short|detailed|general) )?"
    r"(?:descriptions?|summary|overview)(?: of (?:the |your |this |these )?"
    r"(?:change|changes|pr|pull request))?"
    r"|(?:proposed|suggested|describe (?:the|your)|list of|main|key) changes?(?: made)?"
    r"|changes(?: made)?|proposed change|proposal|solution|what(?: changed)?"
    r"|(?:please )?describe (?:the |your |this )?(?:changes?|pr|pull request)"
    r"|what (?:does|do|did|is|are|has|have|was|were|this|changes) .{0,80}"
)
"""Headings that ask for a description, without signs and case."""

ISSUE = re.compile(
    r"(?:(?:related|linked|fixed|associated|reference|github|relevant|closes|fixes) )*"
    r"(?:issue|issues|issue s)(?: ?(?:/|or|and) ?(?:prs?|pull requests?|tickets?))*"
    r"(?: (?:number|numbers|link|links|reference|references|fixed|resolved|closed))*"
    r"|(?:fixes|closes|resolves)"
    r"|(?:what|which) issues? .{0,80}|which issue s .{0,80}"
)
"""Headings that ask for the issue."""

CLOSES = re.compile(
    r"(?P<before>.*?\b(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?)\b:?\s+)"
    r"#(?:[\w<>\[\]{}.-]*|\s?\([^()]*\)|\s?<[^<>]*>)\s*\.?\s*",
    re.IGNORECASE,
)
"""A line that ends with a closing keyword and the place of a number: `Fixes #`, `closes #xxxx`."""

TICKED = re.compile(r"(\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+)\[[xX]\]")

KEPT_BELOW_DESCRIPTION = re.compile(r"\s*(?:[-*+]\s|\d{1,9}[.)]\s|\||>|`{3}|~{3}|#|<)")
"""Lines below the heading that are no instruction in prose: lists, tables, quotations, code."""

TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)\b[^<>]*?(/?)>")

CONTAINERS = frozenset(
    {
        *("a", "b", "blockquote", "center", "code", "del", "details", "div", "em", "i", "kbd"),
        *("ol", "picture", "pre", "section", "span", "strong", "sub", "summary", "sup", "table"),
        *("tbody", "thead", "ul"),
    }
)
"""HTML elements that GitHub shows, and that have an end."""


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A template with what Mulligan wrote into it; `described`: a heading took the description."""

    text: str
    described: bool


def fill(template: str, issue: int, description: str) -> FilledTemplate | None:
    """Fill in a template; None if nothing of it is left, or if it is too long.

    `description` is Mulligan's own Markdown with its marks; `issue` the number of the issue.
    """
    if len(template) > MAX_TEMPLATE_CHARS:
        return None
    lines = _shown(template)
    if not any(line.strip() for line in lines):
        return None
    is_code, fence = _in_code(lines)
    headings = {at: name for at in range(len(lines)) if (name := _heading(lines, is_code, at))}
    place = next((at for at, name in headings.items() if DESCRIPTION.fullmatch(name)), None)
    closing = next((at for at, line in enumerate(lines) if not is_code[at] and _closes(line)), None)
    about = next((at for at, name in headings.items() if ISSUE.fullmatch(name)), None)
    filled = list[str]()
    for at, line in enumerate(lines):
        if at == closing:
            filled.append(f"{template_line(_closes(line) or '')}#{issue}")
        elif place is None or not _is_replaced(lines, is_code, headings, place, at):
            filled.append(line if is_code[at] else template_line(TICKED.sub(r"\1[ ]", line)))
        if place is not None and at == _last_of(lines, place):
            filled += ["", description, ""]
        if closing is None and about is not None and at == _last_of(lines, about):
            filled += ["", f"Closes #{issue}", ""]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(filled)).strip("\n")
    return FilledTemplate(text + _endings(lines, is_code, fence), described=place is not None)


def find_template(paths: Sequence[str]) -> str:
    """Return the path of the template, or of the directory of templates; "" if there is none.

    The paths are those in the root, in docs/ and in .github/. GitHub looks in .github/ first (https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests).
    """
    for place in (".github", "", "docs"):
        inside = (path for path in paths if path.rpartition("/")[0] == place)
        found = [path for path in inside if TEMPLATE_NAME.fullmatch(path.rpartition("/")[2])]
        if found:
            return min(found, key=lambda name: (not name.casefold().endswith(".md"), name))
    return ""


def only_template(names: Sequence[str]) -> str:
    """Return the one template of a directory; "" if there is a choice, which nobody made."""
    found = [name for name in names if name.casefold().endswith((".md", ".txt"))]
    return found[0] if len(found) == 1 else ""


def is_usable(template: str) -> bool:
    """Return whether a template shows anything, and is not too long."""
    return fill(template, 0, "") is not None


def _shown(template: str) -> list[str]:
    """Return the lines of a template without comments, front matter and what nobody sees."""
    text = FRONT_MATTER.sub("", template.replace("\r\n", "\n").lstrip("\ufeff"))
    # A comment's opener in a code block is no comment.
    kept = CODE_OR_COMMENT.sub(lambda found: found[0] if found[1] else "", text)
    return inert(kept).split("\n")


def _in_code(lines: Sequence[str]) -> tuple[list[bool], str]:
    """Return for each line whether it belongs to a code block, and the fence that stays open."""
    fence, found = "", list[bool]()
    for line in lines:
        edge = FENCE.match(line)
        is_edge = edge is not None and (not fence or edge[1].startswith(fence))
        found.append(bool(fence) or is_edge)
        if edge and is_edge:
            fence = "" if fence else edge[1]
    return found, fence


def _heading(lines: Sequence[str], is_code: Sequence[bool], at: int) -> str:
    """Return the words of a heading, without signs and case; empty if the line is none."""
    line = lines[at]
    if is_code[at] or not line.strip():
        return ""
    underlined = at + 1 < len(lines) and UNDERLINE.fullmatch(lines[at + 1])
    found = ATX.fullmatch(line) or BOLD.match(line)
    words = found[1] if found else line if underlined else ""
    return NOT_A_LETTER.sub(" ", words).strip().casefold()


def _last_of(lines: Sequence[str], heading: int) -> int:
    """Return the last line of a heading: of an underlined one, its underline."""
    has_more = heading + 1 < len(lines) and ATX.fullmatch(lines[heading]) is None
    return heading + 1 if has_more and UNDERLINE.fullmatch(lines[heading + 1]) else heading


def _closes(line: str) -> str | None:
    """Return a line up to the number of the issue that it closes; None if it closes none."""
    found = CLOSES.fullmatch(line)
    return found["before"] if found else None


def _is_replaced(
    lines: Sequence[str],
    is_code: Sequence[bool],
    headings: dict[int, str],
    place: int,
    at: int,
) -> bool:
    """Return whether a line is an instruction in prose below the heading of the description."""
    following = min((each for each in headings if each > place), default=len(lines))
    is_below = _last_of(lines, place) < at < following and not is_code[at]
    is_prose = bool(lines[at].strip()) and not UNDERLINE.fullmatch(lines[at])
    return is_below and is_prose and not KEPT_BELOW_DESCRIPTION.match(lines[at])


def _endings(lines: Sequence[str], is_code: Sequence[bool], fence: str) -> str:
    """Return what closes the code block and the elements that a template leaves open."""
    opened = list[str]()
    for line, code in zip(lines, is_code, strict=True):
        for end, name, empty in TAG.findall("" if code else re.sub(r"`[^`]*`", "", line)):
            tag = name.casefold()
            if end and tag in opened:
                del opened[len(opened) - 1 - opened[::-1].index(tag)]
            elif tag in CONTAINERS and not (end or empty):
                opened.append(tag)
    return "".join(f"\n{each}" for each in (fence, *(f"</{tag}>" for tag in opened[::-1])) if each)
