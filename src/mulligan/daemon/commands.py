"""Hear the commands of people, and carry each out once, wherever a process is killed (SPEC H4).

A command is recorded as it is heard, without the issue's lease; what it says holds from then on.
It is carried out under the lease, and recorded as answered when all of it was done.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from mulligan.domain.command import ASKING, CommentCommand, PendingCommand, Verb
from mulligan.domain.errors import DeniedError, GoneError, WorldError
from mulligan.domain.events import Authorised, CommandReceived, EffectDone, HumanResponded, Resolved
from mulligan.domain.issue import AuthorisingAct, IssueRef, Stage
from mulligan.domain.outcome import StandDown
from mulligan.domain.status import READ_TO, IssueStatus, Phase, is_handled
from mulligan.implement.decide import CommandAction, CommandDecision, decide_command
from mulligan.implement.effects import SINGLE_KEY, stand_down, sync_labels_and_status
from mulligan.implement.issue_snapshot import load_context, pull_request_elsewhere
from mulligan.implement.ports import BotContext

READ_TO_PREFIX = "to:"
"""Tells how far from what Mulligan wrote itself, which the ledger knows by such ids."""

INITIAL_LOOKBACK = timedelta(days=1)
"""How far back comments are read from when the ledger came to know of a repository."""

SEEN_REACTION, DONE_REACTION, MISTYPED_REACTION = "eyes", "rocket", "confused"

KnownIssues = Mapping[IssueRef, IssueStatus]

log = structlog.get_logger()


def record_commands(repository: str, known: KnownIssues, context: BotContext) -> list[IssueRef]:
    """Record every command that was given on a repository since it was listened to last.

    Gives the issues that they are about. That comments cannot be read now is logged, and stops
    nothing else.
    """
    after = max(map(_read_to, known.values()), default=0)
    try:
        heard = context.tracker.read_commands(
            repository, after, _since(known, context), _places(known)
        )
    except WorldError as error:
        log.warning("not_heard", repository=repository, reason=str(error))
        return []
    noted = list[IssueRef]()
    for spoken in heard.commands:
        if ref := _issue_of(repository, spoken, known.values()):
            _record(ref, spoken, context)
            noted.append(ref)
    if heard.read_to > after and known:
        done = EffectDone(
            effect=READ_TO, key=SINGLE_KEY, remote_id=f"{READ_TO_PREFIX}{heard.read_to}"
        )
        context.ledger.append(next(iter(known)), done)
    return noted


def known_of(repository: str, context: BotContext) -> KnownIssues:
    """Read where the issues of a repository stand."""
    statuses = (each for each in context.ledger.statuses() if each.issue.repository == repository)
    return {status.issue: status for status in statuses}


def _places(known: KnownIssues) -> list[IssueRef]:
    """List where people may speak: on issues, and on the pull requests that belong to them."""
    pulls = [
        IssueRef(ref.repository, status.pull_number)
        for ref, status in known.items()
        if status.pull_number
    ]
    return [*known, *pulls]


def _since(known: KnownIssues, context: BotContext) -> datetime:
    """Say from when on comments count: the first request, or not long before an issue was known."""
    heard_of = (each.known_since for each in known.values() if each.known_since)
    first_look = min(heard_of, default=context.clock.now()) - INITIAL_LOOKBACK
    return min((each.act_at for each in known.values() if each.act_at), default=first_look)


def _read_to(status: IssueStatus) -> int:
    return int((status.effect(READ_TO, SINGLE_KEY) or "0").removeprefix(READ_TO_PREFIX))


def _issue_of(
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


def _record(ref: IssueRef, spoken: CommentCommand, context: BotContext) -> None:
    if is_handled(context.ledger.status(ref).heard, spoken.key):
        return
    received = CommandReceived(
        key=spoken.key,
        command=spoken.command.verb,
        text=spoken.command.text,
        actor=spoken.actor,
        actor_id=spoken.actor_id,
        at=spoken.at,
    )
    context.ledger.append(ref, received)
    context.tracker.react(ref.repository, spoken.comment, SEEN_REACTION)


def execute_commands(ref: IssueRef, context: BotContext) -> None:
    """Carry out what was commanded, oldest first, as soon as no attempt is left unconcluded."""
    for order in context.ledger.status(ref).pending:
        status = context.ledger.status(ref)
        if status.phase is not Phase.IDLE:
            return
        _respond(ref, order, _decide(order, status, context), context)


def answer_during_attempt(ref: IssueRef, context: BotContext) -> None:
    """Answer, under the lease, what people ask while an attempt runs; the rest waits for its end.

    An attempt that is being ended is not spoken of: what is asked is answered after it.
    """
    status = context.ledger.status(ref)
    if status.stage is not Stage.RUNNING or status.ending_reason:
        return
    for order in status.pending:
        if order.verb in ASKING:
            ruled = _decide(order, status, context)
            if ruled.action is CommandAction.REPLY:
                _respond(ref, order, ruled, context)


def _respond(
    ref: IssueRef, order: PendingCommand, ruled: CommandDecision, context: BotContext
) -> None:
    _carry_out(ref, order, ruled, context)
    if order.comment is not None:
        context.tracker.react(ref.repository, order.comment, _reaction(order))
    responded = HumanResponded(
        key=order.key, command=order.verb, actor=order.actor, answer=ruled.answer
    )
    context.ledger.append(ref, responded)


def _decide(order: PendingCommand, status: IssueStatus, context: BotContext) -> CommandDecision:
    try:
        issue = context.tracker.read(status.issue)
    except GoneError as error:
        return CommandDecision(CommandAction.NOTHING, str(error))
    if issue.is_pull_request:
        return CommandDecision(
            CommandAction.NOTHING, "It is a pull request that Mulligan did not open."
        )
    if (
        status.elsewhere
        and order.comment is not None
        and pull_request_elsewhere(status.issue, context)
    ):
        return CommandDecision(
            CommandAction.NOTHING, "The other installation of Mulligan that has it answers this."
        )
    return decide_command(order, status, is_open=issue.is_open)


def _carry_out(
    ref: IssueRef, order: PendingCommand, ruled: CommandDecision, context: BotContext
) -> None:
    match ruled.action:
        case CommandAction.OPEN_EPOCH:
            context.ledger.append(ref, Authorised.of(_act(order)))
            sync_labels_and_status(ref, context)
        case CommandAction.STAND_DOWN:
            stand_down(ref, StandDown(reason=ruled.answer), context)
        case CommandAction.RESOLVE:
            context.ledger.append(ref, _resolved(ref, ruled.answer, context))
            sync_labels_and_status(ref, context)
        case CommandAction.SHOW:
            if context.ledger.status(ref).epoch:
                sync_labels_and_status(ref, context)
        case CommandAction.REPLY if order.comment is not None:
            _reply(ref, order, ruled.answer, context)
        case CommandAction.REPLY | CommandAction.NOTHING:
            return
        case _:
            assert_never(ruled.deed)


def _reply(ref: IssueRef, order: PendingCommand, words: str, context: BotContext) -> None:
    """Answer in a comment; where none may be written, the reaction has to do."""
    case = load_context(context.tracker.read(ref), context)
    try:
        written = context.tracker.reply(case, order, words)
        done = EffectDone(effect="reply", key=order.key, remote_id=written)
        context.ledger.append(ref, done)
    except DeniedError as error:
        log.warning("not_answered", issue=str(ref), reason=str(error))


def _act(order: PendingCommand) -> AuthorisingAct:
    guidance = order.text if order.verb is Verb.FIX else ""
    return AuthorisingAct(
        order.key,
        order.actor,
        order.at,
        trusted=True,
        actor_id=order.actor_id,
        guidance=guidance,
    )


def _resolved(ref: IssueRef, words: str, context: BotContext) -> Resolved:
    history = context.ledger.history(ref)
    return Resolved(
        resolution=words,
        total_attempts=len(history),
        total_duration_ms=sum(meta.duration_ms for meta in history),
    )


def _reaction(order: PendingCommand) -> str:
    return MISTYPED_REACTION if order.verb is Verb.MISTYPED else DONE_REACTION
