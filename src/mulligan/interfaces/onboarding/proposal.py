"""The proposal of `mulligan init`: setup commands, checks and files, as data and text. Pure."""

import configparser
import difflib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from mulligan.config.policy import CheckoutSettings
from mulligan.domain.errors import UsageError
from mulligan.domain.issue import COMMIT_SHA
from mulligan.domain.result import CheckKind
from mulligan.interfaces.onboarding.checkout import checkout_lines
from mulligan.interfaces.onboarding.images import OwnImage, image_lines
from mulligan.text.foreign import code

# Checks and setup commands


@dataclass(frozen=True, slots=True)
class ProposedCheck:
    """A check; `source` names where in the repository the command was found.

    `setup` are the setup commands that only this check needs. `not_tried` says why it cannot run
    here. `found` is what the trial showed, such as "it passes here (214 tests)"; `fails` says why
    the check would not verify a change, and is empty for one that does.
    """

    name: str
    run: str
    kind: CheckKind
    source: str
    network: bool = False
    setup: tuple[str, ...] = ()
    not_tried: str = ""
    found: str = ""
    fails: str = ""

    @property
    def reason(self) -> str:
        """Return why the check is left out of the policy; empty if it is not."""
        return self.not_tried or self.fails

    @property
    def is_kept(self) -> bool:
        """Return whether the check is written as a check, not as a comment."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class Proposal:
    """Setup commands that all checks need, the checks, and which further files they need.

    `image` is one that the repository has; it is only named, in a comment.
    """

    ecosystem: str
    setup: tuple[str, ...] = ()
    checks: tuple[ProposedCheck, ...] = ()
    checkout: CheckoutSettings = field(default_factory=CheckoutSettings)
    image: OwnImage | None = None

    @property
    def set_up(self) -> tuple[str, ...]:
        """List the setup commands for the checks that are kept."""
        own = (line for check in self.checks if check.is_kept for line in check.setup)
        return tuple(dict.fromkeys((*self.setup, *own)))


def suite(run: str, source: str, *, network: bool = False) -> ProposedCheck:
    """Propose a check that runs the tests."""
    return ProposedCheck("tests", run, CheckKind.TEST, source, network)


def lint(run: str, source: str) -> ProposedCheck:
    """Propose a check that runs a linter."""
    return ProposedCheck("lint", run, CheckKind.LINT, source)


def types(run: str, source: str) -> ProposedCheck:
    """Propose a check of the types."""
    return ProposedCheck("types", run, CheckKind.TYPE, source)


def build(run: str, source: str) -> ProposedCheck:
    """Propose a check that builds."""
    return ProposedCheck("build", run, CheckKind.BUILD, source)


def merge_proposals(proposals: list[Proposal]) -> Proposal:
    """Merge the proposals of several ecosystems; add the ecosystem to equal names of checks."""
    names = [check.name for each in proposals for check in each.checks]
    checks = [
        check
        if names.count(check.name) == 1
        else replace(check, name=f"{check.name} ({each.ecosystem})")
        for each in proposals
        for check in each.checks
    ]
    return Proposal(
        ecosystem=" and ".join(each.ecosystem for each in proposals),
        setup=tuple(line for each in proposals for line in each.setup),
        checks=tuple(checks),
    )


def free_name(taken: Collection[str], name: str, *others: str) -> str:
    """Return the first of these names that is not taken; else the first one with a number."""
    numbered = (f"{name} {number}" for number in count(2))
    return next(each for each in chain((name, *others), numbered) if each not in taken)


# Where the clone comes from

GITHUB = "github.com"


@dataclass(frozen=True, slots=True)
class Origin:
    """A repository on a GitHub server; `host` is empty if only its name is known."""

    name: str
    host: str = ""

    @property
    def api_url(self) -> str | None:
        """Return the API's address; None for github.com."""
        return f"https://{self.host}/api/v3" if self.host not in {"", GITHUB} else None


REMOTES = ("origin", "upstream")


def origin_of(git_config: str) -> Origin | None:
    """Return the repository of a clone's git configuration; None without a remote on a GitHub."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string("\n".join(line.strip() for line in git_config.splitlines()))
    except configparser.Error:
        return None
    urls = (parser.get(f'remote "{name}"', "url", fallback=None) for name in REMOTES)
    return next((found for url in urls if url and (found := at_address(url))), None)


ADDRESS = re.compile(
    r"(?:(?P<scheme>https?|ssh|git)://(?:[^@/]+@)?|(?:[^@/:]+@))(?P<host>[^:/]+)(?P<port>:\d+)?"
    r"[:/](?P<name>[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+?)(?:\.git)?/?"
)


def at_address(url: str) -> Origin | None:
    """Parse the address of a repository; None if it is not on a GitHub."""
    found = ADDRESS.fullmatch(url)
    return Origin(found["name"], found["host"]) if found else None


# The proposed files


@dataclass(frozen=True, slots=True)
class FileDraft:
    """A proposed file; `before` is None if there is none yet."""

    path: Path
    text: str
    before: str | None = None

    def diff(self, shown: str) -> Iterator[str]:
        """Yield the lines of a unified diff, with `shown` as the file's name."""
        before = (self.before or "").splitlines()
        name = shown if self.before is not None else "/dev/null"
        yield from difflib.unified_diff(before, self.text.splitlines(), name, shown, lineterm="")


POLICY = """\
# Mulligan's settings for this repository, read from the base branch only.
# docs/configuration.md of Mulligan explains each key.
"""

NO_CHECKS = """\
# Add the commands that verify a change, such as:
# checks:
#   - {name: tests, run: make test, kind: test}
"""


def policy_text(proposal: Proposal) -> str:
    """Return the text of `.github/mulligan.yml`; a check that is left out becomes a comment."""
    if not proposal.checks:
        lines = [*_further(proposal)]
        return "\n".join([f"{POLICY}{NO_CHECKS}", *lines])
    return POLICY + "\n".join(["", *_lines(proposal), ""])


def _lines(proposal: Proposal) -> Iterator[str]:
    kept = [check for check in proposal.checks if check.is_kept]
    yield from _further(proposal)
    if proposal.set_up:
        yield "# Run before the agent, with network access, to install what the checks need."
        yield "setup:"
        yield from (f"  - {_scalar(line)}" for line in proposal.set_up)
        yield ""
    yield "# Commands that verify a change, in this order."
    yield "checks:" if kept else "checks: []"
    for check in kept:
        yield from _check(check)
    for check in proposal.checks:
        if not check.is_kept:
            yield f"  # Left out, since {check.reason}:"
            yield from (f"  # {line.removeprefix('  ')}" for line in _check(check))


def _further(proposal: Proposal) -> Iterator[str]:
    for lines in (checkout_lines(proposal.checkout), image_lines(proposal.image)):
        if lines:
            yield from (*lines, "")


def _check(check: ProposedCheck) -> Iterator[str]:
    yield f"  - name: {_scalar(check.name)}"
    # One space, since a repository's own check may run Prettier on this file.
    yield f"    run: {_scalar(check.run)} # from {check.source}"
    yield f"    kind: {check.kind}"
    if check.network:
        yield "    network: true # this command downloads dependencies"


OPERATOR = """\
# The repositories and the agent of this machine. `mulligan doctor` reports what is missing.
github:
"""


def operator_text(origin: Origin, agent: str, token_file: str = "") -> str:
    """Return the text of `mulligan.yml` for one repository; without a file, for $GITHUB_TOKEN."""
    lines = [OPERATOR.rstrip("\n")]
    if origin.api_url:
        lines.append(f"  api_url: {origin.api_url}")
    token = f"token_file: {_scalar(token_file)}" if token_file else "token: $GITHUB_TOKEN"
    lines.append(f"  {token}")
    lines += ["repositories:", f"  - name: {origin.name}"]
    lines += ["agent:", f"  kind: {agent}", ""]
    return "\n".join(lines)


def with_repository(text: str, name: str) -> str | None:
    """Add a repository before the others in the text of a `mulligan.yml`; None without a list."""
    root = yaml.SafeLoader(text).get_single_node()
    pairs: list[tuple[yaml.Node, yaml.Node]] = (
        root.value if isinstance(root, yaml.MappingNode) else []
    )
    found = next((value for key, value in pairs if key.value == "repositories"), None)
    if not isinstance(found, yaml.SequenceNode) or not found.value:
        return None
    start = found.start_mark.index
    if found.flow_style:
        return f"{text[: start + 1]}{{name: {name}}}, {text[start + 1 :]}"
    indent = " " * found.start_mark.column
    return f"{text[:start]}- name: {name}\n{indent}{text[start:]}"


PLAIN = re.compile(r"[A-Za-z./](?:(?! #|: )[\w ./=@+:,()-])*(?<![ :])")
"""Text that YAML needs no quotes for."""


def _scalar(text: str) -> str:
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


# The pull request with the policy


@dataclass(frozen=True, slots=True)
class PullRequestText:
    """The title and the body of a pull request."""

    title: str
    body: str


SET_UP_BRANCH = "mulligan/configure"

POLICY_BODY = """\
`mulligan init` proposes `{path}`, the settings of Mulligan for this repository.

**If you merge this pull request**, Mulligan reads the file from {base}. It works on an issue \
when somebody with write access adds the label {label}, and opens a pull request when {checks}.

**If you close it**, nothing changes, and Mulligan does not open it again. Without this file \
Mulligan has no checks for this repository, so its pull requests are not verified. To keep \
Mulligan away, remove the repository from `repositories` in `mulligan.yml`.

Before you merge, read the setup commands and checks. Mulligan runs them in its sandbox, on every \
attempt. You can edit the file on this branch. To try it, check out the branch and run \
`mulligan check`.
"""


def policy_pull_request(path: str, base: str, label: str, checks: int) -> PullRequestText:
    """Write the pull request that proposes a policy with some checks."""
    count = {0: "the agent made a change, since there are no checks yet", 1: "its check passes"}
    promise = count.get(checks, f"its {checks} checks pass")
    body = POLICY_BODY.format(path=path, base=code(base), label=code(label), checks=promise)
    return PullRequestText("Configure Mulligan", body)


# Mulligan's own source, for the workflow


@dataclass(frozen=True, slots=True)
class ActionSource:
    """A repository of Mulligan and a commit; its `host` is empty if any will do."""

    name: str
    commit: str
    host: str = ""

    def serves(self, origin: Origin | None) -> bool:
        """Return whether a repository's workflow can call this one: both must be on one GitHub."""
        return not self.host or origin is None or origin.host in {"", self.host}


NAMED = re.compile(rf"([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)@({COMMIT_SHA.pattern})")


def named(text: str) -> ActionSource:
    """Parse OWNER/NAME@COMMIT."""
    found = NAMED.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--action is {text!r}; write OWNER/NAME@COMMIT, with all 40 digits of the commit."
        )
    return ActionSource(found[1], found[2])


class _Vcs(BaseModel):
    commit_id: str


class _DirectUrl(BaseModel):
    url: str
    vcs_info: _Vcs


def recorded(direct_url: str | None) -> ActionSource | None:
    """Return the source in an installer's record (direct_url.json, PEP 610); None without one."""
    try:
        noted = _DirectUrl.model_validate_json(direct_url or "")
    except ValidationError:
        return None
    return source_at(at_address(noted.url), noted.vcs_info.commit_id)


def source_at(origin: Origin | None, commit: str) -> ActionSource | None:
    """Return a repository's commit as a source; None if either is unknown."""
    if origin is None or not COMMIT_SHA.fullmatch(commit):
        return None
    return ActionSource(origin.name, commit, origin.host)
