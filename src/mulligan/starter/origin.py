"""Which repository a clone is of, by the address of its remote. Pure."""

import configparser
import re
from dataclasses import dataclass

ADDRESS = re.compile(
    r"(?:(?P<scheme>https?|ssh|git)://(?:[^@/]+@)?|(?:[^@/:]+@))(?P<host>[^:/]+)(?P<port>:\d+)?"
    r"[:/](?P<name>[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?"
)
GITHUB = "github.com"
REMOTES = ("origin", "upstream")


@dataclass(frozen=True, slots=True)
class Origin:
    """A repository on a GitHub; `host` is empty where only its name is known."""

    name: str
    host: str = ""

    @property
    def api_url(self) -> str | None:
        """Give the API's address where it is not that of github.com."""
        return f"https://{self.host}/api/v3" if self.host not in {"", GITHUB} else None


def origin_of(git_config: str) -> Origin | None:
    """Read a clone's git configuration; None where no remote has an address of a GitHub."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string("\n".join(line.strip() for line in git_config.splitlines()))
    except configparser.Error:
        return None
    urls = (parser.get(f'remote "{name}"', "url", fallback=None) for name in REMOTES)
    return next((found for url in urls if url and (found := at_address(url))), None)


def at_address(url: str) -> Origin | None:
    """Read the address of a repository; None where it is none of a GitHub."""
    found = ADDRESS.fullmatch(url)
    return Origin(found["name"], found["host"]) if found else None
