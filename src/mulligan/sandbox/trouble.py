"""Why a sandbox does not work on a machine, in one sentence, and what mends it. Pure."""

from dataclasses import dataclass

DEBIAN = "Install it: apt-get install bubblewrap, or the like."


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why commands cannot be confined, and the cure."""

    said: str
    cure: str

    def __str__(self) -> str:
        """Say both."""
        return f"{self.said} {self.cure}"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the machine says about namespaces; each is off where it does not know of it."""

    apparmor_restricts: bool = False
    users_may_not: bool = False
    none_allowed: bool = False
    container: bool = False
    unit: bool = False


NOT_INSTALLED = Trouble("bubblewrap is not installed, so nothing is confined.", DEBIAN)
TOO_OLD = Trouble("bubblewrap is older than 0.8.", "Install a newer one.")
APPARMOR = Trouble(
    "AppArmor keeps programs from making namespaces.",
    "Allow it: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or a profile for bwrap that"
    " has `userns,`.",
)
USERS_MAY_NOT = Trouble(
    "Only root may make user namespaces on this machine.",
    "Allow it: sysctl kernel.unprivileged_userns_clone=1.",
)
NONE_ALLOWED = Trouble(
    "No user namespaces may be made here: the limit is reached, or this is a sandbox already.",
    "Raise it: sysctl user.max_user_namespaces=10000, or start Mulligan outside that sandbox.",
)
CONTAINER = Trouble(
    "This container may not make namespaces.",
    "Start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    " --security-opt systempaths=unconfined; or set sandbox to off and trust the container.",
)
UNIT = Trouble(
    "The systemd unit keeps bubblewrap from working.",
    "Take what its comments warn of out of the unit: RestrictNamespaces, ProtectKernelTunables,"
    " ProtectKernelLogs, ProtectHostname, ProcSubset, RestrictSUIDSGID, DynamicUser.",
)
FULL_DISK = Trouble("There is no room for the directory of a confined command.", "Make room.")
NETWORK = "loopback:"
"""Where bubblewrap cannot make a network of its own, its last word names this."""

NO_SPACE = "No space left on device"
REFUSED = ("not permitted", "ermission denied")


def explain(said: str, around: Surroundings) -> Trouble:
    """Find the reason for what bubblewrap said, in what is known of the machine."""
    last = said.strip().rpartition("\n")[2].rpartition("set up: ")[2].strip(".")
    if "Unknown option" in last:
        return TOO_OLD
    if NO_SPACE in said:
        return FULL_DISK
    if "exceeded" in last or around.none_allowed:
        return NONE_ALLOWED
    if around.apparmor_restricts and ("uid map" in last or NETWORK in last):
        return APPARMOR
    if any(word in last for word in REFUSED):
        for holds, reason in (
            (around.container, CONTAINER),
            (around.unit, UNIT),
            (around.apparmor_restricts, APPARMOR),
            (around.users_may_not, USERS_MAY_NOT),
        ):
            if holds:
                return reason
    return Trouble(
        f"bubblewrap does not work here: {last or 'it says nothing'}.",
        "Make that possible, or set sandbox to off.",
    )
