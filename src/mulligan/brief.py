"""Write what the agent is told, keep it, and record what was told (SPEC A5, C1)."""

from dataclasses import dataclass, replace
from pathlib import Path

from mulligan.config.policy import Policy
from mulligan.domain.attempt import Evidence, Task
from mulligan.domain.case import Case
from mulligan.domain.events import (
    AttemptContextDelivered,
    AttemptContextTruncated,
    FixRoundStarted,
    RetryContextAssembled,
)
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.errors import UnavailableError
from mulligan.ports import Worktree
from mulligan.retry.fix import render_fix_prompt
from mulligan.retry.lineage import CONTEXT, INPUTS, MANIFEST, PROMPT
from mulligan.retry.manifest import Manifest, canonical, inputs_of, sha256
from mulligan.retry.prompt import Ground, Request, render_prompt
from mulligan.retry.sight import see
from mulligan.retry.words import failing
from mulligan.tools import Tools, Trial

PREVIOUS_DIFF = "previous.diff"


def write_brief(case: Case, policy: Policy, tree: Worktree, tools: Tools) -> Task:
    """Assemble the prompt of this attempt; give the agent's task."""
    ref, number = case.issue.ref, case.status.number
    previous = _previous(case, tree, tools)
    context = _retry_context(case, policy, previous, tools) if previous else None
    seen = see(case.issue)
    position = (case.counted + 1, case.max_attempts)
    request = Request(seen.issue, policy, position, context, _ground(case, tree))
    prompt = tools.redactor.text(render_prompt(request)).encode()
    told = _Told(context, prompt, seen.counts)
    manifest = _manifest(case, policy, tree.start_sha, told, tools)
    tools.artifacts.write(ref, number, MANIFEST, manifest.canonical())
    delivered = AttemptContextDelivered(
        delivered_hash=manifest.delivered_hash,
        context_hash=manifest.context_hash,
        manifest_hash=manifest.digest(),
        prior_manifest_hashes=manifest.prior_manifest_hashes,
        prompt_artifact=tools.artifacts.write(ref, number, PROMPT, prompt),
    )
    tools.ledger.append(ref, delivered)
    return Task(
        issue=str(ref),
        attempt=case.status.attempt,
        fix_round=0,
        prompt=prompt.decode(),
        directory=tree.path,
        private=tree.private,
        log=tools.artifacts.path(ref, number, "agent.log"),
        manifest_hash=manifest.digest(),
        previous_diff=_put_down(previous, tree),
        readable=tree.readable,
        writable=tree.writable,
    )


@dataclass(frozen=True, slots=True)
class _Told:
    """What an attempt is told, and what of the issue's text it is not, by kind."""

    context: str | None
    prompt: bytes
    hidden: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Previous:
    """The diff that an attempt goes on from: a discarded one, or one that `stands`."""

    diff: bytes
    stands: bool = False


def _manifest(case: Case, policy: Policy, start_sha: str, told: _Told, tools: Tools) -> Manifest:
    """Keep what the prompt was made from, and hash all of it."""
    inputs = tools.redactor.content(canonical(inputs_of(case, policy, start_sha)))
    tools.artifacts.write(case.issue.ref, case.status.number, INPUTS, inputs)
    return Manifest(
        inputs_hash=sha256(inputs),
        context_hash=sha256(told.context.encode()) if told.context else None,
        delivered_hash=sha256(told.prompt),
        prior_manifest_hashes=tuple(
            meta.manifest_hash for meta in case.history if meta.manifest_hash
        ),
        agent=tools.agent.name,
        hidden=told.hidden,
    )


def write_fix_brief(brief: Task, known: Evidence, at: Trial) -> Task:
    """Let the agent go on with its own change: the brief again, and what fails now (SPEC A12).

    `known` is of the round that begins; the worktree is reset to the change first, so that what
    the checks left is no part of the next one.
    """
    ref, attempt, number = at.case.issue.ref, at.case.status.number, len(known.earlier)
    if known.change and known.change.head_sha:
        at.tree.show_commit(known.change.head_sha)
    failed = failing(known.earlier[-1].checks)
    most = at.policy.max_fix_rounds
    started = FixRoundStarted(
        number=number, most=most, failed=tuple(check.name for check in failed)
    )
    at.tools.ledger.append(ref, started)
    text = render_fix_prompt(brief.prompt, (number, most), failed, at.policy.context)
    prompt = at.tools.redactor.text(text)
    kept = at.tools.artifacts.write(ref, attempt, f"prompt-fix-{number}.md", prompt.encode())
    delivered = AttemptContextDelivered(
        delivered_hash=sha256(prompt.encode()),
        manifest_hash=brief.manifest_hash,
        prompt_artifact=kept,
    )
    at.tools.ledger.append(ref, delivered)
    log = at.tools.artifacts.path(ref, attempt, f"agent-fix-{number}.log")
    return replace(brief, fix_round=number, prompt=prompt, log=log)


def _retry_context(case: Case, policy: Policy, previous: _Previous, tools: Tools) -> str:
    """Assemble the record of the earlier attempts, and record what went into it and what not."""
    # Imported here so that a first attempt does not depend on it in any way (SPEC C2).
    from mulligan.retry.context import assemble  # noqa: PLC0415

    ref, number = case.issue.ref, case.status.number
    told = assemble(case, policy.context, previous.diff, standing=previous.stands)
    tools.artifacts.write(ref, number, "context.json", told.context.model_dump_json().encode())
    assembled = RetryContextAssembled(
        prior_attempts_count=len(case.history),
        context_size_bytes=len(told.text.encode()),
        feedback_sources=told.sources,
    )
    tools.ledger.append(ref, assembled)
    if told.cuts:
        cut = AttemptContextTruncated(
            budget=told.budget,
            original=told.original,
            truncated=len(told.text.encode()),
            sections=tuple(cut.section for cut in told.cuts),
            reasons=tuple(cut.reason for cut in told.cuts),
        )
        tools.ledger.append(ref, cut)
    text = tools.redactor.text(told.text)
    tools.artifacts.write(ref, number, CONTEXT, text.encode())
    return text


def _diff(meta: WorkerResultMeta, tools: Tools) -> bytes:
    """Read the diff of an attempt; one that retention took is empty."""
    try:
        return tools.artifacts.read(meta.diff_artifact) if meta.diff_artifact else b""
    except UnavailableError:
        return b""


def _previous(case: Case, tree: Worktree, tools: Tools) -> _Previous | None:
    """Find the diff to go on from: of the attempt told in full, or else of the pull request."""
    if not case.history:
        return None
    from mulligan.retry.context import told_in_full  # noqa: PLC0415 - see above

    told = told_in_full(case.history)
    published = told.outcome is Outcome.SUCCEEDED or not told.files_modified
    if case.status.pull_number is not None and published and (proposed := tree.proposed):
        return _Previous(proposed, stands=True)
    return _Previous(_diff(told, tools))


def _put_down(previous: _Previous | None, tree: Worktree) -> Path | None:
    """Put the whole diff where the agent can read it (SPEC A2)."""
    if previous is None:
        return None
    place = tree.private / PREVIOUS_DIFF
    place.write_bytes(previous.diff)
    place.chmod(0o444)
    return place


def _ground(case: Case, tree: Worktree) -> Ground:
    """Say what the worktree equals, and whether a pull request stands that is to be changed."""
    if tree.start_sha != tree.base_sha:
        return Ground.PULL_REQUEST
    return Ground.REBUILT if case.status.feedback else Ground.BASE
