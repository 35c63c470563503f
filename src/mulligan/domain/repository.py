"""What the tracker knows of a repository. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """What the tracker knows of a repository; `may_push` is None where it does not say."""

    name: str
    clone_url: str
    default_branch: str
    archived: bool = False
    has_issues: bool = True
    may_push: bool | None = None
