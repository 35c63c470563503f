"""Record the commands in comments, and execute each once, even after a `kill -9` (COMMAND-1).

A command is recorded when it is read, without the issue's lease, and is in force from then on.
It is executed under the lease, and recorded as answered when all its effects are done.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from mulligan.daemon.restoration import confirm_issue, restore_issue
from mulligan.domain.command import ASKING, CommentCommand, PendingCommand, Verb
from mulligan.domain.errors import DeniedError, GoneError, StandsBackError, WorldError
from mulligan.domain.events import Authorised, CommandReceived, HumanResponded, Resolution, Resolved
from mulligan.domain.issue import AuthorisingAct, IssueRef, Stage
from mulligan.domain.outcome import StandDown
from mulligan.domain.recorded_effects import CommandAnswered, CommentsRead
from mulligan.domain.status import IssueStatus, Phase
from mulligan.implement.decide import CommandAction, CommandDecision, decide_command
from mulligan.implement.effects import reopen_or_show, stand_down, sync_labels_and_status
from mulligan.implement.issue_snapshot import load_context, pull_request_elsewhere
from mulligan.implement.ports import LedgerReader, WriteContext

INITIAL_LOOKBACK = timedelta(days=1)
"""How long before the first known issue of a repository its comments are read from."""

SEEN_REACTION, DONE_REACTION, MISTYPED_REACTION = "eyes", "rocket", "confused"

KnownIssues = Mapping[IssueRef, IssueStatus]

log = structlog.get_logger()


def record_commands(repository: str, known: KnownIssues, context: WriteContext) -> list[IssueRef]:
    """Record every new command in the comments of a repository; return the issues it concerns.

    If GitHub cannot be read, log that and return no issues. Leave commands to the installation that
    owns the repository (OWNER-1).
    """
    after = context.ledger.comments_read_to(repository)
    try:
        batch = context.tracker.read_commands(
            repository, after, _since(known, context.clock.now()), _places(known)
        )
    except WorldError as error:
        log.warning("comments_not_read", repository=repository, reason=str(error))
        return []
    commanded, has_left_one = list[IssueRef](), False
    if batch.commands and not _owns(repository, context):
        return []
    for command in batch.commands:
        if ref := _issue_of(repository, command, known.values()):
            if context.mirror.is_anothers(ref):
                # That run reads it, or the next one, and believes no events of others.
                has_left_one = True
                continue
            try:
                confirm_issue(ref, context, is_asked=True)
                restore_issue(ref, context, is_asked=True)
            except WorldError as error:
                log.warning("not_restored", issue=str(ref), reason=str(error))
                return commanded
            _record(ref, command, context)
            commanded.append(ref)
    if batch.read_to > after and known and not has_left_one:
        # The ledger has only events of issues; which issue has this one does not matter.
        context.ledger.append(next(iter(known)), CommentsRead(read_to=batch.read_to))
    return commanded


def _owns(repository: str, context: WriteContext) -> bool:
    try:
        context.owners.require(repository)
    except (StandsBackError, WorldError) as error:
        log.warning("commands_not_recorded", repository=repository, reason=str(error))
        return False
    return True


def known_of(repository: str, ledger: LedgerReader) -> KnownIssues:
    """Read the statuses of a repository's issues from the ledger."""
    statuses = (each for each in ledger.statuses() if each.issue.repository == repository)
    return {status.issue: status for status in statuses}


def _places(known: KnownIssues) -> list[IssueRef]:
    """List where people may write commands: the issues, and their pull requests."""
    pulls = [
        IssueRef(ref.repository, status.pull.number)
        for ref, status in known.items()
        if status.pull.number
    ]
    return [*known, *pulls]


def _since(known: KnownIssues, now: datetime) -> datetime:
    """Return the time from which comments count: the first request, or else INITIAL_LOOKBACK."""
    known_since = (each.known_since for each in known.values() if each.known_since)
    lookback = min(known_since, default=now) - INITIAL_LOOKBACK
    requests = (each.request.at for each in known.values())
    return min((at for at in requests if at), default=lookback)


def _issue_of(
    repository: str, command: CommentCommand, known: Iterable[IssueStatus]
) -> IssueRef | None:
    """Return the issue of a command; on a pull request, the issue that Mulligan opened it for."""
    own_issue = None if command.on_pull_request else IssueRef(repository, command.number)
    of_pull_request = (
        status.issue
        for status in known
        if (status.pull.url or "").endswith(f"/pull/{command.number}")
    )
    return next(of_pull_request, own_issue)


def _record(ref: IssueRef, command: CommentCommand, context: WriteContext) -> None:
    if command.act in context.ledger.status(ref).handled:
        return
    received = CommandReceived(
        key=str(command.act),
        command=command.command.verb,
        text=command.command.text,
        actor=command.actor,
        actor_id=command.actor_id,
        at=command.at,
    )
    context.ledger.append(ref, received)
    context.writer.react(ref.repository, command.comment, SEEN_REACTION)


def execute_commands(ref: IssueRef, context: WriteContext) -> None:
    """Execute the pending commands, oldest first, unless an attempt is not concluded yet."""
    for act in [each.act for each in context.ledger.status(ref).pending]:
        status = context.ledger.status(ref)
        order = next((each for each in status.pending if each.act == act), None)
        if order is None or status.phase is not Phase.IDLE:
            return
        _respond(ref, order, _decide(order, status, context), context)


def answer_during_attempt(ref: IssueRef, context: WriteContext) -> None:
    """Answer queries under the lease while an attempt runs; other commands wait for its end.

    An attempt that is being stopped gets no answer now; its open commands are answered afterwards.
    """
    status = context.ledger.status(ref)
    if status.stage is not Stage.RUNNING or status.ending_reason:
        return
    for order in status.pending:
        if order.verb in ASKING:
            decision = _decide(order, status, context)
            if decision.action is CommandAction.REPLY:
                _respond(ref, order, decision, context)


def _respond(
    ref: IssueRef, order: PendingCommand, decision: CommandDecision, context: WriteContext
) -> None:
    _carry_out(ref, order, decision, context)
    if order.comment is not None:
        reaction = MISTYPED_REACTION if order.verb is Verb.MISTYPED else DONE_REACTION
        context.writer.react(ref.repository, order.comment, reaction)
    responded = HumanResponded(
        key=str(order.act), command=order.verb, actor=order.actor, answer=decision.answer
    )
    context.ledger.append(ref, responded)


def _decide(order: PendingCommand, status: IssueStatus, context: WriteContext) -> CommandDecision:
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
            CommandAction.NOTHING, "Another installation of Mulligan has this issue and answers."
        )
    ready = context.policies.in_force(status.issue.repository).labels.ready
    return decide_command(order, status, is_open=issue.is_open, is_labelled=issue.carries(ready))


def _carry_out(
    ref: IssueRef, order: PendingCommand, decision: CommandDecision, context: WriteContext
) -> None:
    match decision.action:
        case CommandAction.OPEN_EPOCH:
            context.ledger.append(ref, Authorised.of(_act(order)))
            sync_labels_and_status(ref, context)
        case CommandAction.STAND_DOWN:
            stand_down(ref, StandDown(reason=decision.answer), context)
        case CommandAction.RESOLVE:
            context.ledger.append(ref, _resolved(ref, decision.answer, context.ledger))
            reopen_or_show(ref, context)
        case CommandAction.SHOW:
            status = context.ledger.status(ref)
            if status.epoch or status.stage is Stage.RESOLVED:
                reopen_or_show(ref, context)
        case CommandAction.REPLY if order.comment is not None:
            _reply(ref, order, decision.answer, context)
        case CommandAction.REPLY | CommandAction.NOTHING:
            return
        case _:
            assert_never(decision.action)


def _reply(ref: IssueRef, order: PendingCommand, text: str, context: WriteContext) -> None:
    """Answer in a comment; if GitHub denies that, the reaction is the only answer."""
    case = load_context(context.tracker.read(ref), context)
    try:
        written = context.writer.reply(case, order, text)
        context.ledger.append(ref, CommandAnswered(act=order.act, comment=written))
    except DeniedError as error:
        log.warning("command_not_answered", issue=str(ref), reason=str(error))


def _act(order: PendingCommand) -> AuthorisingAct:
    guidance = order.text if order.verb is Verb.FIX else ""
    return AuthorisingAct(
        order.act,
        order.actor,
        order.at,
        trusted=True,
        actor_id=order.actor_id,
        guidance=guidance,
    )


def _resolved(ref: IssueRef, text: str, ledger: LedgerReader) -> Resolved:
    history = ledger.history(ref)
    return Resolved(
        resolution=Resolution.SKIPPED,
        reason=text,
        total_attempts=len(history),
        total_duration_ms=sum(meta.duration_ms for meta in history),
    )
