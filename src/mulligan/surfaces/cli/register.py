"""`mulligan init --app`: have GitHub make an App for Mulligan, and keep its private key."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from mulligan.config.github import GitHubSettings
from mulligan.config.load import load_operator
from mulligan.errors import UsageError
from mulligan.starter.origin import Origin
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.loopback import open_porch
from mulligan.surfaces.cli.setup import environment, make_console
from mulligan.surfaces.cli.terminal import say_error
from mulligan.wiring.registration import MadeApp, Registration

KEY = Path("mulligan-app.pem")
LIMIT = timedelta(minutes=15)
USUAL = GitHubSettings().api_url


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says of the App."""

    organization: str | None = None
    name: str | None = None
    key_file: Path | None = None


def register(wanted: Wanted, origin: Origin | None, config: Path) -> Exit:
    """Lead a browser to GitHub and back, write the key, and say what belongs into mulligan.yml."""
    console, github = make_console(), _github(origin, config)
    owner = wanted.organization or (origin.name.partition("/")[0] if origin else "")
    name = wanted.name or f"mulligan-{owner}".rstrip("-")
    asked = Registration(github.api_url, name, wanted.organization, github.ca_file)
    place = (wanted.key_file or config.parent / KEY).absolute()
    try:
        with _reserved(place) as write:
            made = _have_made(asked, console)
            write(made.pem)
    except KeyboardInterrupt:
        say_error("Interrupted; no key was written. Begin again with `mulligan init --app`.")
        return Exit.INTERRUPTED
    _say(console, made, github, place)
    return Exit.DONE


def _github(origin: Origin | None, config: Path) -> GitHubSettings:
    """Find out on which GitHub: that of the configuration, else that of the clone."""
    if config.exists():
        return load_operator(config, environment(), needs_token=False).github
    return GitHubSettings(api_url=(origin and origin.api_url) or USUAL)


def _have_made(asked: Registration, console: Console) -> MadeApp:
    with open_porch() as porch:
        porch.page = asked.page(porch.state, porch.back)
        console.print(f"Open {porch.address} in a browser on this machine.", markup=False)
        return asked.exchange(porch.wait(LIMIT))


@contextmanager
def _reserved(place: Path) -> Generator[Callable[[str], None]]:
    """Have an empty file that only this user reads before there is a key, which is given once."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        message = f"{place} is there already; move it away, or name another --key-file."
        raise UsageError(message) from error
    except OSError as error:
        message = f"{place} cannot be written ({error.strerror}); name another --key-file."
        raise UsageError(message) from error
    with os.fdopen(opened, "w", encoding="utf-8") as file:
        try:
            yield lambda text: _keep(text, file.fileno())
        finally:
            if not os.fstat(file.fileno()).st_size:
                with suppress(OSError):
                    place.unlink()


def _keep(text: str, descriptor: int) -> None:
    os.write(descriptor, text.encode())
    os.fsync(descriptor)


def _say(console: Console, made: MadeApp, github: GitHubSettings, place: Path) -> None:
    server = f"  api_url: {github.api_url}\n" if github.api_url != USUAL else ""
    lines = f"github:\n{server}  app:\n    id: {made.id}\n    private_key_file: {place}\n"
    console.print(f"The App is made, and its private key is in {place}.", markup=False)
    console.print("\nIn mulligan.yml, in place of the token:\n", markup=False)
    console.print(lines, markup=False)
    console.print(f"Install it on the repositories at {made.install_url}", markup=False)
