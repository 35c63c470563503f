"""Where a repository's submodules are fetched from: the same host only (WORKTREE-5). No I/O."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

SCP = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):(?P<path>(?!//|:).+)", re.ASCII)
"""The short form of an ssh URL, by git-fetch(1)."""

REMOTE_PATH = re.compile(r"/?(?!\.{1,2}/)[\w.+~-]+(?:/(?!\.{1,2}(?:/|$))[\w.+~-]+)+/?", re.ASCII)
"""The path of a repository on a server, without `..`, queries and escapes."""

WEB, SSH, LOCAL = ("https", "http"), "ssh", "file"
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE | re.ASCII)


class Refusal(NamedTuple):
    """Why an address is not used: the end of a sentence that begins with the address."""

    why: str


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address of a repository; `authority` is its user, host and port as written."""

    scheme: str
    authority: str
    host: str
    path: str

    @property
    def url(self) -> str:
        """The address for git."""
        if self.scheme == LOCAL:
            return self.path
        return f"{self.scheme}://{self.authority}/{self.path.lstrip('/')}"

    @property
    def place(self) -> str:
        """The host and port, without a user."""
        return self.authority.rpartition("@")[2].lower()

    @property
    def repository(self) -> str:
        """OWNER/NAME, as on GitHub."""
        return self.path.strip("/").removesuffix(".git")


def resolve(outer: str, url: str) -> str:
    """Resolve the URL of a submodule against the URL of the repository with it, as git does.

    Only a URL that begins with `./` or `../` is relative (gitmodules(5)).
    """
    if not url.startswith(("./", "../")):
        return url
    base, separator = outer.rstrip("/"), "/"
    while url.startswith(("./", "../")):
        is_up = url.startswith("../")
        url = url.partition("/")[2]
        if is_up:
            at = base.rfind("/")
            if at < 0:
                at, separator = base.rfind(":"), ":"
            base = base[: max(at, 0)]
    return f"{base}{separator}{url}".rstrip("/")


def parse(url: str) -> Address | None:
    """Parse the address of a repository; None if Mulligan does not fetch from such a one."""
    if url.startswith("/"):
        return Address(LOCAL, "", "", str(PurePosixPath(url)))
    if not SCHEME.match(url) or "://" not in url:
        found = SCP.fullmatch(url)
        named = url[: found.start("path") - 1] if found else ""
        return Address(SSH, named, found["host"].lower(), found["path"]) if found else None
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if parts.query or parts.fragment:
        return None
    if scheme == LOCAL and not parts.netloc:
        return Address(LOCAL, "", "", str(PurePosixPath(parts.path)))
    if scheme not in {*WEB, SSH} or not host:
        return None
    return Address(scheme, parts.netloc, host, parts.path)


def allowed_address(repository: str, url: str) -> Address | Refusal:
    """Return the address to fetch a submodule from, in the form of the repository's own URL.

    `url` is absolute. A URL of the same host in another form gets the scheme, user and port of the
    repository's: `git@github.com:acme/lib` becomes `https://github.com/acme/lib`.
    """
    own, wanted = parse(repository), parse(url)
    if own is None:
        return Refusal("cannot be compared with clone_url; use an https, ssh or local one")
    if wanted is None:
        return Refusal("is not an https, ssh or local address")
    if own.scheme == LOCAL:
        return _beside(own, wanted)
    if wanted.scheme == LOCAL or own.host != wanted.host:
        return Refusal(f"is not on {own.host}, where the repository is")
    is_own_port = own.place == wanted.place
    if own.scheme == wanted.scheme and not is_own_port:
        return Refusal(f"is at another port of {own.host} than the repository")
    if not REMOTE_PATH.fullmatch(wanted.path):
        return Refusal("has no plain path such as OWNER/NAME")
    authority = own.place if own.scheme in WEB else own.authority
    return Address(own.scheme, authority, own.host, wanted.path)


def same_place(repository: str, url: str) -> str | Refusal:
    """Return a web address if it has the scheme, host and port of the repository's."""
    own, wanted = parse(repository), parse(url)
    if own is None or wanted is None or wanted.scheme not in WEB:
        return Refusal("is not an https address")
    if (own.scheme, own.place) != (wanted.scheme, wanted.place):
        return Refusal(f"is not at {own.scheme}://{own.place}, where the repository is")
    if not REMOTE_PATH.fullmatch(wanted.path):
        return Refusal("has no plain path")
    return f"{wanted.scheme}://{wanted.place}/{wanted.path.strip('/')}"


def _beside(own: Address, wanted: Address) -> Address | Refusal:
    """Return a local address in the directory that has the repository, which is local, too."""
    if wanted.scheme != LOCAL:
        return Refusal("is not on this machine, where the repository's clone_url is")
    place, parent = PurePosixPath(wanted.path), PurePosixPath(own.path).parent
    if ".." in place.parts or not place.is_relative_to(parent) or place == parent:
        return Refusal("is not in the directory of the repository's clone_url")
    return wanted
