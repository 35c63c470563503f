"""What may help, chosen from the facts of the attempts and not from their outcome alone. Pure."""

from collections.abc import Iterator

from mulligan.domain.case import Case
from mulligan.domain.result import WorkerResultMeta
from mulligan.github.parts import code
from mulligan.retry.patterns import SAME_FAILURE, drift
from mulligan.retry.words import failing

NAMED = 3


def suggestions(case: Case) -> Iterator[str]:
    """Give what the attempts show, the most telling first (SPEC H2)."""
    last = case.epoch_history[-1] if case.epoch_history else None
    if last and last.guard_violations:
        wanted = [broken.path or broken.message.rstrip(".") for broken in last.guard_violations]
        yield f"Decide about what the agent wanted: {_named(list(dict.fromkeys(wanted)))}."
    if last and SAME_FAILURE in case.observed and (what := _failed(last)):
        yield (
            f"The same failure came back. Look at {what} itself: it may expect something else than "
            "this issue asks for."
        )
    if drift(case.epoch_history):
        yield (
            "The last two attempts changed different files altogether: the task may be unclear. "
            "Say where the change belongs."
        )


def _failed(last: WorkerResultMeta) -> str:
    red = failing(last.checks)
    tests = [finding.test_id for check in red for finding in check.findings if finding.test_id]
    return _named(tests or [check.name for check in red])


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - NAMED
    shown = [code(name) for name in names[:NAMED]]
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)
