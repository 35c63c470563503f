"""`mulligan events`: what is recorded, line by line, as it happens if that is wanted."""

import select
import signal
import sys
from bisect import bisect_left
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from mulligan.domain.events import Recorded
from mulligan.domain.issue import IssueRef
from mulligan.ports import Ledger
from mulligan.surfaces.cli.event_lines import line_of, schema, words_of
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json
from mulligan.surfaces.cli.setup import read_configuration
from mulligan.surfaces.cli.stats import before
from mulligan.surfaces.cli.terminal import SHIELD
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.records import open_ledger

GLANCE_MS = 500
"""How often the ledger is looked at while nothing happens."""


MOST = 500
"""Events that are read at a time."""


def print_schema() -> Exit:
    """Print the JSON Schema of a line."""
    print_json(schema())
    return Exit.DONE


def events(
    config: Path | None, issue: str | None, since: str | None, *, follow: bool, json: bool
) -> Exit:
    """Print the events there are, and those that come if `follow`."""
    ref = IssueRef.parse(issue) if issue else None
    begin = _begin(since)
    operator = read_configuration(config, needs_token=False)
    with open_ledger(operator) as ledger, ending_as_tail_does():
        after = begin if isinstance(begin, int) else number_at(begin, ledger)
        for page in pages(ledger, ref, after, follow=follow):
            for recorded in page:
                written = line_of(recorded, SHIELD.redactor) if json else _in_words(recorded)
                sys.stdout.write(f"{written}\n")
            sys.stdout.flush()
    return Exit.DONE


def _begin(since: str | None) -> int | datetime:
    """Read where to begin: after an event's number, or at so much time ago."""
    if since is None:
        return 0
    is_number = since.isascii() and since.isdigit()
    return int(since) if is_number else before(SystemClock().now(), since)


def number_at(time: datetime, ledger: Ledger) -> int:
    """Give the number after which events were recorded at a time or later; few are read for it."""
    after_each = range(ledger.newest())
    return bisect_left(after_each, time, key=lambda after: ledger.events(after=after, most=1)[0].at)


def pages(
    ledger: Ledger, ref: IssueRef | None, after: int, *, follow: bool
) -> Iterator[Sequence[Recorded]]:
    """Give the events above a number, of one issue or of all, and go on waiting for more."""
    while True:
        page = ledger.events(ref, after, MOST)
        yield page
        if page:
            after = page[-1].seq
        elif not follow or nobody_reads():
            return


def nobody_reads(milliseconds: int = GLANCE_MS) -> bool:
    """Wait a moment; tell at once where whoever reads the output has gone."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return bool(output.poll(milliseconds))


@contextmanager
def ending_as_tail_does() -> Generator[None]:
    """Let SIGINT, and writing to a pipe that nobody reads, end the process without a word."""
    before = [(each, signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGPIPE)]
    for each, _ in before:
        signal.signal(each, signal.SIG_DFL)
    try:
        yield
    finally:
        for each, kept in before:
            signal.signal(each, kept)


def _in_words(recorded: Recorded) -> str:
    return SHIELD.clean(words_of(recorded))
