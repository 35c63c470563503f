"""What the next attempt is told of the earlier ones, within its budget (SPEC 8). Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mulligan.config.policy import ContextLimits
from mulligan.domain.case import Case
from mulligan.domain.outcome import FREE, Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.errors import InvariantError
from mulligan.retry.feedback import holds_first_finding
from mulligan.retry.layout import BYTES_PER_TOKEN, Assembled, Cut, Part, render
from mulligan.retry.parts import Parts, Room, build
from mulligan.retry.words import failing, verdict
from mulligan.text.guidance import guidance_block

LEAST_BYTES = 500 * BYTES_PER_TOKEN
"""What guidance leaves to the rest: as much as the smallest budget has (SPEC C14)."""

UNITS = {
    Part.EARLIER: "attempt",
    Part.FINDINGS: "check",
    Part.NAMES: "check",
    Part.WORDS: "character",
}


def told_in_full(history: Sequence[WorkerResultMeta]) -> WorkerResultMeta:
    """Pick the attempt to learn from: the last that ended by the agent's doing, else the last."""
    paid = [meta for meta in history if meta.outcome not in FREE]
    return paid[-1] if paid else history[-1]


def assemble(
    case: Case, limits: ContextLimits, diff: bytes, *, standing: bool = False
) -> Assembled:
    """Put the earlier attempts together for the next prompt.

    `diff` is of the one told in full, or of the pull request where that is `standing`.

    Raises InvariantError where the text would not say what it must.
    """
    parts = replace(Parts.of(case, told_in_full(case.history), limits, diff), standing=standing)
    guidance = guidance_block(case.status.guidance)
    budget = max(limits.max_context_tokens * BYTES_PER_TOKEN, len(guidance.encode()) + LEAST_BYTES)
    whole = parts.room(limits)
    room = _fit(parts, whole, budget)
    context = build(parts, room)
    text = render(context)
    prove(text, parts.told, room[Part.FINDINGS], budget)
    if guidance not in text:
        message = "The retry context does not hold the guidance whole."
        raise InvariantError(message)
    return Assembled(
        context=context,
        text=text,
        cuts=(*_over_limits(parts, whole, limits), *_over_budget(whole, room, budget)),
        sources=_sources(parts),
        budget=budget,
        original=_uncut(parts, whole),
    )


def prove(text: str, told: WorkerResultMeta, findings: int, budget: int) -> None:
    """Raise InvariantError unless the text keeps to its budget and names every failure.

    `findings` is how many failing checks there was room for beyond their names.
    """
    failed = failing(told.checks)
    if (told.outcome is Outcome.CHECKS_FAILED and not failed) or (
        told.outcome is Outcome.SCOPE_VIOLATION and not told.guard_violations
    ):
        message = f"The record of attempt {told.number} does not say what failed."
        raise InvariantError(message)
    for check in failed[:findings]:
        if verdict(check) not in text or not holds_first_finding(text, check):
            message = f"The retry context does not tell how {check.name!r} failed."
            raise InvariantError(message)
    if len(text.encode()) > budget:
        message = f"The retry context is larger than its budget of {budget} bytes."
        raise InvariantError(message)


def _fit(parts: Parts, whole: Room, budget: int) -> Room:
    """Cut part after part in the order of SPEC C8, each only as far as needed."""
    room = dict(whole)
    for part in Part:
        if _size(parts, room) > budget:
            room[part] = _largest(parts, room, part, budget)
    return room


def _largest(parts: Parts, room: Room, part: Part, budget: int) -> int:
    """Find how much of a part there is room for; 0 even where that is too much."""
    if _size(parts, {**room, part: 0}) > budget:
        return 0
    return bisect_left(
        range(1, room[part] + 1),
        1,
        key=lambda amount: _size(parts, {**room, part: amount}) > budget,
    )


def _size(parts: Parts, room: Room) -> int:
    return len(render(build(parts, room)).encode())


def _uncut(parts: Parts, whole: Room) -> int:
    """Count the bytes that there would be without any limit."""
    everyone = {**whole, Part.EARLIER: len(parts.earlier)}
    return _size(parts, everyone) + sum(part.left_out_bytes for part in parts.excerpts)


def _over_limits(parts: Parts, whole: Room, limits: ContextLimits) -> Iterator[Cut]:
    """Tell what the limits of single parts left out (SPEC C7)."""
    output = f"max_check_output_lines ({limits.max_check_output_lines})"
    digest = f"max_digest_chars ({limits.max_digest_chars}) or {output}"
    feedback = f"max_verifier_feedback_chars ({limits.max_verifier_feedback_chars})"
    code = f"max_code_lines ({limits.max_code_lines})"
    names = [f"check {check.name!r}" for check in failing(parts.told.checks)]
    limited = [
        (Part.DIFF.value, parts.diff, f"max_diff_lines ({limits.max_diff_lines})"),
        (Part.ADVISORY.value, parts.advisory, feedback),
        *((name, window, digest) for name, window in zip(names, parts.windows, strict=True)),
        *((f"code of {name}", at, code) for name, at in zip(names, parts.code, strict=True)),
        ("scope violations", parts.violations, output),
    ]
    earlier = len(parts.earlier) - whole[Part.EARLIER]
    if earlier:
        limit = f"max_prior_attempts ({limits.max_prior_attempts})"
        yield Cut(Part.EARLIER, earlier, "attempt", limit)
    for section, excerpt, limit in limited:
        if excerpt.left_out_bytes:
            yield Cut(section, excerpt.left_out_bytes, "byte", limit)


def _over_budget(whole: Room, room: Room, budget: int) -> Iterator[Cut]:
    """Tell what was left out to keep to the budget (SPEC C8)."""
    for part, amount in whole.items():
        if room[part] < amount:
            unit, limit = UNITS.get(part, "line"), f"the budget of {budget} bytes"
            yield Cut(part, amount - room[part], unit, limit)


def _sources(parts: Parts) -> tuple[str, ...]:
    """Name where the feedback comes from: guidance, then mechanical sources, then advice."""
    present = {
        "guidance": bool(parts.case.status.guidance),
        **{f"check:{check.name}": True for check in failing(parts.told.checks)},
        "scope": bool(parts.told.guard_violations),
        "outcome": not failing(parts.told.checks) and not parts.told.guard_violations,
        "review": bool(parts.remarks.lines),
        "github": bool(parts.on_github.lines),
        "verifier": bool(parts.advisory.lines),
        "diff": bool(parts.diff.lines),
    }
    return tuple(source for source, there in present.items() if there)
