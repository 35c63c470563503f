"""Turn the simulated GitHub's name of an issue into Mulligan's."""

from github_simulator.records import IssueLike
from mulligan.domain.issue import IssueRef


def ref_of(issue: IssueLike) -> IssueRef:
    return IssueRef(issue.repository, issue.number)
