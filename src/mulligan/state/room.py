"""How much room there is where things are kept."""

import os
import shutil
from pathlib import Path

from mulligan.domain.machine import Room
from mulligan.errors import UnavailableError


def room_for(directory: Path) -> Room:
    """Look at a directory, or where it would be made; makes nothing."""
    try:
        place = next(each for each in (directory, *directory.parents) if each.exists())
        free = shutil.disk_usage(place).free
    except OSError as error:
        message = f"{directory} cannot be looked at ({error.strerror}); see to the rights on it."
        raise UnavailableError(message) from error
    return Room(directory, free, place.is_dir() and os.access(place, os.W_OK | os.X_OK))
