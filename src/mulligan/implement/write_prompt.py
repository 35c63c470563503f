"""Write the prompts of an attempt, store them as artifacts, and record them (PROMPT-4)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from mulligan.config.policy import Policy
from mulligan.domain.attachment import Attachment
from mulligan.domain.attempt import AttemptState, Task
from mulligan.domain.errors import UnavailableError
from mulligan.domain.events import (
    AttemptContextAssembled,
    AttemptContextDelivered,
    AttemptContextTruncated,
    FixRoundStarted,
    RetryContextAssembled,
)
from mulligan.domain.host import RunLimits
from mulligan.domain.issue import IssueRef
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.implement.attachments import directory_of, with_attachments
from mulligan.implement.ports import Artifacts, AttemptContext, Ledger, Worktree
from mulligan.implement.prompt.compose import ComposedPrompt, Previous, compose
from mulligan.implement.prompt.context_sections import failing_checks, fix_sections
from mulligan.implement.prompt.manifest import (
    CONTEXT,
    INPUTS,
    MANIFEST,
    PROMPT,
    Manifest,
    canonical,
    hash_of,
    inputs_of,
    inputs_of_round,
    of_round,
    sha256,
)
from mulligan.implement.prompt.outcome_text import failing
from mulligan.implement.prompt.prompt import WorktreeBase
from mulligan.implement.prompt.retry_context import AssembledContext, section_bytes
from mulligan.text.redact import Redactor


@dataclass(frozen=True, slots=True)
class _RunInputs:
    """The inputs of one run of the agent; `earlier` are the manifests of the runs before it.

    `window` has the sections that the prompt was written from.
    """

    prompt: str
    window: Mapping[str, JsonValue]
    context: str | None
    inputs: Mapping[str, JsonValue]
    earlier: tuple[str, ...]
    hidden: dict[str, int] = field(default_factory=dict[str, int])
    cut: dict[str, int] = field(default_factory=dict[str, int])
    attachments: tuple[Attachment, ...] = ()
    fix_round: int = 0


def write_first_prompt(at: AttemptContext) -> Task:
    """Write, store and record the first prompt of an attempt; give the agent's task."""
    case, tree, context = at.case, at.worktree, at.context
    issue = with_attachments(context.tracker.with_renderings(case.issue), at)
    shown = replace(case, issue=issue)
    image, limits = tree.image, at.agent.limits
    is_inside = image is not None and at.agent.runs_in(image)
    if limits and image and not is_inside:
        limits = replace(limits, is_beside_image=True)
    composed = deliver_prompt(shown, at.policy, context.artifacts, context.redactor, limits, tree)
    if composed.assembled:
        _record_context(composed.assembled, at)
    given = _RunInputs(
        prompt=composed.prompt,
        window=composed.sections,
        context=composed.context,
        inputs=inputs_of(case, at.policy, tree.start_sha),
        earlier=tuple(meta.manifest_hash for meta in case.history if meta.manifest_hash),
        hidden=composed.hidden,
        cut=composed.cut,
        attachments=issue.attachments,
    )
    return Task(
        issue=str(case.issue.ref),
        attempt=case.status.attempt,
        fix_round=0,
        prompt=composed.prompt,
        directory=tree.path,
        private=tree.private,
        log=context.artifacts.path(case.issue.ref, case.status.number, "agent.log"),
        manifest_hash=_record(given, at),
        previous_diff=_write_previous_diff(composed.previous, tree),
        attachments=directory if (directory := directory_of(at)).exists() else None,
        readable=tree.readable,
        writable=tree.writable,
        layer=tree.agent_layer,
        image=image if is_inside else None,
    )


def write_fix_prompt(task: Task, known: AttemptState, at: AttemptContext) -> Task:
    """Write the prompt of a fix round: the first prompt, and the failing checks (ATTEMPT-3).

    `known` is the state of the round that begins. The worktree is reset to the committed change
    first, so that files written by the checks do not get into the next change.
    """
    ref, number = at.case.issue.ref, len(known.earlier)
    if known.change and known.change.head_sha:
        at.worktree.check_out(known.change.head_sha, for_agent=True)
    failed, most = failing(known.earlier[-1].checks), at.policy.max_fix_rounds
    names = tuple(check.name for check in failed)
    at.context.ledger.append(ref, FixRoundStarted(number=number, most=most, failed=names))
    checks_text = failing_checks(failed, at.policy.context)
    window = fix_sections(task.prompt, (number, most), checks_text)
    redact = at.context.redactor.text
    given = _RunInputs(
        prompt=redact("\n\n".join(window.values()) + "\n"),
        window={name: redact(text) for name, text in window.items()},
        context=redact(checks_text),
        inputs=inputs_of_round(task.manifest_hash, (number, most), failed),
        earlier=tuple(each.manifest_hash for each in known.earlier if each.manifest_hash),
        fix_round=number,
    )
    return replace(
        task,
        fix_round=number,
        prompt=given.prompt,
        manifest_hash=_record(given, at),
        log=at.context.artifacts.path(ref, at.case.status.number, of_round("agent.log", number)),
    )


def deliver_prompt(
    case: IssueContext,
    policy: Policy,
    artifacts: Artifacts,
    redactor: Redactor,
    limits: RunLimits | None,
    tree: Worktree | None = None,
) -> ComposedPrompt:
    """Compose the prompt of the next or running attempt; record nothing.

    Without a worktree, its base is taken from the ledger. It omits attempts whose base was
    force-pushed: they did not fail, and their change may hold withdrawn commits.
    """
    sound = tuple(meta for meta in case.history if not meta.base_dropped)
    case = replace(case, history=sound)
    previous = _previous(case, tree, artifacts)
    return compose(case, policy, previous, _worktree_base(case, tree), redactor, limits)


def _worktree_base(case: IssueContext, tree: Worktree | None) -> WorktreeBase:
    """Name what the worktree equals, and whether an open pull request must be changed."""
    if tree and tree.start_sha != tree.base_sha:
        return WorktreeBase.PULL_REQUEST
    return WorktreeBase.REBUILT if case.status.feedback else WorktreeBase.BASE


def _previous(case: IssueContext, tree: Worktree | None, artifacts: Artifacts) -> Previous | None:
    """Find the previous diff: of the attempt described in full, or of the pull request."""
    if not case.history:
        return None
    # Imported here so that a first attempt does not depend on it in any way (PROMPT-1).
    from mulligan.implement.prompt.context_sections import detailed_attempt  # noqa: PLC0415

    detailed = detailed_attempt(case.history)
    published = detailed.outcome is Outcome.SUCCEEDED or not detailed.files_modified
    # Somebody committed on top of a draft, so the attempt in that draft was not discarded.
    goes_on = tree is not None and tree.start_sha != tree.base_sha
    stands = published or (goes_on and case.status.pull.draft_of == detailed.number)
    discarded = _diff(detailed, artifacts)
    proposed = tree.pull_request_diff if tree else discarded
    if case.status.pull.number is not None and stands and proposed:
        return Previous(proposed, stands=True)
    return Previous(discarded)


def _diff(meta: WorkerResultMeta, artifacts: Artifacts) -> bytes:
    """Read the diff of an attempt; empty if retention deleted it."""
    try:
        return artifacts.read(meta.diff_artifact) if meta.diff_artifact else b""
    except UnavailableError:
        return b""


PREVIOUS_DIFF = "previous.diff"


def _write_previous_diff(previous: Previous | None, tree: Worktree) -> Path | None:
    """Write the whole diff to a file that the agent can read (WORKTREE-3)."""
    if previous is None:
        return None
    place = tree.private / PREVIOUS_DIFF
    place.write_bytes(previous.diff)
    place.chmod(0o444)
    return place


# What is recorded of a prompt.


def _record(given: _RunInputs, at: AttemptContext) -> str:
    """Store the prompt and its inputs, record both, and give the manifest's hash."""
    case, context, agent = at.case, at.context, at.agent.identity
    inputs = context.redactor.content(canonical(given.inputs))
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
        context_window_hash=hash_of(given.window),
        rendered_prompt_hash=sha256(given.prompt.encode()),
        attachments=given.attachments,
    )
    written = {INPUTS: inputs, MANIFEST: manifest.canonical(), PROMPT: given.prompt.encode()}
    if given.context:
        written[CONTEXT] = given.context.encode()
    ref, number = case.issue.ref, case.status.number
    kept = {
        name: context.artifacts.write(ref, number, of_round(name, given.fix_round), content)
        for name, content in written.items()
    }
    _record_delivery(ref, manifest, kept[PROMPT], context.ledger)
    return manifest.digest()


def _record_delivery(ref: IssueRef, manifest: Manifest, prompt: str, ledger: Ledger) -> None:
    assembled = AttemptContextAssembled(
        manifest=manifest.model_dump(mode="json"),
        manifest_hash=manifest.digest(),
        inputs_hash=manifest.inputs_hash,
        context_hash=manifest.context_hash,
        fix_round=manifest.fix_round,
        context_window_hash=manifest.context_window_hash,
        rendered_prompt_hash=manifest.rendered_prompt_hash,
    )
    ledger.append(ref, assembled)
    delivered = AttemptContextDelivered(
        delivered_hash=manifest.delivered_hash,
        context_hash=manifest.context_hash,
        manifest_hash=manifest.digest(),
        prior_manifest_hashes=manifest.prior_manifest_hashes,
        prompt_artifact=prompt,
        fix_round=manifest.fix_round,
    )
    ledger.append(ref, delivered)


def _record_context(assembled: AssembledContext, at: AttemptContext) -> None:
    """Store the retry context, and record its sources and cuts."""
    case, context, size = at.case, at.context, len(assembled.text.encode())
    ref, number = case.issue.ref, case.status.number
    context.artifacts.write(
        ref, number, "context.json", assembled.context.model_dump_json().encode()
    )
    event = RetryContextAssembled(
        prior_attempts_count=len(case.history),
        context_size_bytes=size,
        feedback_sources=assembled.sources,
        section_bytes=section_bytes(assembled.context),
    )
    context.ledger.append(ref, event)
    if assembled.cuts:
        cut = AttemptContextTruncated(
            budget=assembled.budget,
            original=assembled.original,
            truncated=size,
            sections=tuple(cut.section for cut in assembled.cuts),
            reasons=tuple(cut.reason for cut in assembled.cuts),
        )
        context.ledger.append(ref, cut)
