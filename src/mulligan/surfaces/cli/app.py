"""The commands of `mulligan`, and what each of them takes."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Literal, ParamSpec

import typer

from mulligan import __version__
from mulligan.errors import ConfigError, MulliganError, ShutdownError, UsageError
from mulligan.surfaces.cli.exits import Exit

P = ParamSpec("P")

app = typer.Typer(
    name="mulligan",
    help="A labelled GitHub issue becomes a pull request, or reaches a person.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

config_app = typer.Typer(
    name="config", help="Check and show the configuration.", no_args_is_help=True
)
app.add_typer(config_app)

Config = Annotated[
    Path | None,
    typer.Option("--config", help="The configuration; default: ./mulligan.yml, $MULLIGAN_CONFIG."),
]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="The policy file of a repository, too or alone.")
]
Repository = Annotated[
    str | None,
    typer.Option(
        "--repository", metavar="OWNER/NAME", help="Whose it is; the operator's keys go over it."
    ),
]
Issue = Annotated[str, typer.Argument(help="OWNER/NAME#NUMBER", metavar="ISSUE")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]


def in_one_sentence(command: Callable[P, Exit]) -> Callable[P, None]:
    """Turn a command's errors into one sentence on standard error, and its end into a code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except (ConfigError, UsageError) as error:
            code = _refused(error, Exit.USAGE)
        except ShutdownError:
            code = Exit.INTERRUPTED
        except MulliganError as error:
            code = _refused(error, Exit.FAILED)
        raise typer.Exit(code)

    return run


def _refused(error: MulliganError, code: Exit) -> Exit:
    from mulligan.surfaces.cli.terminal import say_error

    say_error(str(error))
    return code


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - Typer calls it with the flag
    if wanted:
        typer.echo(f"mulligan {__version__}")
        raise typer.Exit


@app.callback()
def start(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """A labelled GitHub issue becomes a pull request, or reaches a person."""
    del version


@app.command()
@in_one_sentence
def once(
    *,
    config: Config = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="The most attempts for each issue in this pass.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The most issues in this pass.")] = None,
) -> Exit:
    """Make one pass: recover, then work each labelled issue until it rests."""
    from mulligan.surfaces.cli import work

    return work.once(config, attempts, limit)


@app.command()
@in_one_sentence
def run(*, config: Config = None) -> Exit:
    """Serve until told to stop: poll, work every labelled issue, watch for withdrawals."""
    from mulligan.surfaces.cli import run as module

    return module.run(config)


@app.command()
@in_one_sentence
def work(
    issue: Issue,
    *,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing on GitHub; say what would be done.")
    ] = False,
) -> Exit:
    """Make one attempt at an issue now; your command is the request, no label is needed."""
    from mulligan.surfaces.cli import work as module

    return module.work(issue, config, dry_run=dry_run)


@app.command()
@in_one_sentence
def status(*, config: Config = None, json: Json = False) -> Exit:
    """List every issue that Mulligan knows, and where it stands."""
    from mulligan.surfaces.cli import show

    return show.status(config, json=json)


@app.command()
@in_one_sentence
def inspect(
    issue: Issue,
    *,
    config: Config = None,
    json: Json = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Which attempt, counted over all epochs.")
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="The prompt as delivered.")] = False,
    context: Annotated[bool, typer.Option("--context", help="The retry context.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="The whole diff of the attempt.")] = False,
    log: Annotated[bool, typer.Option("--log", help="What the agent printed.")] = False,
    manifest: Annotated[bool, typer.Option("--manifest", help="Hashes of what was given.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Prove all hashes anew.")] = False,
) -> Exit:
    """Show what happened to an issue: its attempts, and what each was told and did."""
    from mulligan.surfaces.cli import show

    parts = {
        "prompt.md": prompt,
        "context.json": context,
        "changes.diff": diff,
        "agent.log": log,
        "manifest.json": manifest,
    }
    chosen = [name for name, wanted in parts.items() if wanted]
    if len(chosen) > 1:
        message = "Ask for one of --prompt, --context, --diff, --log and --manifest at a time."
        raise UsageError(message)
    if verify:
        return show.verify(config, issue, json=json)
    if chosen:
        return show.part(config, issue, attempt, chosen[0])
    return show.inspect(config, issue, attempt, json=json)


@app.command()
@in_one_sentence
def explain(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Say why an issue is, or is not, being worked on, rule by rule; changes nothing."""
    from mulligan.surfaces.cli import explain as module

    return module.explain(config, issue, json=json)


@app.command()
@in_one_sentence
def doctor(*, config: Config = None, json: Json = False) -> Exit:
    """Look whether everything that the work needs is there; each finding has its fix."""
    from mulligan.surfaces.cli import doctor as module

    return module.doctor(config, json=json)


@config_app.command()
@in_one_sentence
def check(
    *,
    config: Config = None,
    policy: PolicyFile = None,
    repository: Repository = None,
    json: Json = False,
) -> Exit:
    """Say that the configuration holds, or name every mistake with its line."""
    from mulligan.surfaces.cli import config as module

    return module.check(config, policy, repository, json=json)


@config_app.command()
@in_one_sentence
def show(
    *,
    config: Config = None,
    policy: PolicyFile = None,
    repository: Repository = None,
    json: Json = False,
) -> Exit:
    """Print what is in force, with every default; what comes from the environment is hidden."""
    from mulligan.surfaces.cli import config as module

    return module.show(config, policy, repository, json=json)


@config_app.command()
@in_one_sentence
def schema(
    file: Annotated[
        Literal["operator", "policy"],
        typer.Argument(help="mulligan.yml, or a repository's .github/mulligan.yml."),
    ] = "operator",
) -> Exit:
    """Print the JSON Schema of a configuration file, for editors."""
    from mulligan.surfaces.cli import config as module

    return module.schema(file)


@app.command("check")
@in_one_sentence
def check_here(
    *,
    policy: Annotated[
        Path | None, typer.Option(help="The policy file; default: .github/mulligan.yml here.")
    ] = None,
    json: Json = False,
) -> Exit:
    """Run a repository's checks in this directory, as it stands; say what an agent would hear."""
    from mulligan.surfaces.cli import verification

    return verification.check(policy, json=json)


@app.command()
@in_one_sentence
def digest(
    *,
    command: Annotated[str, typer.Option(help="What printed the log, such as 'pytest -q'.")] = "",
    exit_code: Annotated[int | None, typer.Option(help="What it exited with.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="The structured report that it wrote, such as JUnit XML.")
    ] = None,
    json: Json = False,
) -> Exit:
    """Condense a log from standard input to what an agent would be told of it."""
    from mulligan.surfaces.cli import verification

    return verification.digest(command, exit_code, report, json=json)


@app.command()
@in_one_sentence
def demo(
    *,
    directory: Annotated[
        Path | None, typer.Option(help="Where to put it; default: a new temporary directory.")
    ] = None,
) -> Exit:
    """Watch the life of a few issues on this machine: no account, no network."""
    from mulligan.surfaces.cli import demo as module

    return module.demo(directory)


@app.command()
@in_one_sentence
def simulate(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 4901,
    directory: Annotated[
        Path | None, typer.Option(help="Where to put it; default: a new temporary directory.")
    ] = None,
) -> Exit:
    """Run a GitHub of your own on this machine, with the demo's repository, until interrupted."""
    from mulligan.surfaces.cli import demo as module

    return module.simulate(port, directory)
