"""The commands that show what happened, and what stands in the way."""

from pathlib import Path
from typing import Annotated

import typer

from mulligan.errors import UsageError
from mulligan.surfaces.cli.application import Config, Issue, Json, in_one_sentence
from mulligan.surfaces.cli.exits import Exit


@in_one_sentence
def status(*, config: Config = None, json: Json = False) -> Exit:
    """List every issue that Mulligan knows, and where it stands."""
    from mulligan.surfaces.cli import overview

    return overview.status(config, json=json)


@in_one_sentence
def inspect(
    issue: Issue,
    *,
    config: Config = None,
    json: Json = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Which attempt, counted over all epochs.")
    ] = None,
    fix_round: Annotated[
        int, typer.Option("--round", min=0, help="Of which fix round; 0 is the attempt itself.")
    ] = 0,
    prompt: Annotated[bool, typer.Option("--prompt", help="The prompt as delivered.")] = False,
    context: Annotated[bool, typer.Option("--context", help="The retry context.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="The whole diff of the attempt.")] = False,
    log: Annotated[bool, typer.Option("--log", help="What the agent printed.")] = False,
    manifest: Annotated[bool, typer.Option("--manifest", help="Hashes of what was given.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Prove all hashes anew.")] = False,
) -> Exit:
    """Show what happened to an issue: its attempts, and what each was told and did."""
    from mulligan.retry.lineage import of_round
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
        return show.part(config, issue, attempt, of_round(chosen[0], fix_round))
    return show.inspect(config, issue, attempt, json=json)


@in_one_sentence
def prompt(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Print what an agent would be told now, and the size of each part; changes nothing."""
    from mulligan.surfaces.cli import prompt as module

    return module.prompt(config, issue, json=json)


@in_one_sentence
def explain(issue: Issue, *, config: Config = None, json: Json = False) -> Exit:
    """Say why an issue is, or is not, being worked on, rule by rule; changes nothing."""
    from mulligan.surfaces.cli import explain as module

    return module.explain(config, issue, json=json)


@in_one_sentence
def stats(
    *,
    config: Config = None,
    json: Json = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as a page.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Count this last time only, such as 30d.")
    ] = None,
) -> Exit:
    """Count what the work came to: issues, attempts, money and time."""
    from mulligan.surfaces.cli import stats as module

    return module.stats(config, since, html, json=json)


@in_one_sentence
def events(
    *,
    config: Config = None,
    json: Json = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more happens.")] = False,
    issue: Annotated[
        str | None, typer.Option("--issue", metavar="OWNER/NAME#N", help="Of one issue only.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="After the event of this number, or of this last time: 7d."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of a line instead.")
    ] = False,
) -> Exit:
    """Print what was recorded, one line for each event."""
    from mulligan.surfaces.cli import events as module

    if schema:
        return module.print_schema()
    return module.events(config, issue, since, follow=follow, json=json)


@in_one_sentence
def doctor(
    *,
    config: Config = None,
    json: Json = False,
    agent: Annotated[
        bool, typer.Option("--agent", help="Run every configured agent twice; costs money.")
    ] = False,
) -> Exit:
    """Say whether all that the work needs is there; each finding has its fix."""
    from mulligan.surfaces.cli import doctor as module

    return module.doctor(config, json=json, agent=agent)
