"""How the doctor looks at GitHub, git and this machine; what a probe cannot see, it raises."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mulligan.config.policy import Policy
from mulligan.domain.machine import Presence, Room, Walls
from mulligan.domain.repository import RepositoryFacts


@dataclass(frozen=True, slots=True)
class Probes:
    """Small looks at the world, each at one thing; none changes anything that counts.

    `notes` tells what the kind of the credential brings with it, and what can be done about it.
    `facts`, `labels`, `fetch` (which names the base branch), `policy`, `file` and `names` take a
    repository, the last two a path in it as well. `is_root` tells
    who Mulligan is. `at_work` names the Mulligan that runs now;
    `ledger` opens it for writing and counts its issues; `program_of` names what a shell line
    starts, and `finds` tells whether the shell knows it. `agents` are found by name, "" for none;
    `network` tells what the one of a name reaches from within the walls: none, model or open.
    """

    account: Callable[[], str]
    notes: Callable[[], Sequence[tuple[str, str]]]
    facts: Callable[[str], RepositoryFacts]
    labels: Callable[[str], frozenset[str]]
    fetch: Callable[[str], str]
    policy: Callable[[str], Policy]
    file: Callable[[str, str], bytes | None]
    names: Callable[[str, str], Sequence[str]]
    is_root: Callable[[], bool]
    git_version: Callable[[], tuple[int, int]]
    at_work: Callable[[], str | None]
    ledger: Callable[[], int]
    state_room: Callable[[], Room | None]
    workspace_room: Callable[[], Room]
    agents: Callable[[], Mapping[str, Presence]]
    walls: Callable[[], Walls]
    network: Callable[[str], str]
    program_of: Callable[[str], str]
    finds: Callable[[str], bool]
