"""What the tracker knows of a repository. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RepositoryFacts:
    """What the tracker knows of a repository."""

    name: str
    clone_url: str
    default_branch: str
    archived: bool = False
