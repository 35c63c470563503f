"""The commands that people can also give in comments (SPEC H4)."""

from typing import Annotated

import typer

from mulligan.surfaces.cli.application import Config, Issue, Json, in_one_sentence
from mulligan.surfaces.cli.exits import Exit


@in_one_sentence
def retry(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Give an issue new attempts; verified work that was kept is published instead."""
    from mulligan.domain.command import Verb
    from mulligan.surfaces.cli import orders

    return orders.give(config, Verb.RETRY, issue, "", json=json)


@in_one_sentence
def fix(
    issue: Issue,
    what: Annotated[list[str], typer.Argument(help="What is to be done.", metavar="TEXT")],
    *,
    config: Config = None,
    json: Json = False,
) -> Exit:
    """Give an issue new attempts that follow your words; an attempt that runs is ended."""
    from mulligan.domain.command import Verb
    from mulligan.surfaces.cli import orders

    return orders.give(config, Verb.FIX, issue, " ".join(what), json=json)


@in_one_sentence
def skip(
    issue: Issue,
    reason: Annotated[list[str] | None, typer.Argument(help="Why.", metavar="REASON")] = None,
    *,
    config: Config = None,
    json: Json = False,
) -> Exit:
    """Leave an issue alone, and take Mulligan's labels off it."""
    from mulligan.domain.command import Verb
    from mulligan.surfaces.cli import orders

    return orders.give(config, Verb.SKIP, issue, " ".join(reason or ()), json=json)


@in_one_sentence
def abort(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Stop the attempt that runs, and keep its work; it costs no attempt."""
    from mulligan.domain.command import Verb
    from mulligan.surfaces.cli import orders

    return orders.give(config, Verb.ABORT, issue, "", json=json)


@in_one_sentence
def pause(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Begin no new attempt at an issue until it is resumed."""
    from mulligan.domain.command import Verb
    from mulligan.surfaces.cli import orders

    return orders.give(config, Verb.PAUSE, issue, "", json=json)


@in_one_sentence
def resume(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Let an issue go on that was paused."""
    from mulligan.domain.command import Verb
    from mulligan.surfaces.cli import orders

    return orders.give(config, Verb.RESUME, issue, "", json=json)
