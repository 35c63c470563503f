"""Write what the agent is told, keep it, and record what was told (SPEC A5, C1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from mulligan.config.policy import Policy
from mulligan.domain.attempt import AttemptState, Task
from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import (
    AttemptContextAssembled,
    AttemptContextDelivered,
    AttemptContextTruncated,
    FixRoundStarted,
    RetryContextAssembled,
)
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.ports import AttemptContext, BotContext, Worktree
from mulligan.implement.prompt.compose import ComposedPrompt, Previous, compose
from mulligan.implement.prompt.fix_prompt import failing_checks, render_fix_prompt
from mulligan.implement.prompt.manifest import (
    CONTEXT,
    INPUTS,
    MANIFEST,
    PROMPT,
    Manifest,
    canonical,
    inputs_of,
    inputs_of_round,
    of_round,
    sha256,
)
from mulligan.implement.prompt.outcome_text import failing
from mulligan.implement.prompt.prompt import WorktreeBase
from mulligan.implement.prompt.retry_context import AssembledContext


@dataclass(frozen=True, slots=True)
class _RunInputs:
    """What one run of the agent is given, and the manifests of the runs that it is told of."""

    prompt: str
    context: str | None
    inputs: Mapping[str, JsonValue]
    earlier: tuple[str, ...]
    hidden: dict[str, int] = field(default_factory=dict[str, int])
    cut: dict[str, int] = field(default_factory=dict[str, int])
    fix_round: int = 0


def write_first_prompt(
    case: IssueContext, policy: Policy, tree: Worktree, context: BotContext
) -> Task:
    """Assemble the prompt of this attempt; give the agent's task."""
    ref, told = case.issue.ref, deliver_prompt(case, policy, context, tree)
    if told.assembled:
        _record_context(case, told.assembled, context)
    given = _RunInputs(
        prompt=told.prompt,
        context=told.context,
        inputs=inputs_of(case, policy, tree.start_sha),
        earlier=tuple(meta.manifest_hash for meta in case.history if meta.manifest_hash),
        hidden=told.hidden,
        cut=told.cut,
    )
    return Task(
        issue=str(ref),
        attempt=case.status.attempt,
        fix_round=0,
        prompt=told.prompt,
        directory=tree.path,
        private=tree.private,
        log=context.artifacts.path(ref, case.status.number, "agent.log"),
        manifest_hash=_record(case, given, context),
        previous_diff=_write_previous_diff(told.previous, tree),
        readable=tree.readable,
        writable=tree.writable,
    )


def write_fix_prompt(task: Task, known: AttemptState, at: AttemptContext) -> Task:
    """Let the agent go on with its own change: the brief again, and what fails now (SPEC A12).

    `known` is of the round that begins; the worktree is reset to the change first, so that what
    the checks left is no part of the next one.
    """
    ref, number = at.case.issue.ref, len(known.earlier)
    if known.change and known.change.head_sha:
        at.worktree.check_out(known.change.head_sha)
    failed, most = failing(known.earlier[-1].checks), at.policy.max_fix_rounds
    names = tuple(check.name for check in failed)
    at.context.ledger.append(ref, FixRoundStarted(number=number, most=most, failed=names))
    told = failing_checks(failed, at.policy.context)
    text = render_fix_prompt(task.prompt, (number, most), told)
    given = _RunInputs(
        prompt=at.context.redactor.text(text),
        context=at.context.redactor.text(told),
        inputs=inputs_of_round(task.manifest_hash, (number, most), failed),
        earlier=tuple(each.manifest_hash for each in known.earlier if each.manifest_hash),
        fix_round=number,
    )
    return replace(
        task,
        fix_round=number,
        prompt=given.prompt,
        manifest_hash=_record(at.case, given, at.context),
        log=at.context.artifacts.path(ref, at.case.status.number, of_round("agent.log", number)),
    )


def deliver_prompt(
    case: IssueContext, policy: Policy, context: BotContext, tree: Worktree | None = None
) -> ComposedPrompt:
    """Write the prompt of the attempt that is next, or has begun; nothing is recorded.

    Without a worktree, what it will equal is told as far as the ledger knows. An attempt whose base
    was taken back is not told of: its change may hold what nobody wants any more, and did not fail.
    """
    sound = tuple(meta for meta in case.history if not meta.base_dropped)
    case = replace(case, history=sound)
    previous = _previous(case, tree, context)
    return compose(case, policy, previous, _ground(case, tree), context.redactor)


def _ground(case: IssueContext, tree: Worktree | None) -> WorktreeBase:
    """Say what the worktree equals, and whether a pull request stands that is to be changed."""
    if tree and tree.start_sha != tree.base_sha:
        return WorktreeBase.PULL_REQUEST
    return WorktreeBase.REBUILT if case.status.feedback else WorktreeBase.BASE


def _previous(case: IssueContext, tree: Worktree | None, context: BotContext) -> Previous | None:
    """Find the diff to go on from: of the attempt told in full, or else of the pull request."""
    if not case.history:
        return None
    # Imported here so that a first attempt does not depend on it in any way (SPEC C2).
    from mulligan.implement.prompt.context_sections import detailed_attempt  # noqa: PLC0415

    told = detailed_attempt(case.history)
    published = told.outcome is Outcome.SUCCEEDED or not told.files_modified
    # Somebody went on from a draft, so that the attempt that it shows was not thrown away.
    goes_on = tree is not None and tree.start_sha != tree.base_sha
    stands = published or (goes_on and case.status.draft_of == told.number)
    discarded = _diff(told, context)
    proposed = tree.pull_request_diff if tree else discarded
    if case.status.pull_number is not None and stands and proposed:
        return Previous(proposed, stands=True)
    return Previous(discarded)


def _diff(meta: WorkerResultMeta, context: BotContext) -> bytes:
    """Read the diff of an attempt; one that retention took is empty."""
    try:
        return context.artifacts.read(meta.diff_artifact) if meta.diff_artifact else b""
    except UnavailableError:
        return b""


PREVIOUS_DIFF = "previous.diff"


def _write_previous_diff(previous: Previous | None, tree: Worktree) -> Path | None:
    """Put the whole diff where the agent can read it (SPEC A2)."""
    if previous is None:
        return None
    place = tree.private / PREVIOUS_DIFF
    place.write_bytes(previous.diff)
    place.chmod(0o444)
    return place


# What is recorded of a prompt.


def _record(case: IssueContext, given: _RunInputs, context: BotContext) -> str:
    """Keep what a run is given and what that was made from; give the hash of all of it."""
    inputs = context.redactor.content(canonical(given.inputs))
    agent = context.agent.identity
    manifest = Manifest(
        inputs_hash=sha256(inputs),
        context_hash=sha256(given.context.encode()) if given.context else None,
        delivered_hash=sha256(given.prompt.encode()),
        prior_manifest_hashes=given.earlier,
        agent=agent.kind,
        agent_version=agent.version,
        sandbox=agent.sandbox,
        hidden=given.hidden,
        cut=given.cut,
        fix_round=given.fix_round,
    )
    written = {INPUTS: inputs, MANIFEST: manifest.canonical(), PROMPT: given.prompt.encode()}
    if given.context:
        written[CONTEXT] = given.context.encode()
    ref, number = case.issue.ref, case.status.number
    kept = {
        name: context.artifacts.write(ref, number, of_round(name, given.fix_round), content)
        for name, content in written.items()
    }
    _record_delivery(case, manifest, kept[PROMPT], context)
    return manifest.digest()


def _record_delivery(
    case: IssueContext, manifest: Manifest, prompt: str, context: BotContext
) -> None:
    assembled = AttemptContextAssembled(
        manifest=manifest.model_dump(mode="json"),
        manifest_hash=manifest.digest(),
        inputs_hash=manifest.inputs_hash,
        context_hash=manifest.context_hash,
        fix_round=manifest.fix_round,
    )
    context.ledger.append(case.issue.ref, assembled)
    delivered = AttemptContextDelivered(
        delivered_hash=manifest.delivered_hash,
        context_hash=manifest.context_hash,
        manifest_hash=manifest.digest(),
        prior_manifest_hashes=manifest.prior_manifest_hashes,
        prompt_artifact=prompt,
        fix_round=manifest.fix_round,
    )
    context.ledger.append(case.issue.ref, delivered)


def _record_context(case: IssueContext, told: AssembledContext, context: BotContext) -> None:
    """Record what went into the retry context and what did not."""
    ref, number, size = case.issue.ref, case.status.number, len(told.text.encode())
    context.artifacts.write(ref, number, "context.json", told.context.model_dump_json().encode())
    assembled = RetryContextAssembled(
        prior_attempts_count=len(case.history),
        context_size_bytes=size,
        feedback_sources=told.sources,
    )
    context.ledger.append(ref, assembled)
    if told.cuts:
        cut = AttemptContextTruncated(
            budget=told.budget,
            original=told.original,
            truncated=size,
            sections=tuple(cut.section for cut in told.cuts),
            reasons=tuple(cut.reason for cut in told.cuts),
        )
        context.ledger.append(ref, cut)
