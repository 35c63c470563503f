"""What is proposed for a repository: set-up lines and checks, with where they come from. Pure."""

from dataclasses import dataclass, replace

from mulligan.domain.result import CheckKind


@dataclass(frozen=True, slots=True)
class Proposed:
    """A check; `source` says where in the repository the command was found."""

    name: str
    run: str
    kind: CheckKind
    source: str
    network: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """The lines that install what is needed, and the checks that then run."""

    ecosystem: str
    setup: tuple[str, ...] = ()
    checks: tuple[Proposed, ...] = ()


def suite(run: str, source: str, *, network: bool = False) -> Proposed:
    """Propose to run the tests."""
    return Proposed("tests", run, CheckKind.TEST, source, network)


def lint(run: str, source: str) -> Proposed:
    """Propose to run a linter."""
    return Proposed("lint", run, CheckKind.LINT, source)


def types(run: str, source: str) -> Proposed:
    """Propose to check the types."""
    return Proposed("types", run, CheckKind.TYPE, source)


def build(run: str, source: str) -> Proposed:
    """Propose to build."""
    return Proposed("build", run, CheckKind.BUILD, source)


def together(proposals: list[Proposal]) -> Proposal:
    """Join the proposals of several ecosystems; of two checks with one name, each tells its own."""
    names = [check.name for each in proposals for check in each.checks]
    checks = [
        check
        if names.count(check.name) == 1
        else replace(check, name=f"{check.name} ({each.ecosystem})")
        for each in proposals
        for check in each.checks
    ]
    return Proposal(
        ecosystem=" and ".join(each.ecosystem for each in proposals),
        setup=tuple(line for each in proposals for line in each.setup),
        checks=tuple(checks),
    )
