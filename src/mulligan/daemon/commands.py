"""Hear the commands of people, and carry each out once, wherever a process is killed (SPEC H4).

A command is recorded as it is heard, without the issue's lease; what it says holds from then on.
It is carried out under the lease, and recorded as answered when all of it was done.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from mulligan.domain.command import ASKING, CommentCommand, Order, Verb
from mulligan.domain.errors import DeniedError, GoneError, WorldError
from mulligan.domain.events import Authorised, CommandReceived, EffectDone, HumanResponded, Resolved
from mulligan.domain.issue import AuthorisingAct, IssueRef, Stage
from mulligan.domain.outcome import StandDown
from mulligan.domain.status import READ_TO, IssueStatus, Phase, is_heard
from mulligan.implement.decide import CommandAction, CommandDecision, decide_command
from mulligan.implement.effects import THE_ONE, show, stand_down
from mulligan.implement.issue_snapshot import load_context, proposed_elsewhere
from mulligan.implement.ports import Tools

TO = "to:"
"""Tells how far from what Mulligan wrote itself, which the ledger knows by such ids."""

FIRST_LOOK = timedelta(days=1)
"""How far back comments are read from when the ledger came to know of a repository."""

SEEN, DONE, PUZZLED = "eyes", "rocket", "confused"

Known = Mapping[IssueRef, IssueStatus]

log = structlog.get_logger()


def listen(repository: str, known: Known, tools: Tools) -> list[IssueRef]:
    """Record every command that was given on a repository since it was listened to last.

    Gives the issues that they are about. That comments cannot be read now is logged, and stops
    nothing else.
    """
    after = max(map(_read_to, known.values()), default=0)
    try:
        heard = tools.tracker.hear(repository, after, _since(known, tools), _places(known))
    except WorldError as error:
        log.warning("not_heard", repository=repository, reason=str(error))
        return []
    noted = list[IssueRef]()
    for spoken in heard.commands:
        if ref := _about(repository, spoken, known.values()):
            _note(ref, spoken, tools)
            noted.append(ref)
    if heard.read_to > after and known:
        done = EffectDone(effect=READ_TO, key=THE_ONE, remote_id=f"{TO}{heard.read_to}")
        tools.ledger.append(next(iter(known)), done)
    return noted


def known_of(repository: str, tools: Tools) -> Known:
    """Read where the issues of a repository stand."""
    statuses = (each for each in tools.ledger.statuses() if each.issue.repository == repository)
    return {status.issue: status for status in statuses}


def _places(known: Known) -> list[IssueRef]:
    """List where people may speak: on issues, and on the pull requests that belong to them."""
    pulls = [
        IssueRef(ref.repository, status.pull_number)
        for ref, status in known.items()
        if status.pull_number
    ]
    return [*known, *pulls]


def _since(known: Known, tools: Tools) -> datetime:
    """Say from when on comments count: the first request, or not long before an issue was known."""
    heard_of = (each.known_since for each in known.values() if each.known_since)
    first_look = min(heard_of, default=tools.clock.now()) - FIRST_LOOK
    return min((each.act_at for each in known.values() if each.act_at), default=first_look)


def _read_to(status: IssueStatus) -> int:
    return int((status.effect(READ_TO, THE_ONE) or "0").removeprefix(TO))


def _about(
    repository: str, spoken: CommentCommand, known: Iterable[IssueStatus]
) -> IssueRef | None:
    """Find the issue that is meant: on a pull request, the one that Mulligan opened it for."""
    here = None if spoken.on_pull_request else IssueRef(repository, spoken.number)
    its_own = (
        status.issue
        for status in known
        if (status.pull_request or "").endswith(f"/pull/{spoken.number}")
    )
    return next(its_own, here)


def _note(ref: IssueRef, spoken: CommentCommand, tools: Tools) -> None:
    if is_heard(tools.ledger.status(ref).heard, spoken.key):
        return
    received = CommandReceived(
        key=spoken.key,
        command=spoken.command.verb,
        text=spoken.command.text,
        actor=spoken.actor,
        actor_id=spoken.actor_id,
        at=spoken.at,
    )
    tools.ledger.append(ref, received)
    tools.tracker.react(ref.repository, spoken.comment, SEEN)


def execute_commands(ref: IssueRef, tools: Tools) -> None:
    """Carry out what was commanded, oldest first, as soon as no attempt is left unconcluded."""
    for order in tools.ledger.status(ref).pending:
        status = tools.ledger.status(ref)
        if status.phase is not Phase.IDLE:
            return
        _respond(ref, order, _ruled(order, status, tools), tools)


def answer_meanwhile(ref: IssueRef, tools: Tools) -> None:
    """Answer, under the lease, what people ask while an attempt runs; the rest waits for its end.

    An attempt that is being ended is not spoken of: what is asked is answered after it.
    """
    status = tools.ledger.status(ref)
    if status.stage is not Stage.RUNNING or status.ending:
        return
    for order in status.pending:
        if order.verb in ASKING:
            ruled = _ruled(order, status, tools)
            if ruled.deed is CommandAction.TELL:
                _respond(ref, order, ruled, tools)


def _respond(ref: IssueRef, order: Order, ruled: CommandDecision, tools: Tools) -> None:
    _carry_out(ref, order, ruled, tools)
    if order.comment is not None:
        tools.tracker.react(ref.repository, order.comment, _reaction(order))
    responded = HumanResponded(
        key=order.key, command=order.verb, actor=order.actor, answer=ruled.words
    )
    tools.ledger.append(ref, responded)


def _ruled(order: Order, status: IssueStatus, tools: Tools) -> CommandDecision:
    try:
        issue = tools.tracker.read(status.issue)
    except GoneError as error:
        return CommandDecision(CommandAction.NOTHING, str(error))
    if issue.is_pull_request:
        return CommandDecision(
            CommandAction.NOTHING, "It is a pull request that Mulligan did not open."
        )
    if status.elsewhere and order.comment is not None and proposed_elsewhere(status.issue, tools):
        return CommandDecision(
            CommandAction.NOTHING, "The other installation of Mulligan that has it answers this."
        )
    return decide_command(order, status, is_open=issue.is_open)


def _carry_out(ref: IssueRef, order: Order, ruled: CommandDecision, tools: Tools) -> None:
    match ruled.deed:
        case CommandAction.OPEN_EPOCH:
            tools.ledger.append(ref, Authorised.of(_act(order)))
            show(ref, tools)
        case CommandAction.STAND_DOWN:
            stand_down(ref, StandDown(reason=ruled.words), tools)
        case CommandAction.RESOLVE:
            tools.ledger.append(ref, _resolved(ref, ruled.words, tools))
            show(ref, tools)
        case CommandAction.SHOW:
            if tools.ledger.status(ref).epoch:
                show(ref, tools)
        case CommandAction.TELL if order.comment is not None:
            _reply(ref, order, ruled.words, tools)
        case CommandAction.TELL | CommandAction.NOTHING:
            return
        case _:
            assert_never(ruled.deed)


def _reply(ref: IssueRef, order: Order, words: str, tools: Tools) -> None:
    """Answer in a comment; where none may be written, the reaction has to do."""
    case = load_context(tools.tracker.read(ref), tools)
    try:
        written = tools.tracker.reply(case, order, words)
        done = EffectDone(effect="reply", key=order.key, remote_id=written)
        tools.ledger.append(ref, done)
    except DeniedError as error:
        log.warning("not_answered", issue=str(ref), reason=str(error))


def _act(order: Order) -> AuthorisingAct:
    guidance = order.text if order.verb is Verb.FIX else ""
    return AuthorisingAct(
        order.key,
        order.actor,
        order.at,
        trusted=True,
        actor_id=order.actor_id,
        guidance=guidance,
    )


def _resolved(ref: IssueRef, words: str, tools: Tools) -> Resolved:
    history = tools.ledger.history(ref)
    return Resolved(
        resolution=words,
        total_attempts=len(history),
        total_duration_ms=sum(meta.duration_ms for meta in history),
    )


def _reaction(order: Order) -> str:
    return PUZZLED if order.verb is Verb.MISTYPED else DONE
