"""`mulligan demo` and `mulligan simulate`: a GitHub on this machine, and three issues on it."""

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel

from mulligan.config.load import load_operator
from mulligan.engine.once import once
from mulligan.errors import UsageError
from mulligan.simulator.seed import MAINTAINER, SCRIPTED_AGENT, Seeded, seed
from mulligan.simulator.server import running, serve
from mulligan.simulator.world import World
from mulligan.surfaces.cli.exits import Exit
from mulligan.surfaces.cli.setup import environment, make_console, start_logs
from mulligan.surfaces.cli.work import teller
from mulligan.wiring.bench import build

TOKEN = "a-token-of-the-simulated-github"  # noqa: S105 - of a GitHub that is not one
CONFIGURATION = """# Made by Mulligan for its own GitHub on this machine.
github: {{api_url: "{url}", token_file: "{directory}/token"}}
repositories:
  - name: {repository}
    clone_url: "{bare}"
agent: {{kind: command, command: ["{python}", "{agent}"], timeout: 1m}}
state: {{url: "sqlite:///{directory}/mulligan.db"}}
workspace: {{root: "{directory}/work"}}
limits: {{concurrency: 1}}
"""


def demo(directory: Path | None) -> Exit:
    """Run the life of three issues, and tell it."""
    console, place = make_console(), _place(directory)
    start_logs()
    world = World()
    seeded = seed(world, place, TOKEN)
    with running(world) as url:
        config = _write_configuration(place, url, seeded)
        _open_story(console, world, seeded)
        operator = load_operator(config, environment())
        with build(operator, environment(), teller(console)) as bench:
            done = once(bench.repositories, bench.tools)
    _close_story(console, world, seeded, config)
    return Exit.FAILED if done.problems else Exit.DONE


def simulate(port: int, directory: Path | None) -> Exit:
    """Keep a simulated GitHub running until it is interrupted."""
    console, place = make_console(), _place(directory)
    world = World()
    seeded = seed(world, place, TOKEN)

    def announce(url: str) -> None:
        config = _write_configuration(place, url, seeded)
        console.print(f"A GitHub of your own at {url}, with the repository {seeded.repository}.")
        console.print(f"In another terminal: mulligan once --config {config}")
        console.print("Ctrl-C ends it.")

    serve(world, port=port, announce=announce)
    return Exit.DONE


def _place(directory: Path | None) -> Path:
    """Make a directory to put everything in; one with something in it is left alone."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="mulligan-demo-"))
    if directory.exists() and any(directory.iterdir()):
        message = f"{directory} is not empty; name a new directory, or remove that one."
        raise UsageError(message)
    directory.mkdir(parents=True, exist_ok=True)
    return directory.absolute()


def _write_configuration(place: Path, url: str, seeded: Seeded) -> Path:
    token, config = place / "token", place / "mulligan.yml"
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    text = CONFIGURATION.format(
        url=url,
        directory=place,
        repository=seeded.repository,
        bare=seeded.bare,
        python=sys.executable,
        agent=SCRIPTED_AGENT,
    )
    config.write_text(text)
    return config


def _open_story(console: Console, world: World, seeded: Seeded) -> None:
    who = f"[bold]{MAINTAINER}[/]"
    console.print(f"{who} has put the label on three issues of {seeded.repository}:")
    for ref in seeded.issues:
        console.print(f"  [cyan]#{ref.number}[/]  {world.issue_of(ref).title}")
    console.print("A scripted agent works on them; it mends only what its prompt names.\n")


def _close_story(console: Console, world: World, seeded: Seeded, config: Path) -> None:
    _, second, third = seeded.issues
    comment = world.comments_of(third)[-1]
    console.print(f"\nWhat the people of [cyan]{third}[/] now read on GitHub:")
    console.print(Panel(Markdown(_shown(comment.body)), width=100))
    command = f"mulligan inspect {second}"
    console.print("Look at everything:")
    for line in (
        f"mulligan status --config {config}",
        f"{command} --config {config}",
        f"{command} --attempt 2 --prompt --config {config}",
        f"git -C {seeded.bare} log --oneline --all --graph",
    ):
        console.print(f"  {line}", markup=False)


def _shown(markdown: str) -> str:
    """Leave out the comment's marker, which GitHub does not show either."""
    return "\n".join(line for line in markdown.splitlines() if not line.startswith("<!--"))
