"""The parts of a prompt, by their headings. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

HEADING = re.compile(r"(#{1,2}) (\S.*)")
OPENS = re.compile(r"<((?:un)?trusted-[0-9a-f]{4,64}) from=")
OPENING = "Opening"

MAX_PART_CHARS = 12_000
"""Characters of a part to show; the file has the rest."""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of a prompt; `level` is 1 for a main part and 2 for a part of one."""

    name: str
    level: int
    text: str

    @property
    def shown(self) -> str:
        """Return the text, cut to the size for a page."""
        return self.text if len(self.text) <= MAX_PART_CHARS else f"{self.text[:MAX_PART_CHARS]}…"


def parts_of(prompt: str) -> tuple[PromptPart, ...]:
    """Split a prompt at its own headings, and not at those in quoted text."""
    opening, *others = _parts(prompt)
    found = [opening] if opening.text else []
    return (*found, *(part for part in others if part.text or part.level == 1))


def _parts(prompt: str) -> Iterator[PromptPart]:
    name, level, lines, quoted = OPENING, 1, list[str](), ""
    for line in prompt.split("\n"):
        heading = None if quoted else HEADING.fullmatch(line)
        if heading:
            yield PromptPart(name, level, "\n".join(lines).strip("\n"))
            name, level, lines = heading[2], len(heading[1]), []
            continue
        opened = OPENS.match(line)
        if opened and not quoted:
            quoted = opened[1]
        elif quoted and line == f"</{quoted}>":
            quoted = ""
        lines.append(line)
    yield PromptPart(name, level, "\n".join(lines).strip("\n"))
