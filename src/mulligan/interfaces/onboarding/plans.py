"""What `mulligan init` proposes: the CI's commands first, then those of manifests. Pure."""

from dataclasses import dataclass, replace

from mulligan.domain.result import CheckKind
from mulligan.interfaces.onboarding.checkout import propose_checkout
from mulligan.interfaces.onboarding.ci_checks import propose_from_ci
from mulligan.interfaces.onboarding.ecosystems import propose_from_files
from mulligan.interfaces.onboarding.images import find_image
from mulligan.interfaces.onboarding.proposal import Proposal, free_name
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles
from mulligan.interfaces.onboarding.workflows import jobs_of


@dataclass(frozen=True, slots=True)
class Plan:
    """The proposal, and the checks of manifests that stand in for kinds of checks that fail."""

    proposal: Proposal
    spare: Proposal


def plan(tree: RepositoryFiles, machine: Machine) -> Plan:
    """Propose what CI runs, and for other kinds of checks what lock files and manifests say."""
    by_ci, by_files = propose_from_ci(tree, machine), propose_from_files(tree, machine)
    jobs = jobs_of(tree, machine)
    checkout, image = propose_checkout(tree.texts, jobs), find_image(tree, jobs)
    if not by_ci.checks:
        return Plan(replace(by_files, checkout=checkout, image=image), Proposal(""))
    kinds = {check.kind for check in by_ci.checks if not check.not_tried}
    others = {check.kind for check in by_files.checks} - kinds
    added = only(by_files, others)
    if CheckKind.TEST in kinds and not set(added.setup) <= set(by_ci.setup):
        # CI verifies without them, and they would install more.
        added = only(by_files, set())
    name = by_files.ecosystem or by_ci.ecosystem
    first = joined(by_ci, added)
    first = replace(first, ecosystem=name, checkout=checkout, image=image)
    return Plan(first, only(by_files, (kinds | others) - {check.kind for check in added.checks}))


def only(proposal: Proposal, kinds: set[CheckKind]) -> Proposal:
    """Return the checks of some kinds; without any, no setup commands either."""
    checks = tuple(check for check in proposal.checks if check.kind in kinds)
    return replace(proposal, checks=checks, setup=proposal.setup if checks else ())


def joined(first: Proposal, second: Proposal) -> Proposal:
    """Return the setup commands and checks of both; a name of two kept checks gets a number."""
    names, checks = {each.name for each in first.checks if each.is_kept}, list(first.checks)
    for check in second.checks:
        name = free_name(names, check.name)
        names.add(name)
        checks.append(replace(check, name=name))
    setup = tuple(dict.fromkeys((*first.setup, *second.setup)))
    return replace(first, setup=setup, checks=tuple(checks))


def missing(tried: Proposal, spare: Proposal) -> Proposal:
    """Return the spare checks of the kinds for which none was kept; none if tests were kept."""
    kept = {check.kind for check in tried.checks if check.is_kept}
    runs = {check.run for check in tried.checks}
    kinds = {check.kind for check in spare.checks if check.run not in runs} - kept
    return only(spare, set() if CheckKind.TEST in kept else kinds)
