"""Every command of `mulligan` with its options; each imports only what it needs."""

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from mulligan import __version__
from mulligan.domain.errors import ConfigError, MulliganError, ShutdownError, UsageError
from mulligan.interfaces.cli.exit_codes import Exit

__all__ = ["app"]

P = ParamSpec("P")

# Typer bundles click and names none of its classes, hence `Any`.


class Command(TyperCommand):
    """A command; its flags show no type in `--help`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """List the parameters."""
        return without_types(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands; its flags show no type in `--help`."""

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401
        """List the parameters."""
        return without_types(super().get_params(ctx))


def without_types(parameters: list[Any]) -> list[Any]:
    """Return the parameters; a flag takes no value, so the name of its type says nothing."""
    for each in parameters:
        if isinstance(each, TyperOption) and each.is_flag:
            each.metavar = ""
    return parameters


class Moved(Command):
    """A command by its former name, which works for one release."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Warn, and run the command."""
        warn_of_former_name(ctx.info_name)
        return super().invoke(ctx)


class MovedGroup(Group):
    """A group of commands by its former name, which works for one release."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Warn, and run the command."""
        warn_of_former_name(ctx.info_name)
        return super().invoke(ctx)


def warn_of_former_name(name: str) -> None:
    """Name a command's new place."""
    typer.echo(
        f"mulligan: `mulligan {name}` is `mulligan debug {name}` now. "
        "The former name will be removed in the next release.",
        err=True,
    )


app = typer.Typer(
    name="mulligan",
    help="Turn labelled GitHub issues into pull requests, or ask for human review.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    cls=Group,
)

debug_app = typer.Typer(
    name="debug",
    help="More commands, which are needed less often.",
    no_args_is_help=True,
    cls=Group,
)

config_app = typer.Typer(
    cls=Group, name="config", help="Check and show the configuration.", no_args_is_help=True
)

state_app = typer.Typer(
    cls=Group,
    name="state",
    help="Back up, check, restore and move the ledger.",
    no_args_is_help=True,
)

learnings_app = typer.Typer(
    cls=Group,
    name="learnings",
    help="Show, accept and drop the facts that agents noted about repositories.",
    invoke_without_command=True,
)

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="The configuration file; default: ./mulligan.yml, $MULLIGAN_CONFIG.",
    ),
]

PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="The policy file of a repository.")
]

Repository = Annotated[
    str | None,
    typer.Option(
        "--repository",
        metavar="OWNER/NAME",
        help="Its repository; the operator's keys override it.",
    ),
]

Issue = Annotated[
    str,
    typer.Argument(
        help="OWNER/NAME#NUMBER, its address, or the number in a clone.", metavar="ISSUE"
    ),
]

Paused = Annotated[
    str,
    typer.Argument(
        help="OWNER/NAME, or OWNER/NAME#NUMBER; default: everything.",
        metavar="[REPOSITORY|ISSUE]",
        show_default=False,
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]

TakeOver = Annotated[
    bool,
    typer.Option("--take-over", help="Take over repositories that another installation owns."),
]

Diff = Annotated[bool, typer.Option("--diff", help="Also print the last change of each issue.")]

DIRECTORY = typer.Argument(help="A clone of the repository.", show_default="here")


def in_one_sentence(command: Callable[P, Exit]) -> Callable[P, None]:
    """Report a command's error as one sentence on standard error; exit with the command's code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
        except (ConfigError, UsageError) as error:
            code = _refused(error, Exit.USAGE)
        except (ShutdownError, KeyboardInterrupt):
            code = Exit.INTERRUPTED
        except MulliganError as error:
            code = _refused(error, Exit.FAILED)
        raise typer.Exit(code)

    return run


def _refused(error: MulliganError, code: Exit) -> Exit:
    from mulligan.interfaces.cli.terminal import print_error

    print_error(str(error))
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
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Turn labelled GitHub issues into pull requests, or ask for human review."""
    del version


@in_one_sentence
def init(
    directory: Annotated[Path, DIRECTORY] = Path(),
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Write without asking.")] = False,
    repository: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME", help="Its name on GitHub; default: from the remote origin."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", help="The operator's file; init proposes it if it does not exist."
        ),
    ] = None,
    workflow: Annotated[bool, typer.Option(help="Also propose the workflow of the Action.")] = True,
    action: Annotated[
        str | None,
        typer.Option(
            metavar="OWNER/NAME@COMMIT", help="The commit of Mulligan to call in the workflow."
        ),
    ] = None,
    gh_token: Annotated[
        bool, typer.Option("--gh-token", help="Take the token from `gh auth token`, into a file.")
    ] = False,
    pull_request: Annotated[
        bool,
        typer.Option(
            "--pull-request", help="Open a pull request with the policy, instead of writing it."
        ),
    ] = False,
    tries: Annotated[
        bool,
        typer.Option("--try/--no-try", help="Run the proposed commands once in the sandbox."),
    ] = True,
    app: Annotated[
        bool, typer.Option("--app", help="Create a GitHub App in a browser instead.")
    ] = False,
    organization: Annotated[
        str | None, typer.Option(help="The organisation that owns the App; default: you.")
    ] = None,
    app_name: Annotated[str | None, typer.Option(help="The name of the App.")] = None,
    key_file: Annotated[Path | None, typer.Option(help="The file for its private key.")] = None,
) -> Exit:
    """Propose configuration files for a clone, with its own checks, and create the labels."""
    from mulligan.interfaces.cli import init as module

    options = module.InitOptions(
        directory, yes, repository, config, workflow, action, gh_token, pull_request, tries
    )
    if app:
        return module.init_app(options, module.AppRequest(organization, app_name, key_file))
    return module.init(options)


@in_one_sentence
def rehearse(
    file: Annotated[
        Path, typer.Argument(metavar="ISSUE.md", help="The issue; its first heading is the title.")
    ],
    directory: Annotated[Path, DIRECTORY] = Path(),
    *,
    agent: Annotated[
        str | None,
        typer.Option(help="claude, codex, gemini, opencode, aider, mini, or a command line."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The operator's file with the agent and its limits."),
    ] = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="The maximum number of attempts.")
    ] = None,
    diff: Diff = False,
) -> Exit:
    """Run an agent on an issue from a file, in a local repository, without GitHub."""
    from mulligan.interfaces.cli import rehearse as module

    return module.rehearse(file, directory, agent, config, attempts, diff=diff)


@in_one_sentence
def once(
    *,
    config: Config = None,
    attempts: Annotated[
        int | None, typer.Option(min=1, help="The maximum attempts per issue in this pass.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="The maximum number of issues in this pass.")
    ] = None,
    take_over: TakeOver = False,
    diff: Diff = False,
) -> Exit:
    """Make one pass: recover, then work on each labelled issue."""
    from mulligan.interfaces.cli import work

    return work.once(config, attempts, limit, take_over=take_over, diff=diff)


@in_one_sentence
def run(
    *,
    config: Config = None,
    role: Annotated[
        Literal["poller", "worker", "all"],
        typer.Option(help="In a fleet: only poll GitHub, only work on issues, or both."),
    ] = "all",
    take_over: TakeOver = False,
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(envvar="MULLIGAN_LOG_FORMAT", help="Log lines for people, or as JSON."),
    ] = "text",
) -> Exit:
    """Work continuously: poll, work on every labelled issue, serve the dashboard."""
    from mulligan.interfaces.cli import run as module

    return module.run(config, role=role, take_over=take_over, json_logs=log_format == "json")


@in_one_sentence
def work(
    issue: Issue,
    *,
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing on GitHub; show what would change.")
    ] = False,
    take_over: TakeOver = False,
) -> Exit:
    """Make one attempt at an issue now, without a label."""
    from mulligan.interfaces.cli import work as module

    return module.work(issue, config, dry_run=dry_run, take_over=take_over)


@in_one_sentence
def action() -> Exit:
    """Make one pass in a GitHub workflow, with inputs from environment variables."""
    from mulligan.interfaces.cli import action as module

    return module.action()


@in_one_sentence
def status(
    *,
    config: Config = None,
    json: Json = False,
    watch: Annotated[
        bool, typer.Option(help="On a terminal, keep the list up to date until q is pressed.")
    ] = True,
) -> Exit:
    """List every issue with its stage; on a terminal, keep the list up to date."""
    from mulligan.interfaces.cli import status as overview

    return overview.status(config, json=json, watch=watch)


@in_one_sentence
def inspect(
    issue: Issue,
    log_name: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG", help="With --log: agent (default), setup, or the name of a check."
        ),
    ] = None,
    *,
    config: Config = None,
    json: Json = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="The number of the attempt, counted over all rounds.")
    ] = None,
    fix_round: Annotated[
        int, typer.Option("--round", min=0, help="The fix round; 0 is the attempt itself.")
    ] = 0,
    prompt: Annotated[bool, typer.Option("--prompt", help="The prompt as delivered.")] = False,
    context: Annotated[bool, typer.Option("--context", help="The retry context.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="The whole diff of the attempt.")] = False,
    log: Annotated[bool, typer.Option("--log", help="The output of the agent, or of LOG.")] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="With --log: every byte, for a file or a program.")
    ] = False,
    manifest: Annotated[
        bool, typer.Option("--manifest", help="The hashes of the agent's input.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check all hashes.")] = False,
) -> Exit:
    """Show the attempts at an issue: prompts, changes, checks and decisions."""
    from mulligan.implement.prompt.manifest import of_round
    from mulligan.interfaces.cli import inspect as show

    parts = {
        "prompt.md": prompt,
        "context.json": context,
        "changes.diff": diff,
        "agent.log": log,
        "manifest.json": manifest,
    }
    chosen = [name for name, wanted in parts.items() if wanted]
    if len(chosen) > 1:
        raise UsageError(
            "Ask for one of --prompt, --context, --diff, --log and --manifest at a time."
        )
    if log_name and not log:
        raise UsageError(f"To print a log, write `mulligan inspect {issue} --log {log_name}`.")
    if verify:
        return show.verify(config, issue, json=json)
    if log_name and log_name != show.AGENT_LOG:
        return show.log(config, issue, attempt, log_name, as_bytes=raw)
    if chosen:
        name = of_round(chosen[0], fix_round)
        return show.part(config, issue, attempt, name, as_bytes=raw or not log)
    return show.inspect(config, issue, attempt, json=json)


@in_one_sentence
def prompt(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Print the next prompt, and the size of each part."""
    from mulligan.interfaces.cli import inspect as module

    return module.prompt(config, issue, json=json)


@in_one_sentence
def explain(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Explain why Mulligan does or does not work on an issue, rule by rule."""
    from mulligan.interfaces.cli import inspect as module

    return module.explain(config, issue, json=json)


@in_one_sentence
def stats(
    *,
    config: Config = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Count only this period, such as 30d.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", help="Count only the issues with this label.")
    ] = None,
) -> Exit:
    """Show statistics: issues, attempts, cost and time."""
    from mulligan.interfaces.cli import stats as module

    return module.stats(config, since, label, html, json=json)


@in_one_sentence
def events(
    *,
    config: Config = None,
    json: Json = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue with new events.")
    ] = False,
    issue: Annotated[
        str | None,
        typer.Option("--issue", metavar="ISSUE", help="Only events of one issue."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only events after this number, or of this period: 7d."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of an event.")
    ] = False,
) -> Exit:
    """Print the recorded events, one line each."""
    from mulligan.interfaces.cli import events as module

    if schema:
        return module.print_schema()
    return module.events(config, issue, since, follow=follow, json=json)


@in_one_sentence
def doctor(
    *,
    config: Config = None,
    json: Json = False,
    agent: Annotated[
        bool, typer.Option("--agent", help="Run every configured agent twice. This costs money.")
    ] = False,
) -> Exit:
    """Check everything that Mulligan needs, with a fix for each finding."""
    from mulligan.interfaces.cli import doctor as module

    return module.doctor(config, json=json, agent=agent)


@in_one_sentence
def retry(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Start new attempts, or publish work that was kept."""
    return _give("retry", issue, (), config, json=json)


@in_one_sentence
def fix(
    issue: Issue,
    what: Annotated[list[str], typer.Argument(help="What to do.", metavar="TEXT")],
    *,
    config: Config = None,
    json: Json = False,
) -> Exit:
    """Start new attempts that follow your instruction; stop a running one."""
    return _give("fix", issue, what, config, json=json)


@in_one_sentence
def skip(
    issue: Issue,
    reason: Annotated[list[str] | None, typer.Argument(help="Why.", metavar="REASON")] = None,
    *,
    config: Config = None,
    json: Json = False,
) -> Exit:
    """Stop work on an issue, and remove Mulligan's labels."""
    return _give("skip", issue, reason or (), config, json=json)


@in_one_sentence
def abort(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Stop the running attempt and keep its work. This costs no attempt."""
    return _give("abort", issue, (), config, json=json)


def _give(verb: str, issue: str, words: Iterable[str], config: Path | None, *, json: bool) -> Exit:
    from mulligan.domain.command import Verb
    from mulligan.interfaces.cli import issue_commands as orders

    return orders.record_command(config, Verb(verb), issue, " ".join(words), json=json)


@in_one_sentence
def pause(what: Paused = "", *, config: Config = None, json: Json = False) -> Exit:
    """Pause all work, a repository or an issue: no new attempt starts until you resume."""
    from mulligan.interfaces.cli import issue_commands as orders

    return orders.pause(config, what, json=json)


@in_one_sentence
def resume(what: Paused = "", *, config: Config = None, json: Json = False) -> Exit:
    """Resume all work, a repository or an issue."""
    from mulligan.interfaces.cli import issue_commands as orders

    return orders.resume(config, what, json=json)


@in_one_sentence
def check_commit(
    directory: Annotated[Path, DIRECTORY] = Path(),
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="The operator's file; default: ./mulligan.yml, $MULLIGAN_CONFIG, the one above.",
        ),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="The policy file; default: .github/mulligan.yml there.")
    ] = None,
    here: Annotated[
        bool,
        typer.Option("--here", help="Run in the directory as it is, without a sandbox."),
    ] = False,
    setup: Annotated[
        bool, typer.Option("--setup", help="With --here: run the setup commands first.")
    ] = False,
    json: Json = False,
) -> Exit:
    """Run a repository's setup commands and checks as an attempt would, on the last commit."""
    from mulligan.interfaces.cli import checks as verification

    options = verification.CheckOptions(directory, config, policy, here, setup, json)
    return verification.check(options)


@in_one_sentence
def digest(
    *,
    command: Annotated[
        str, typer.Option(help="The command that printed the log, such as 'pytest -q'.")
    ] = "",
    exit_code: Annotated[int | None, typer.Option(help="The exit code of that command.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="The report file of that command, such as JUnit XML.")
    ] = None,
    json: Json = False,
) -> Exit:
    """Shorten a log from standard input to what an agent would read."""
    from mulligan.interfaces.cli import checks as verification

    return verification.digest(command, exit_code, report, json=json)


@in_one_sentence
def demo(
    *,
    directory: Annotated[
        Path | None,
        typer.Option(help="The directory for its files; default: a new temporary directory."),
    ] = None,
    wait: Annotated[
        bool, typer.Option(help="On a terminal, keep the simulated GitHub until a key is pressed.")
    ] = True,
) -> Exit:
    """Run six example issues on this machine, without an account or network."""
    from mulligan.interfaces.cli import demo as module

    return module.demo(directory, wait=wait)


@in_one_sentence
def simulate(
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 4901,
    directory: Annotated[
        Path | None,
        typer.Option(help="The directory for its files; default: a new temporary directory."),
    ] = None,
    clone: Annotated[
        Path | None,
        typer.Option(help="Your own repository instead of the demo's: a copy of its last commit."),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="With --clone: the agent, as `rehearse` takes it.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="With --clone: the operator's file with the agent."),
    ] = None,
) -> Exit:
    """Run a simulated GitHub on this machine, with the demo's repository or a copy of yours."""
    from mulligan.interfaces.cli import demo as module

    if clone is None and (agent or config):
        raise UsageError("--agent and --config need --clone; the demo has its own agent.")
    own = module.OwnClone(clone, agent, config) if clone else None
    return module.simulate(port, directory, own)


@in_one_sentence
def check(
    *,
    config: Config = None,
    policy: PolicyFile = None,
    repository: Repository = None,
    json: Json = False,
) -> Exit:
    """Validate the configuration, and report every mistake with its line."""
    from mulligan.interfaces.cli import config as module

    return module.check(config, policy, repository, json=json)


@in_one_sentence
def show(
    *,
    config: Config = None,
    policy: PolicyFile = None,
    repository: Repository = None,
    json: Json = False,
) -> Exit:
    """Print the settings in force, including defaults; hide values from the environment."""
    from mulligan.interfaces.cli import config as module

    return module.show(config, policy, repository, json=json)


@in_one_sentence
def schema(
    file: Annotated[
        Literal["operator", "policy"],
        typer.Argument(help="mulligan.yml, or a repository's .github/mulligan.yml."),
    ] = "operator",
) -> Exit:
    """Print the JSON Schema of a configuration file, for editors."""
    from mulligan.interfaces.cli import config as module

    return module.schema(file)


@in_one_sentence
def pull(*, config: Config = None) -> Exit:
    """Import the counts and history of the GitHub Action into this ledger."""
    from mulligan.interfaces.cli import state

    return state.pull(config)


@in_one_sentence
def push(*, config: Config = None) -> Exit:
    """Export this ledger's counts and history to the repositories, for the GitHub Action."""
    from mulligan.interfaces.cli import state

    return state.push(config)


@in_one_sentence
def copy(
    *,
    source: Annotated[
        Path, typer.Option("--from", metavar="FILE", help="A configuration with the other state.")
    ],
    config: Config = None,
) -> Exit:
    """Import another ledger, such as a single worker's into a fleet's, or back."""
    from mulligan.interfaces.cli import state

    return state.copy(config, source)


@in_one_sentence
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")],
    *,
    config: Config = None,
) -> Exit:
    """Write a backup of the ledger, also while Mulligan runs."""
    from mulligan.interfaces.cli import state

    return state.backup(config, file)


@in_one_sentence
def check_state(
    file: Annotated[
        Path | None, typer.Argument(help="A backup to check.", show_default="the ledger")
    ] = None,
    *,
    config: Config = None,
) -> Exit:
    """Compare every event of the ledger with its checksum, and every status with its events."""
    from mulligan.interfaces.cli import state

    return state.check(config, file)


@in_one_sentence
def restore(
    file: Annotated[Path, typer.Argument(help="The backup.")], *, config: Config = None
) -> Exit:
    """Replace the ledger by a backup; the earlier ledger is kept beside it."""
    from mulligan.interfaces.cli import state

    return state.restore(config, file)


@in_one_sentence
def list_learnings(config: Path | None, issue: str | None, *, json: bool) -> Exit:
    """Print the facts."""
    from mulligan.interfaces.cli import learnings as module

    return module.list_learnings(config, issue, json=json)


@learnings_app.callback()
def learnings(
    context: typer.Context,
    *,
    config: Config = None,
    issue: Annotated[
        str | None,
        typer.Option("--issue", metavar="ISSUE", help="All facts noted at one issue."),
    ] = None,
    json: Json = False,
) -> None:
    """Show, accept and drop the facts that agents noted about repositories."""
    if context.invoked_subcommand is None:
        list_learnings(config, issue, json=json)
    elif config or issue or json:
        context.fail(f"Give the options after {context.invoked_subcommand}.")


FactIds = Annotated[
    list[str], typer.Argument(help="As `mulligan debug learnings` lists.", metavar="ID")
]


@in_one_sentence
def accept(issue: Issue, ids: FactIds, *, config: Config = None) -> Exit:
    """Accept facts noted at an issue, for all issues of its repository."""
    from mulligan.interfaces.cli import learnings as module

    return module.accept(config, issue, ids)


@in_one_sentence
def drop(ids: FactIds, *, config: Config = None) -> Exit:
    """Drop facts, so that no prompt contains them."""
    from mulligan.interfaces.cli import learnings as module

    return module.drop(config, ids)


for command in (accept, drop):
    learnings_app.command(cls=Command)(command)

for command in (backup, restore, pull, push, copy):
    state_app.command(cls=Command)(command)

state_app.command("check", cls=Command)(check_state)

for command in (check, show, schema):
    config_app.command(cls=Command)(command)

GROUPS: tuple[tuple[str, tuple[Callable[..., None], ...]], ...] = (
    ("Try without an account", (demo, simulate, rehearse)),
    ("Set up", (init, doctor, check_commit)),
    ("Work on issues", (once, run)),
    ("Answer for one issue", (retry, fix, skip, pause, resume)),
    ("See what happened", (status, explain, inspect)),
)
"""The commands of a normal week, in the groups of `mulligan --help`."""

for group, commands in GROUPS:
    for command in commands:
        name = "check" if command is check_commit else None
        app.command(name, rich_help_panel=group, cls=Command)(command)

SCRIPTED = (work, stats, action)
"""Commands that scripts rely on: below `debug`, and by their former names too."""

MOVED = (abort, digest, events, prompt)
MOVED_GROUPS = (config_app, learnings_app, state_app)
"""What is below `debug` now; the former names work for one release, with a warning."""

for command in (*SCRIPTED, *MOVED):
    debug_app.command(cls=Command)(command)
for sub_app in MOVED_GROUPS:
    debug_app.add_typer(sub_app)
app.add_typer(debug_app, rich_help_panel="More")

for command in SCRIPTED:
    app.command(hidden=True, cls=Command)(command)
for command in MOVED:
    app.command(hidden=True, cls=Moved)(command)
for sub_app in MOVED_GROUPS:
    app.add_typer(sub_app, hidden=True, cls=MovedGroup)
