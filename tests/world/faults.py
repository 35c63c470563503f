"""Every fault of GitHub that its users meet, at a rate."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from github_simulator.world import Fault

SECONDARY = '{"message": "You have exceeded a secondary rate limit. Please wait."}'
PAGE = "<html><title>Unicorn! GitHub</title></html>"

FAULTS: Mapping[str, Fault] = {
    "server error": Fault(502),
    "error page": Fault(503, PAGE, content_type="text/html"),
    "secondary limit": Fault(403, SECONDARY, {"retry-after": "60"}),
    "secondary limit without a time": Fault(403, SECONDARY),
    "not found": Fault(404),
    "cut connection": Fault(cut=True),
    "lost answer": Fault(502, apply=True),
    "cut answer": Fault(cut=True, apply=True),
    "truncated": Fault(200, '[{"id": 1', apply=True),
    "slow": Fault(delay=20.0),
    "stale": Fault(is_stale=True),
}
"""Requests with `apply` were carried out: a client that blindly repeats one does it twice."""


@dataclass
class FaultyGitHub:
    """Chooses a fault for a part of all requests; `met` counts them by kind."""

    random: Random
    rate: float = 0.0
    kinds: Sequence[str] = tuple(FAULTS)
    met: Counter[str] = field(default_factory=Counter[str])
    requests: int = 0

    def fault(self, _method: str, _path: str) -> Fault | None:
        """Draw for one request."""
        self.requests += 1
        if self.random.random() >= self.rate:
            return None
        name = self.random.choice(self.kinds)
        self.met[name] += 1
        return FAULTS[name]
