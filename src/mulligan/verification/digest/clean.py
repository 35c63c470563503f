"""Turn what was written for a terminal into plain lines. Pure."""

import re
from collections.abc import Sequence

COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
MOVES = re.compile(rb"\x1b\[[0-9;]*[ABEFHfd]")
TO_COLUMN = re.compile(rb"\x1b\[[0-9]*G")
FORWARD = re.compile(rb"\x1b\[[0-9]*C")
ESCAPES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # erasing, modes
    rb"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links
    rb"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"  # device strings
    rb"|\x1b[ -/]*[0-~]?"
)
BACKSPACE = re.compile(rb"(?:[\xc0-\xff][\x80-\xbf]*|[^\n\x08])?\x08")
CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\r\x1b")) + b"\x7f"
SAME_DIGITS = bytes.maketrans(b"0123456789", b"1" * 10)
LOUD = (b"error", b"fail", b"fatal", b"panic", b"exception", b"denied", b"not found", b"abort")
"""Words for which a line is kept although something was printed over it, or it is very long."""

STAMP = rb"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[ \t]"
PREFIXES = (
    re.compile(rb"(?m)^#\d+ \d+\.\d+ "),
    re.compile(rb"(?m)^[A-Za-z][\w.-]*[ \t]*\| (?:" + STAMP + rb")?"),
    re.compile(rb"(?m)^[\w@/.-]+:[a-z][\w-]*:(?: |$)"),
    re.compile(rb"(?m)^" + STAMP),
)
"""What log collectors put before each line: a build step, a service, a time."""
ENOUGH_LINES = 4
MOST = 0.8

LONG_LINE = 1500
LINE_END = 300
AROUND_WORD = 150


def clean(chunk: bytes) -> bytes:
    """Remove escape sequences, control characters and what was printed over; keep the lines."""
    if b"\x1b" in chunk:
        chunk = COLOURS.sub(b"", chunk)
    if b"\x1b" in chunk:
        chunk = MOVES.sub(b"\n", chunk)
        chunk = TO_COLUMN.sub(b"\r", chunk)
        chunk = FORWARD.sub(b" ", chunk)
        chunk = ESCAPES.sub(b"", chunk)
    chunk = chunk.translate(None, CONTROLS)
    if b"\b" in chunk:
        chunk = BACKSPACE.sub(b"", chunk)
    if b"\r" in chunk:
        chunk = b"\n".join(_as_seen(line) for line in chunk.split(b"\n"))
    return chunk


def _as_seen(line: bytes) -> bytes:
    """Give what a line shows in the end: its last state, and earlier ones that speak of failure."""
    if b"\r" not in line:
        return line
    states = [state for state in line.split(b"\r") if state.strip()]
    alike = {state.translate(SAME_DIGITS): state for state in states[:-1]}
    said = [state for state in alike.values() if any(word in state.lower() for word in LOUD)]
    return b"\n".join([*said, *states[-1:]])


def collector_prefix(lines: Sequence[bytes]) -> re.Pattern[bytes] | None:
    """Find the prefix that nearly all of these lines carry, if there is one."""
    full = [line for line in lines if line.strip()]
    if len(full) < ENOUGH_LINES:
        return None
    for prefix in PREFIXES:
        if sum(bool(prefix.match(line)) for line in full) >= MOST * len(full):
            return prefix
    return None


def clip_line(line: bytes) -> bytes:
    """Shorten a long line to its ends and what surrounds the words that speak of failure."""
    if len(line) <= LONG_LINE:
        return line
    parts, done = [line[:LINE_END]], LINE_END
    for at in sorted(_loud_places(line.lower())):
        start, end = max(done, at - AROUND_WORD), min(at + AROUND_WORD, len(line) - LINE_END)
        if start < at < end and sum(map(len, parts)) < LONG_LINE - 2 * LINE_END:
            parts.append(line[start:end])
            done = end
    return b" ... ".join([*parts, line[-LINE_END:]])


def _loud_places(lowered: bytes) -> set[int]:
    """Find where each loud word stands first and last."""
    ends = ((lowered.find(word), lowered.rfind(word)) for word in LOUD)
    return {at for places in ends for at in places if at >= 0}


def as_text(line: bytes) -> str:
    """Decode a line, whatever its bytes, without trailing blanks or further control characters."""
    text = line.decode(errors="replace").rstrip()
    return text if text.isprintable() else "".join(filter(_is_plain, text))


def _is_plain(character: str) -> bool:
    return character == "\t" or not ("\x7f" <= character <= "\x9f" or character in "\u2028\u2029")
