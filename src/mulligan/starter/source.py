"""Which repository and commit an installation of Mulligan is of. Pure."""

import re
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from mulligan.errors import UsageError
from mulligan.starter.origin import Origin, at_address

NAMED = re.compile(r"([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)@([0-9a-f]{40})")
COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Source:
    """A repository of Mulligan and a commit of it; its `host` is empty where any will do."""

    name: str
    commit: str
    host: str = ""

    def serves(self, origin: Origin | None) -> bool:
        """Tell whether a workflow of a repository can call this one: both are on one GitHub."""
        return not self.host or origin is None or origin.host in {"", self.host}


class _Vcs(BaseModel):
    commit_id: str


class _DirectUrl(BaseModel):
    url: str
    vcs_info: _Vcs


def named(text: str) -> Source:
    """Read OWNER/NAME@COMMIT, as people give it."""
    found = NAMED.fullmatch(text)
    if found is None:
        message = f"--action is {text!r}; write OWNER/NAME@COMMIT, the commit with its 40 digits."
        raise UsageError(message)
    return Source(found[1], found[2])


def recorded(direct_url: str | None) -> Source | None:
    """Read what an installer has noted of where a package came from (direct_url.json, PEP 610)."""
    try:
        noted = _DirectUrl.model_validate_json(direct_url or "")
    except ValidationError:
        return None
    return source_at(at_address(noted.url), noted.vcs_info.commit_id)


def source_at(origin: Origin | None, commit: str) -> Source | None:
    """Name a commit of a repository; None where either is not known."""
    if origin is None or not COMMIT.fullmatch(commit):
        return None
    return Source(origin.name, commit, origin.host)
