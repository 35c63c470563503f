"""Compose the prompt of an attempt from issue, policy and retry context (PROMPT-2). Pure."""

from dataclasses import dataclass

from mulligan.config.policy import Policy
from mulligan.domain.host import RunLimits
from mulligan.domain.issue_context import IssueContext
from mulligan.domain.learning import notes_for
from mulligan.implement.prompt.prompt import (
    PromptRequest,
    WorktreeBase,
    render_prompt,
    sections_of,
    visible_issue,
)
from mulligan.implement.prompt.retry_context import AssembledContext
from mulligan.text.redact import Redactor


@dataclass(frozen=True, slots=True)
class Previous:
    """The diff that an attempt continues from: a discarded one, or one that `stands`."""

    diff: bytes
    stands: bool = False


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """The prompt of an attempt as delivered, with its `sections`.

    `position` is (this attempt, most attempts). `assembled` is the retry context before redaction.
    `hidden` counts the omitted parts of the issue's text, by kind. `previous` is the diff that the
    attempt continues from; None on the first attempt.
    """

    position: tuple[int, int]
    sections: dict[str, str]
    prompt: str
    context: str | None
    assembled: AssembledContext | None
    hidden: dict[str, int]
    previous: Previous | None

    @property
    def cut(self) -> dict[str, int]:
        """Count the omissions from the retry context, by section and unit."""
        counts = dict[str, int]()
        for cut in self.assembled.cuts if self.assembled else ():
            name = f"{cut.section} ({cut.unit}s)"
            counts[name] = counts.get(name, 0) + cut.count
        return counts


def compose(
    case: IssueContext,
    policy: Policy,
    previous: Previous | None,
    ground: WorktreeBase,
    redactor: Redactor,
    limits: RunLimits | None = None,
) -> ComposedPrompt:
    """Compose the prompt of the next or the running attempt; redact secrets."""
    assembled = _assembled(case, policy, previous) if previous else None
    context = redactor.text(assembled.text) if assembled else None
    seen, position = visible_issue(case.issue), (case.counted + 1, case.max_attempts)
    request = PromptRequest(
        issue=seen.issue,
        policy=policy,
        position=position,
        retry_context=context,
        guidance=case.status.request.guidance,
        worktree_base=ground,
        learned=notes_for(case.history, case.learnings or ()),
        limits=limits,
        title_request=case.title_request,
    )
    sections = {name: redactor.text(text) for name, text in sections_of(request).items()}
    return ComposedPrompt(
        position=position,
        sections={name: text for name, text in sections.items() if text},
        prompt=redactor.text(render_prompt(request)),
        context=context,
        assembled=assembled,
        hidden=seen.counts,
        previous=previous,
    )


def _assembled(case: IssueContext, policy: Policy, previous: Previous) -> AssembledContext:
    # Imported here so that a first attempt does not depend on it in any way (PROMPT-1).
    from mulligan.implement.prompt.context_sections import assemble  # noqa: PLC0415

    return assemble(case, policy.context, previous.diff, standing=previous.stands)
