"""Hand git a token so that no argument, no environment and no file holds it."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

PROGRAM = Path(__file__).with_name("askpass.sh")


@dataclass(frozen=True, slots=True)
class Access:
    """What a command of git is given so that it may use a remote."""

    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptors: tuple[int, ...] = ()


@contextmanager
def access(url: str, token: str | None) -> Generator[Access]:
    """Give access to a remote while the context lasts; a token goes to http(s) URLs only.

    A URL that names its own user is left to it.
    """
    parts = urlsplit(url)
    if not token or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        yield Access()
        return
    # The token lives in memory that only this process and the command started with it can open.
    descriptor = os.memfd_create("token")
    try:
        os.write(descriptor, token.strip().encode())
        environment = {
            "GIT_ASKPASS": str(PROGRAM),
            "MULLIGAN_ASKPASS_SCHEME": parts.scheme,
            "MULLIGAN_ASKPASS_HOST": parts.netloc,
            "MULLIGAN_ASKPASS_FD": str(descriptor),
        }
        yield Access(environment, (descriptor,))
    finally:
        os.close(descriptor)
