"""Look whether there is room to work, before and while something runs."""

from contextlib import suppress
from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.domain.machine import MIB, shortage
from mulligan.errors import UnavailableError
from mulligan.state.database import state_directory
from mulligan.state.room import room_for


def lacks_room(operator: Operator) -> str | None:
    """Say where there is too little room for an attempt to begin; None where there is enough."""
    return shortage(map(room_for, _places(operator)), operator.limits.free_mib * MIB)


def ran_full(operator: Operator) -> UnavailableError | None:
    """Say that a disk has run so full that whatever runs has to end; None while it has not."""
    with suppress(UnavailableError):
        least = operator.limits.free_mib * MIB // 2
        if short := shortage(map(room_for, _places(operator)), least):
            return UnavailableError(f"The disk ran full, so the command was stopped. {short}")
    return None


def _places(operator: Operator) -> tuple[Path, ...]:
    state = state_directory(operator.state.url)
    return (operator.workspace.root, *([state] if state else []))
