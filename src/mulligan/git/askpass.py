"""Hand git a token so that no argument, environment or file holds it (facts: memfd and askpass)."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

PROGRAM = Path(__file__).with_name("askpass.sh")
USER = "x-access-token"


@dataclass(frozen=True, slots=True)
class Access:
    """How a command of git reaches a remote: what it is given besides its arguments."""

    url: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    descriptors: tuple[int, ...] = ()


@contextmanager
def access(url: str, token: str | None) -> Generator[Access]:
    """Give access to a remote while the context lasts; a token goes to http(s) URLs only.

    A URL that names its own user is left as it is.
    """
    parts = urlsplit(url)
    if not token or parts.scheme not in {"http", "https"} or "@" in parts.netloc:
        yield Access(url)
        return
    server = f"{parts.scheme}://{USER}@{parts.netloc}"
    # The token lives in memory that only this process and the command started with it can open.
    descriptor = os.memfd_create("token")
    try:
        os.write(descriptor, token.strip().encode())
        environment = {
            "GIT_ASKPASS": str(PROGRAM),
            "MULLIGAN_ASKPASS_URL": server,
            "MULLIGAN_ASKPASS_FD": str(descriptor),
        }
        yield Access(server + url.partition(parts.netloc)[2], environment, (descriptor,))
    finally:
        os.close(descriptor)
