"""Look at one repository as the doctor does: its rights, its base branch, its policy, its files."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from mulligan.config.mistakes import one_by_one
from mulligan.config.policy import Policy
from mulligan.domain.diagnosis import (
    TRY_AGAIN,
    Diagnosis,
    Level,
    failed,
    fault,
    fine,
    note,
    warning,
)
from mulligan.domain.repository import RepositoryFacts
from mulligan.engine.probes import Probes
from mulligan.engine.template import labels_put_on
from mulligan.errors import ConfigError, MulliganError

TEMPLATES = ".github/ISSUE_TEMPLATE"


def look_at_repository(name: str, probes: Probes, *, asks: bool) -> Iterator[Diagnosis]:
    """Say everything about one repository; GitHub is asked only where it answers at all."""
    rights = list(_rights(name, probes)) if asks else []
    yield from rights
    fetched = _fetch(name, probes)
    if fetched not in rights:
        yield fetched
    try:
        policy = probes.policy(name)
    except ConfigError as error:
        for mistake in one_by_one(error):
            yield failed(name, mistake, "Mend that file on the base branch.")
        return
    except MulliganError:
        # Whatever keeps git from reading a file has kept it from fetching too.
        return
    known = fetched.level is Level.OK
    if known or policy.checks:
        yield _policy(name, policy)
    yield from _programs(name, policy, probes, known=known)
    if asks and fetched not in rights:
        yield from _labels(name, policy, probes)
    if known:
        yield from _files(name, policy, probes)


def _rights(name: str, probes: Probes) -> Iterator[Diagnosis]:
    try:
        facts = probes.facts(name)
    except MulliganError as error:
        yield failed(name, error, TRY_AGAIN)
        return
    wrong = list(_wrong_rights(name, facts))
    yield from wrong or [fine(name, "The token's account may push, and issues are switched on.")]


def _wrong_rights(name: str, facts: RepositoryFacts) -> Iterator[Diagnosis]:
    if facts.archived:
        fix = "Unarchive it, or take it out of the configuration."
        yield fault(name, "The repository is archived, so nothing can be written to it.", fix)
    if not facts.has_issues:
        fix = "Switch them on in the repository's settings."
        yield fault(name, "Issues are switched off.", fix)
    if facts.may_push is None:
        fix = "Make sure that it has read and write access to contents, issues and pull requests."
        yield note(name, "GitHub does not say whether the token may push.", fix)
    elif not facts.may_push:
        fix = "Give that account the role Write, or use the token of one that has it."
        yield fault(name, "The token's account may not push.", fix)


def _fetch(name: str, probes: Probes) -> Diagnosis:
    try:
        return fine(name, f"The base branch {probes.fetch(name)!r} can be fetched.")
    except MulliganError as error:
        return failed(name, error, TRY_AGAIN)


def _policy(name: str, policy: Policy) -> Diagnosis:
    count = len(policy.checks)
    if not count:
        said = "The policy has no checks: whatever an agent changes is published unverified."
        return warning(name, said, "Name the repository's own commands under checks.")
    checks = "1 check" if count == 1 else f"{count} checks"
    return fine(name, f"The policy is valid: {checks}, {policy.max_issue_attempts} attempts.")


def _programs(name: str, policy: Policy, probes: Probes, *, known: bool) -> Iterator[Diagnosis]:
    """Look for what every line starts; `known` is whether the repository's files are."""
    lines = [(f"the set-up line {line!r}", line) for line in policy.setup]
    lines += [(f"the check {check.name!r}", check.run) for check in policy.checks]
    lines += [("the reviewer", policy.reviewer.run)] if policy.reviewer else []
    missing = [
        (what, program)
        for what, line in lines
        if (program := probes.program_of(line)) and not _is_there(name, program, probes, known)
    ]
    for what, program in missing:
        said = f"The program {program!r} of {what} is not there"
        if policy.setup and not what.startswith("the set-up"):
            fix = "Make sure that the set-up lines bring it."
            yield warning(name, f"{said} yet.", fix)
        else:
            yield fault(name, f"{said}.", "Install it, or mend the line.")
    if lines and not missing:
        yield fine(name, "The programs of the set-up lines and checks are there.")


def _is_there(name: str, program: str, probes: Probes, known: bool) -> bool:  # noqa: FBT001
    """Look in the repository for what is named by a path in it, and on the machine for the rest."""
    if "/" not in program or program.startswith("/"):
        return probes.finds(program)
    return not known or probes.file(name, str(PurePosixPath(program))) is not None


def _labels(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    try:
        there = {label.casefold() for label in probes.labels(name)}
    except MulliganError as error:
        yield failed(name, error, TRY_AGAIN)
        return
    ready, wanted = policy.labels.ready, policy.labels
    others = (wanted.running, wanted.review, wanted.hitl)
    if ready.casefold() not in there:
        fix = "Let `mulligan init` create it, or do that under Issues, Labels on GitHub."
        yield note(name, f"The label {ready!r} does not exist, so nobody can put it on yet.", fix)
    missing = ", ".join(repr(label) for label in others if label.casefold() not in there)
    if missing:
        fix = "Nothing is to be done: GitHub makes them when Mulligan first puts them on."
        yield note(name, f"Labels that do not exist yet: {missing}.", fix)


def _files(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    if b"filter=lfs" in (probes.file(name, ".gitattributes") or b""):
        fix = "Keep issues that need those files away from Mulligan."
        yield note(name, "It uses Git LFS, whose files stay pointers for agents and checks.", fix)
    if probes.file(name, ".gitmodules"):
        fix = "Let a set-up line fetch what the checks need of them."
        yield note(name, "It has submodules, which stay empty for agents and checks.", fix)
    ready = policy.labels.ready
    for path in probes.names(name, TEMPLATES):
        labels = labels_put_on(probes.file(name, path) or b"")
        if ready.casefold() in {label.casefold() for label in labels}:
            yield warning(
                name,
                f"{path} puts {ready!r} on for whoever opens an issue; that starts work only for "
                "people who are trusted, since they then count as having asked.",
                f"Take {ready!r} out of the template, so that nobody waits in vain.",
            )
