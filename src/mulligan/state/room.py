"""How much room there is where things are kept."""

import os
from pathlib import Path

from mulligan.domain.machine import Room
from mulligan.errors import UnavailableError


def room_for(directory: Path) -> Room:
    """Look at a directory, or where it would be made; makes nothing."""
    try:
        place = next(each for each in (directory, *directory.parents) if each.exists())
        disk = os.statvfs(place)
    except OSError as error:
        message = f"{directory} cannot be looked at ({error.strerror}); see to the rights on it."
        raise UnavailableError(message) from error
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    files = disk.f_favail if disk.f_files else None
    return Room(directory, disk.f_bavail * disk.f_frsize, writable, files)
