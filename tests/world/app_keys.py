"""The key of a GitHub App, and a clock that may jump."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


@cache
def key_pair() -> tuple[str, str]:
    """Make the halves of a key, as PEM."""
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


@dataclass
class JumpingClock:
    """The time, of Mulligan and of GitHub alike, which may be `behind`."""

    time: datetime = START
    behind: timedelta = timedelta()

    def now(self) -> datetime:
        return self.time

    def backoff(self, step: int) -> timedelta:
        return timedelta(seconds=step)
