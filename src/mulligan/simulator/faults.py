"""Faults for rehearsals and tests: what the simulator answers instead of the truth. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, for one request.

    `World.faults` is asked for every request, with its method and its path (no query, and the
    path as `/repos/OWNER/NAME/…` whatever way the repository was named); None means no fault.

    - `Fault(502)`: that status, nothing is done; the body is GitHub's `{"message": …}`.
    - `Fault(502, apply=True)`: the request is carried out first, then answered with that status.
    - `Fault(403, headers={"retry-after": "60"})`: headers are added to the usual ones, and win.
    - `Fault(429, body='{"message": "…"}')`: the body as it stands.
    - `Fault(200, body="<html>…", content_type="text/html")`: a page where JSON is expected.
    - `Fault(200, body='[{"id": 1')`: JSON that breaks off.
    - `Fault(307, headers={"location": "…"})`: a redirect.
    - `Fault(delay=3.0)`: the true answer, after so many seconds; goes with all of the above.
    - `Fault(cut=True)`: the connection ends in the middle of the answer; with `apply=True` after
      the request was carried out.
    """

    status: int | None = None
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = "application/json; charset=utf-8"
    apply: bool = False
    delay: float = 0.0
    cut: bool = False

    @property
    def replaces(self) -> bool:
        """Tell whether the true answer is not given."""
        return self.cut or self.status is not None


Faults = Callable[[str, str], Fault | None]
"""Asked with the method and the path of each request."""
