"""`mulligan debug learnings`: list, accept and drop facts about repositories."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from mulligan.config.operator import Operator
from mulligan.domain.errors import UsageError
from mulligan.domain.events import LearningsAccepted, LearningsDropped
from mulligan.domain.issue import IssueRef
from mulligan.domain.learning import Learning, in_force, issues_of, key_of, noted_in
from mulligan.implement.ports import Ledger
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from mulligan.interfaces.bootstrap.redaction import redactor_of
from mulligan.interfaces.bootstrap.stores import open_ledger
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.issue_argument import issue_of
from mulligan.interfaces.cli.setup import (
    as_configured,
    environment,
    make_console,
    read_configuration,
)
from mulligan.interfaces.cli.terminal import print_json

# List.

NOTHING = (
    "No facts are in force. With `learnings: repository` in a repository's policy, a merged pull "
    "request adds the facts that it lists."
)


def list_learnings(config: Path | None, issue: str | None, *, json: bool) -> Exit:
    """Print the facts in force, or all facts that agents noted at one issue."""
    operator = read_configuration(config, needs_token=False)
    if issue:
        return _list_noted(as_configured(issue_of(issue, operator), operator), operator, json=json)
    with open_ledger(operator) as ledger:
        found = _in_force(operator, ledger)
    if json:
        print_json(
            [
                {
                    "id": each.key,
                    "repository": each.issue.repository,
                    "fact": each.text,
                    "issue": str(each.issue),
                    "attempt": each.number,
                    "noted_at": each.noted_at.isoformat(),
                    "pull_request": each.pull_request or None,
                    "accepted_by": "operator" if each.by_operator else "merge",
                    "accepted_at": each.accepted_at.isoformat(),
                    "expires_at": each.expires_at.isoformat(),
                }
                for each in found
            ]
        )
    else:
        _print_learnings(found, make_console())
    return Exit.DONE


def _list_noted(ref: IssueRef, operator: Operator, *, json: bool) -> Exit:
    with open_ledger(operator) as ledger:
        noted = noted_in(ledger.history(ref))
        in_force = {each.text for each in _in_force(operator, ledger)}
    if json:
        print_json(
            [
                {
                    "id": key_of(ref.repository, fact.text),
                    "repository": ref.repository,
                    "fact": fact.text,
                    "issue": str(ref),
                    "attempt": fact.number,
                    "noted_at": fact.noted_at.isoformat(),
                    "in_force": fact.text in in_force,
                }
                for fact in noted
            ]
        )
        return Exit.DONE
    console = make_console()
    for fact in noted:
        state = "in force" if fact.text in in_force else "not accepted"
        console.print(escape(f"{key_of(ref.repository, fact.text)}  {fact.text}"))
        console.print(f"          {state}; attempt {fact.number}, {fact.noted_at:%Y-%m-%d}")
    if not noted:
        console.print(f"Agents noted no facts at {ref}.")
    return Exit.DONE


def _in_force(operator: Operator, ledger: Ledger) -> list[Learning]:
    now = SystemClock().now()
    names = sorted(repository.name for repository in operator.repositories)
    return [each for name in names for each in in_force(ledger.learnings(name), now)]


def _print_learnings(found: Sequence[Learning], console: Console) -> None:
    for each in found:
        console.print(escape(f"{each.key}  {each.text}"))
        how = "an operator" if each.by_operator else f"the merge of {each.pull_request}"
        source = f"{each.issue}, attempt {each.number}, {each.noted_at:%Y-%m-%d}"
        console.print(
            escape(f"          {source}; accepted by {how}; until {each.expires_at:%Y-%m-%d}")
        )
    if not found:
        console.print(NOTHING)


# Accept and drop.


def accept(config: Path | None, issue: str, keys: Sequence[str]) -> Exit:
    """Accept facts that agents noted at an issue, for the other issues of its repository."""
    operator = read_configuration(config, needs_token=False)
    ref = as_configured(issue_of(issue, operator), operator)
    with open_ledger(operator, redactor_of(operator, environment())) as ledger:
        noted = {key_of(ref.repository, each.text): each for each in noted_in(ledger.history(ref))}
        _check_known(keys, noted, f"mulligan debug learnings --issue {ref}")
        chosen = tuple(noted[key] for key in dict.fromkeys(keys))
        pull = ledger.status(ref).pull.url or ""
        accepted = LearningsAccepted(facts=chosen, pull_request=pull, by_operator=True)
        ledger.append(ref, accepted)
    _say("accepted", (fact.text for fact in chosen))
    return Exit.DONE


def drop(config: Path | None, keys: Sequence[str]) -> Exit:
    """Drop facts, so that no agent gets them any more."""
    operator = read_configuration(config, needs_token=False)
    with open_ledger(operator, redactor_of(operator, environment())) as ledger:
        found = {each.key: each for each in _in_force(operator, ledger)}
        _check_known(keys, found, "mulligan debug learnings")
        chosen = [found[key] for key in dict.fromkeys(keys)]
        for each in chosen:
            # At each issue that taught it, so that no later end of one brings it back.
            for ref in issues_of(ledger.learnings(each.issue.repository), each.text):
                ledger.append(ref, LearningsDropped(facts=(each.text,)))
    _say("dropped", (each.text for each in chosen))
    return Exit.DONE


def _check_known(keys: Iterable[str], known: Iterable[str], to_list: str) -> None:
    unknown = [key for key in keys if key not in {*known}]
    if unknown:
        raise UsageError(f"There is no fact {', '.join(unknown)}. To list the facts: {to_list}")


def _say(done: str, facts: Iterable[str]) -> None:
    console = make_console()
    for fact in facts:
        console.print(escape(f"{done}: {fact}"))
