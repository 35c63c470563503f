"""The key of the dashboard: who can read the directory of the ledger may look at it all."""

import hmac
import os
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from mulligan.errors import UnavailableError

FILE = "dashboard.key"
LEAST = 20
"""Characters of a key; a file with less was cut short."""


@dataclass(frozen=True, slots=True)
class Key:
    """What programs show as a bearer, and people type in once; it stays when Mulligan is restarted.

    Loopback is open to every user of the machine, and to agents whose network is open.
    """

    secret: str
    place: Path

    @property
    def cookie(self) -> str:
        """Give what a browser keeps instead, which opens nothing but the dashboard."""
        return hmac.new(self.secret.encode(), b"cookie", sha256).hexdigest()

    def opens(self, shown: str) -> bool:
        """Tell whether somebody shows the key."""
        return hmac.compare_digest(shown.encode(errors="replace"), self.secret.encode())

    def knows(self, cookie: str) -> bool:
        """Tell whether a browser was let in before."""
        return hmac.compare_digest(cookie.encode(errors="replace"), self.cookie.encode())


def key_in(directory: Path) -> Key:
    """Read the key, made where there is none; UnavailableError where that cannot be."""
    place = directory / FILE
    try:
        return Key(_read(place) or _make(place), place)
    except (OSError, UnicodeError) as error:
        message = f"The key of the dashboard cannot be kept at {place} ({error}); make room for it."
        raise UnavailableError(message) from error


def _read(place: Path) -> str:
    try:
        found = place.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    return found if len(found) >= LEAST else ""


def _make(place: Path) -> str:
    made = secrets.token_urlsafe(32)
    new = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(made + "\n")
    new.replace(place)
    return made
