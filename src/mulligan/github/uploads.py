"""Where GitHub keeps what people attach to issues (TRUST-6). Pure.

https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/attaching-files
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NAME = r"(?!\.)[\w.-]+"
FILE = r"[^/]+"

OF_THE_SITE = re.compile(
    rf"/user-attachments/(?:assets/{UUID}|files/\d+/{FILE})"
    rf"|/{NAME}/{NAME}/(?:assets/\d+/{UUID}|files/\d+/{FILE})"
    rf"|/storage/user/\d+/files/{UUID}",
    re.ASCII,
)
"""On the site itself; the second form is older, the third one is GitHub Enterprise Server's."""

OF_IMAGES = re.compile(rf"/\d+/\d+-{UUID}\.\w+", re.ASCII)
OF_MEDIA = re.compile(rf"/user/\d+/files/{UUID}", re.ASCII)

PUBLIC_API, PUBLIC_SITE = "api.github.com", "github.com"


@dataclass(frozen=True, slots=True)
class Uploads:
    """The addresses of uploads on one GitHub: a scheme, and the form of paths for each host."""

    scheme: str
    paths: Mapping[str, re.Pattern[str]]

    @classmethod
    def of(cls, api_url: str) -> Self:
        """Return those of the GitHub with this API."""
        parts = urlsplit(api_url)
        if parts.netloc == PUBLIC_API:
            return cls(
                "https",
                {
                    PUBLIC_SITE: OF_THE_SITE,
                    "user-images.githubusercontent.com": OF_IMAGES,
                    "private-user-images.githubusercontent.com": OF_IMAGES,
                },
            )
        # Enterprise Server has its API below the site; ghe.com has it on a host of its own.
        is_own_host = parts.netloc.endswith(".ghe.com")
        site = parts.netloc.removeprefix("api.") if is_own_host else parts.netloc
        hosts = {
            site: OF_THE_SITE,
            f"media.{site}": OF_MEDIA,
            f"user-images.{site}": OF_IMAGES,
            f"private-user-images.{site}": OF_IMAGES,
        }
        return cls(parts.scheme, hosts)

    def has(self, address: str) -> bool:
        """Return whether an address is of an upload, which nobody can change later."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return False
        path = self.paths.get(parts.netloc)
        return parts.scheme == self.scheme and bool(path and path.fullmatch(parts.path))
