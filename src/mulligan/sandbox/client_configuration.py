"""The system's configuration of package managers and git: which files commands may read."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mulligan.sandbox.programs import is_in_system
from mulligan.text.redact import Redactor
from mulligan.text.secret_shapes import assigns_secret

CLIENT_CONFIGURATION = tuple(
    map(
        Path,
        (
            # https://pip.pypa.io/en/stable/topics/configuration/
            *("/etc/pip.conf", "/etc/xdg/pip/pip.conf"),
            # https://docs.astral.sh/uv/concepts/configuration-files/
            *("/etc/uv/uv.toml", "/etc/xdg/uv/uv.toml"),
            # npm-config(7): globalconfig is below the prefix; Debian's npm reads /etc/npmrc.
            *("/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"),
            # https://git-scm.com/docs/git-config#FILES
            *("/etc/gitconfig", "/usr/local/etc/gitconfig"),
            # https://docs.conda.io/projects/conda/en/stable/user-guide/configuration/
            *("/etc/conda/.condarc", "/etc/conda/condarc"),
            # RubyGems, GNU wget, Maven
            *("/etc/gemrc", "/etc/wgetrc", "/etc/maven/settings.xml"),
        ),
    )
)
"""Files that hold the address of a package index, a proxy or a certificate for all users."""

MAX_BYTES = 1024 * 1024

MAX_FILES = 50

NAMED_FILE = re.compile(r"(?<![\w./:~-])/(?:etc|opt|var/lib)/[\w./@+-]*[\w]")
"""The path of a file that the system's administrator manages."""

XML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ClientConfiguration:
    """The files that exist: `readable` ones, and those with a secret, which are hidden.

    In a directory that commands see, a link is followed: nothing can be bound over it.
    """

    readable: tuple[Path, ...] = ()
    secret: tuple[Path, ...] = ()


def client_configuration(
    files: Iterable[Path] = CLIENT_CONFIGURATION,
) -> ClientConfiguration:
    """Read which files commands may read, with the system's files that they name.

    A file that does not exist or cannot be read is skipped.
    """
    readable, secret = list[Path](), list[Path]()
    wanted = dict.fromkeys(files)
    for file in wanted_files(wanted):
        content = _content(file)
        if content is None:
            continue
        text = content.decode(errors="replace")
        # A store of keys is binary.
        if len(content) > MAX_BYTES or b"\0" in content or has_secret(text):
            secret.append(file.resolve())
            continue
        readable.append(file.resolve() if is_in_system(str(file)) else file)
        wanted |= dict.fromkeys(files_named_in(text))
    return ClientConfiguration(tuple(readable), tuple(secret))


def wanted_files(wanted: dict[Path, None]) -> Iterator[Path]:
    """Yield each file once; `wanted` may grow meanwhile, up to MAX_FILES."""
    for position in range(MAX_FILES):
        if position == len(wanted):
            return
        yield [*wanted][position]


def _content(file: Path) -> bytes | None:
    try:
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError:
        return None


def files_named_in(text: str) -> tuple[Path, ...]:
    """List the files that a configuration names and that commands do not see yet."""
    found = (Path(each) for each in NAMED_FILE.findall(text))
    return tuple(path for path in found if ".." not in path.parts and not is_in_system(str(path)))


def has_secret(text: str) -> bool:
    """Return whether a configuration contains a password or token."""
    shown = XML_COMMENT.sub("", text)
    return assigns_secret(shown) or Redactor().text(shown) != shown
