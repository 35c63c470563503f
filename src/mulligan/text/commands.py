"""Parse commands, in comments and on the command line (COMMAND-1, CONTEXT-12). Pure."""

import re

from mulligan.domain.command import Command, Verb
from mulligan.text.escape import HIDDEN, enclose, one_line, visible

HEADING = "Human guidance"

OPENING = (
    "A maintainer who is trusted on this repository decided this. It is an instruction: follow it, "
    "also where the issue or an earlier attempt says otherwise."
)

MAX_GUIDANCE = 4000
"""Limit of guidance, which reaches the agent whole; longer text is refused."""

MAX_REASON = 300

SPACE = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""The spaces of Unicode that Markdown does not know; the keyboards of phones write some of them."""

VERBS = {verb.value: verb for verb in Verb if verb is not Verb.MISTYPED}

START = re.compile(rf"[ \t\r\n{SPACE}]*/")
COMMAND_LINE = re.compile(
    rf" {{0,3}}[{SPACE}]*/ ?mulligan"
    rf"(?:(?:\s*[:,]\s*|\s+|-(?=(?:{'|'.join(VERBS)})\b))(?P<rest>.*))?$",
    re.IGNORECASE,
)
"""Four spaces would make it code; a quotation starts with another character."""

JOINED = re.compile(rf"(?i:/mulligan)(?P<unseen>(?:{HIDDEN.pattern})+)(?=\w)")
"""Only a space of no width separates the command."""

VERB = re.compile(r"(?P<verb>[a-z]+)(?:[:：﹕]|[.!]*(?=\s|$))\s*", re.IGNORECASE)
"""A phone may add a full stop, or write a full-width colon."""


def guidance_block(words: str) -> str:
    """Wrap guidance for a prompt in marks that it cannot close; empty if there is none."""
    return f"{OPENING}\n\n{enclose('guidance', 'a trusted maintainer', words)}" if words else ""


def parse(body: str) -> Command | None:
    """Return the command at the start of a comment; None if there is none."""
    # After an invisible character, a reader would not recognise it as a command.
    start = START.match(body)
    if start is None:
        return None
    if joined := JOINED.match(body, start.end() - 1):
        body = f"{body[: joined.start('unseen')]} {body[joined.end() :]}"
    lines = visible(body).split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    found = COMMAND_LINE.match(lines[0].rstrip()) if lines else None
    if found is None:
        return None
    first = (found["rest"] or "").strip()
    named = VERB.match(first)
    verb = VERBS.get(named["verb"].lower()) if named else None
    if named is None or verb is None:
        return Command(Verb.MISTYPED, _unknown(first))
    return command(verb, first[named.end() :], "\n".join(lines[1:]))


def command(verb: Verb, first: str, rest: str = "") -> Command:
    """Return the command from the rest of its line and the lines below."""
    text = f"{first}\n{rest}".strip()
    match verb:
        case Verb.FIX:
            return _guided(text)
        case Verb.SKIP:
            return Command(verb, one_line(text, MAX_REASON))
        case Verb.RETRY if first.strip():
            problem = "`retry` takes no text; to say what to do, write `fix:` instead."
            return Command(Verb.MISTYPED, problem)
        case _:
            # Ignore other text after such a command, so that `stop` always works.
            return Command(verb)


def _guided(text: str) -> Command:
    if not text:
        return Command(Verb.MISTYPED, "`fix:` needs an instruction after it.")
    if len(text) > MAX_GUIDANCE:
        problem = f"The text has {len(text):,} characters; `fix:` accepts up to {MAX_GUIDANCE:,}."
        return Command(Verb.MISTYPED, problem)
    return Command(Verb.FIX, text)


def _unknown(first: str) -> str:
    word = one_line(first, 40).partition(" ")[0].replace("`", "'")
    return f"There is no command `{word}`." if word else "It does not say what to do."
