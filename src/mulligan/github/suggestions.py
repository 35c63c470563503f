"""What may help, chosen from the facts of the attempts and not from their outcome alone. Pure."""

from collections.abc import Iterator, Mapping

from mulligan.domain.attempt import TimeLimit
from mulligan.domain.case import Case
from mulligan.domain.guard import GuardKind
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from mulligan.github.parts import code
from mulligan.retry.patterns import SAME_FAILURE, drift, is_same_change
from mulligan.retry.words import failing

NAMED = 3

WIDEN = "If {} should change, widen `scope` in `.github/mulligan.yml` on the base branch."
ON_GUARDS: Mapping[GuardKind, str] = {
    GuardKind.SCOPE: WIDEN,
    GuardKind.PROTECTED: (
        "If {} should change, change it yourself, or take its kind out of `scope.protect` in "
        "`.github/mulligan.yml`: such files steer what runs here."
    ),
    GuardKind.SIZE: (
        "If a change of {} is wanted, raise the limit that is named, under `scope` in "
        "`.github/mulligan.yml`; else split the issue."
    ),
    GuardKind.LINK: "If the link {} is wanted, make it yourself; an agent's may lead anywhere.",
    GuardKind.SUBMODULE: "If {} is to move, move the submodule yourself; agents must not.",
    GuardKind.DELETED_TEST: (
        "If tests in {} may go, allow it by `scope.allow_deleted_tests` in `.github/mulligan.yml`."
    ),
    GuardKind.SKIPPED_TEST: (
        "If tests in {} may be skipped, allow it by `scope.allow_skipped_tests` in "
        "`.github/mulligan.yml`."
    ),
    GuardKind.SECRET: (
        "Look at {}: if it is a real secret, find out how the agent came to it, and renew it; if "
        "it only looks like one, name the file under `scope.allow_secrets`."
    ),
}
"""What a person may decide, by the rule that was broken; `{}` names the files."""

ON_TIME: Mapping[str, str] = {
    TimeLimit.TIMEOUT: (
        "It worked until `agent.timeout` in `mulligan.yml`. Split the issue, or raise that."
    ),
    TimeLimit.STALL_TIMEOUT: (
        "It printed nothing for `agent.stall_timeout` in `mulligan.yml`: it may have waited for an "
        "answer, a download or a long test run."
    ),
    TimeLimit.BUDGET: (
        "It used up `budget.attempt` in `mulligan.yml`. Split the issue, or raise that."
    ),
}
"""What stopped an agent, by the recorded reason; any other is a limit of the agent's own."""

OWN_LIMIT = (
    "It stopped at a limit of its own, of turns or cost: raise that in `agent.arguments` in "
    "`mulligan.yml`, or split the issue."
)
MODELS_KEY = (
    "Renew the key of the agent's model, or its credit, where Mulligan runs; then write `/mulligan "
    "retry`. It is tried within the hour."
)
NO_CHECKS = (
    "No checks are configured, so nothing tells the agent whether it is done: name some under "
    "`checks` in `.github/mulligan.yml`."
)


def suggestions(case: Case) -> Iterator[str]:
    """Give what the attempts show, the most telling first (SPEC H2)."""
    last = case.epoch_history[-1] if case.epoch_history else None
    if last is None:
        return
    yield from _on_guards(last)
    yield from _on_the_ending(last)
    yield from _on_repetition(case, last)
    if drift(case.epoch_history):
        yield (
            "The last two attempts changed different files altogether: the task may be unclear. "
            "Say where the change belongs."
        )
    if not case.verifies:
        yield NO_CHECKS


def _on_guards(last: WorkerResultMeta) -> Iterator[str]:
    """Say what is to be decided about each broken rule, with the files that broke it."""
    for kind, words in ON_GUARDS.items():
        broken = [each for each in last.guard_violations if each.kind is kind]
        wanted = [each.path or each.message.rstrip(".") for each in broken]
        if wanted:
            yield words.format(_named(list(dict.fromkeys(wanted))))


def _on_the_ending(last: WorkerResultMeta) -> Iterator[str]:
    """Name the limit or the set-up that ended the attempt."""
    agent = last.agent
    if last.outcome is Outcome.AGENT_TIMED_OUT and agent:
        yield ON_TIME.get(agent.stop_reason or "", OWN_LIMIT)
        if agent.last_activity:
            yield f"The last thing that it did: {code(agent.last_activity, 150)}."
    if last.outcome is Outcome.DENIED and agent and agent.denied:
        yield MODELS_KEY
    late = [check.name for check in failing(last.checks) if check.timed_out]
    if late:
        yield f"Give {_named(late)} a longer `timeout` in `.github/mulligan.yml`, if it is slow."
    if agent and agent.refused_hosts:
        hosts = _named(agent.refused_hosts)
        yield f"The sandbox did not let the agent reach {hosts}; `sandbox.hosts` lets it."


def _on_repetition(case: Case, last: WorkerResultMeta) -> Iterator[str]:
    if SAME_FAILURE in case.observed and (what := _failed(last)):
        yield (
            f"The same failure came back. Look at {what} itself: it may expect something else than "
            "this issue asks for."
        )
    if any(map(is_same_change, case.observed)):
        yield (
            "Nearly the same change was made again; say in `/mulligan fix:` what to do "
            "differently, or more attempts will end alike."
        )


def _failed(last: WorkerResultMeta) -> str:
    red = failing(last.checks)
    tests = [finding.name for check in red for finding in check.findings if finding.test_id]
    return _named(tests or [check.name for check in red])


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - NAMED
    shown = [code(name) for name in names[:NAMED]]
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)
