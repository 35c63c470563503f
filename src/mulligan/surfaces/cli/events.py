"""`mulligan events`: what is recorded, line by line, as it happens if that is wanted."""

import select
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mulligan.domain.events import Recorded
from mulligan.domain.issue import IssueRef
from mulligan.surfaces.cli.event_lines import line_of, schema, words_of
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.layout import print_json
from mulligan.surfaces.cli.setup import read_configuration
from mulligan.surfaces.cli.stats import before
from mulligan.surfaces.cli.terminal import SHIELD
from mulligan.wiring.clock import SystemClock
from mulligan.wiring.records import EventFeed, Wanted, open_feed

GLANCE_MS = 500
"""How often the ledger is looked at while nothing happens."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where reading begins, and what is wanted."""

    after: int
    wanted: Wanted


def print_schema() -> Exit:
    """Print the JSON Schema of a line."""
    print_json(schema())
    return Exit.DONE


def events(
    config: Path | None, issue: str | None, since: str | None, *, follow: bool, json: bool
) -> Exit:
    """Print the events there are, and those that come if `follow`."""
    start = _start(issue, since)
    operator = read_configuration(config, needs_token=False)
    with open_feed(operator) as feed, ending_as_tail_does():
        for page in _pages(feed, start, follow=follow):
            for recorded in page:
                written = line_of(recorded, SHIELD.redactor) if json else _in_words(recorded)
                sys.stdout.write(f"{written}\n")
            sys.stdout.flush()
    return Exit.DONE


def _start(issue: str | None, since: str | None) -> Start:
    """Read where to begin: after an event's number, or at so much time ago."""
    ref = IssueRef.parse(issue) if issue else None
    if since and since.isascii() and since.isdigit():
        return Start(int(since), Wanted(ref))
    begin = before(SystemClock().now(), since) if since is not None else None
    return Start(0, Wanted(ref, begin))


def _pages(feed: EventFeed, start: Start, *, follow: bool) -> Iterator[list[Recorded]]:
    after = start.after
    while True:
        page = feed.page(after, start.wanted)
        yield list(page.events)
        if page.upto > after:
            after = page.upto
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
