"""`/healthz` and `/readyz`: for what restarts a process, and for what waits for it."""

from mulligan.errors import MulliganError
from mulligan.stop import stopping
from mulligan.surfaces.dashboard.desk import Desk

REFUSED = "GitHub refused the token; give Mulligan a valid one with github.token_file."
FIRST_POLL = "No poll has got through to GitHub yet; the log says why."
STOPPING = "Mulligan was told to stop."


def illness(desk: Desk) -> str | None:
    """Say why the process should be started anew; None while its poll is alive.

    What lies elsewhere, such as a GitHub that is away, is not mended by that. Who was told to stop
    polls no more, and is let end what runs.
    """
    quiet = desk.pulse.quiet
    if quiet <= desk.patience() or stopping():
        return None
    return f"The poll has been quiet for {quiet:.0f} s; start Mulligan again."


def ailments(desk: Desk) -> list[str]:
    """Say what keeps it from taking up work, as far as that is known without trying."""
    wrong = [said for said in (illness(desk),) if said]
    if stopping():
        wrong.append(STOPPING)
    if not desk.pulse.vitals.served:
        wrong.append(FIRST_POLL)
    if desk.gauges.refused:
        wrong.append(REFUSED)
    return wrong


def unready(desk: Desk) -> list[str]:
    """Say what keeps it from taking up work; an empty list while nothing does."""
    wrong = ailments(desk)
    try:
        desk.check_writable()
    except MulliganError as error:
        wrong.append(str(error))
    return wrong
