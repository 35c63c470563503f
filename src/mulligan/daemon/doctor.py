"""Check for `mulligan doctor` this machine, each repository, and the agents."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Protocol

import yaml
from pydantic import BaseModel

from mulligan.config.devcontainer import devcontainer_file, ignored_keys, source_of_devcontainer
from mulligan.config.document import split_mistakes
from mulligan.config.operator import Operator, SandboxMode
from mulligan.config.policy import DEVCONTAINER, POLICY_FILE, POLICY_FILES, Policy
from mulligan.domain.attempt import AgentRun, TimeLimit
from mulligan.domain.branch_rules import (
    BranchRule,
    ClassicProtection,
    Publication,
    belongs_to_nobody,
    find_obstacles,
    rules_of,
)
from mulligan.domain.errors import ConfigError, MisconfiguredError, MulliganError
from mulligan.domain.hold import Pause
from mulligan.domain.host import (
    AS_ROOT,
    MIB,
    NOT_AS_ROOT,
    TRY_AGAIN,
    AgentPresence,
    CommandNetworkStatus,
    Diagnosis,
    DiskSpace,
    Level,
    SandboxStatus,
    disk_shortage,
    fault,
    fine,
    note,
    warning,
)
from mulligan.domain.image import ImageBuild
from mulligan.domain.issue import BRANCH_PREFIX, Issue, IssueRef, RepositoryFacts
from mulligan.domain.outcome import Outcome
from mulligan.domain.ownership import StandBack
from mulligan.domain.repairing import checking_form, repairs_by_default
from mulligan.domain.result import AgentFacts
from mulligan.domain.signing import SIGNED_COMMITS, SigningKeyStatus, signing_problem
from mulligan.domain.spending import spending_text, spent_in
from mulligan.implement.change_title import TitleStyle, issue_title
from mulligan.implement.commit_message import CommitText, message_of
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.text.escape import one_line

FILE, WORD = "mulligan-doctor.txt", "repaired"

WRITE_PROMPT = (
    f"Create the file {FILE} in the current directory, with the one word {WORD} in it. Do nothing"
    " else, and do not commit."
)

WAIT_PROMPT = "Run the shell command `sleep 120` and wait for its end. Do nothing else."

WRITE_TIMEOUT = timedelta(minutes=5)
"""How long an agent may take to write one word."""

STOP_AFTER = timedelta(seconds=10)
"""Time from the start of the second run until Mulligan sends TERM."""

STOP_GRACE = timedelta(seconds=5)
"""Time from TERM to KILL (see process.Command)."""

WORDS_CHARS = 200

FRONT_MATTER = re.compile(rb"\A---\r?\n(.*?)^---", re.DOTALL | re.MULTILINE)

GITHUB_FIRST = "Fix the fault of github first, then run `mulligan doctor` again."

TEMPLATES = ".github/ISSUE_TEMPLATE"

USER, GIT, STATE, WORKSPACE = "user", "git", "state", "workspace"

AGENT, SANDBOX, GITHUB, SIGNING = "agent", "sandbox", "github", "signing"

OLDEST_GIT = (2, 32)
"""The first version with GIT_CONFIG_GLOBAL, which switches the user's configuration off."""

GIB = 1024**3

RESUME = "To let attempts begin again, resume it."

ONE_OWNER = "To avoid that, run one installation for each repository."

LOW_DISK_BYTES = 2 * GIB
"""Below this, `doctor` warns; below `limits.free_mib`, no attempt starts."""

UNCONFINED = "agents and checks have all rights of this user."


@dataclass(frozen=True, slots=True)
class AgentTrial:
    """A temporary repository in which `run` starts the agent with a prompt and a timeout.

    `written` reads the file that the agent should write; None if there is none.
    """

    agent: str
    run: Callable[[str, timedelta], AgentRun]
    written: Callable[[], str | None]


def or_fault(area: str, found: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """Yield findings; if a probe fails, yield a fault of the area and stop."""
    try:
        yield from found
    except MulliganError as error:
        yield fault(area, str(error), TRY_AGAIN)


def try_agent(stage: AgentTrial) -> Iterator[Diagnosis]:
    """Run an agent twice and report the results; the second run only if the first one worked."""
    return or_fault(stage.agent, _try_agent(stage))


def _try_agent(stage: AgentTrial) -> Iterator[Diagnosis]:
    first = stage.run(WRITE_PROMPT, WRITE_TIMEOUT)
    yield from _first(stage, first)
    if stage.written() is None or first.fault:
        return
    second = stage.run(WAIT_PROMPT, STOP_AFTER)
    yield _stops(stage.agent, second)
    if used := spending_text(spent_in(first.facts).plus(spent_in(second.facts)), " and "):
        yield fine(stage.agent, f"These two runs cost {used}.")


def _first(stage: AgentTrial, run: AgentRun) -> Iterator[Diagnosis]:
    if run.fault:
        is_passing = run.fault.outcome is Outcome.INFRASTRUCTURE
        fix = "Try again later." if is_passing else TRY_AGAIN
        yield fault(stage.agent, run.fault.reason, fix)
        return
    yield _writes(stage, run)
    if run.refusal and stage.written() is not None:
        yield warning(stage.agent, run.refusal, TRY_AGAIN)
    elif not run.refusal:
        yield fine(stage.agent, "None of its tools was refused.")
    yield _reports(stage.agent, run.facts)


def _writes(stage: AgentTrial, run: AgentRun) -> Diagnosis:
    written = stage.written()
    if written is not None and WORD in written:
        return fine(stage.agent, "It can write in its worktree.")
    if written is not None:
        return warning(
            stage.agent,
            f"It wrote {FILE}, but not the requested word.",
            "Check that agent.model names the right model.",
        )
    if run.refusal:
        return fault(stage.agent, run.refusal, TRY_AGAIN)
    if run.stopped_by is TimeLimit.TIMEOUT:
        return fault(
            stage.agent,
            f"It wrote nothing in {WRITE_TIMEOUT.total_seconds() / 60:g} minutes, and was stopped.",
            "Check whether it waits for an answer, or for its model.",
        )
    words = one_line(run.summary, WORDS_CHARS)
    last = f' Its last message: "{words}"' if words else " It printed no message."
    return fault(
        stage.agent,
        f"It wrote nothing and ended with exit code {run.exit_code}.{last}",
        "Fix the reported problem, for example in agent.arguments.",
    )


def _reports(agent: str, facts: AgentFacts) -> Diagnosis:
    spent = spent_in(facts)
    if facts.cost_usd is not None:
        return fine(agent, f"It reports its usage: {spending_text(spent, ' and ')}.")
    if spent.tokens:
        return warning(
            agent,
            f"It reports {spending_text(spent)} but no cost, and its model has no known price.",
            "Add the price of the model under prices, or limit tokens in the budget.",
        )
    return warning(
        agent,
        "It reports no usage, so no budget can limit it.",
        "Make it report its usage, see docs/agents.md.",
    )


def _stops(agent: str, run: AgentRun) -> Diagnosis:
    if run.stopped_by is not TimeLimit.TIMEOUT:
        return note(
            agent,
            "It ended before Mulligan could test that it stops on TERM.",
            "You need to do nothing: Mulligan kills an agent that does not stop.",
        )
    if run.duration < STOP_AFTER + STOP_GRACE:
        return fine(agent, "It stops on TERM and leaves no process behind.")
    return warning(
        agent,
        f"It does not stop on TERM. Mulligan killed it {STOP_GRACE.seconds} s later.",
        "You need to do nothing, but a stopped attempt may lose its last usage report.",
    )


@dataclass(frozen=True, slots=True)
class Probes:
    """Functions that each read one fact, without changing anything that matters.

    - `account`: the login of the credential; `notes`: (fact, advice) about its kind.
    - `facts`, `labels`, `policy`: of a repository; `valid_part`: of an invalid policy.
    - `fetch`: the name of its base branch, fetched.
    - `file`, `names`: a file, and the names in a directory, on that branch; with the path.
    - `at_work`: the Mulligan that runs now; `ledger`: the number of issues, opened for writing.
    - `agent`: by name, "" for the default agent; `network`: `none`, `model` or `open`, by name.
    - `pauses`: what an operator has paused; `stand_backs`: what other installations own.
    - `rest`: why an agent rests, by name, "" if it does not.
    - `signing_key`: the key that signs commits; None if none is configured.
    - `signing_keys`: the public signing keys of an account on GitHub.
    - `rules`: those of a branch of a repository; `protection`: its classic one.
    - `title_style`: the form of titles in a repository.
    - `program_of`: the program that a shell command starts; `has_program`: whether it is found.
    - `image_problem`: why a repository cannot use an image, by both names; "" if it can.
    - `build_problem`: why no image is built for a repository; "" if one may be.
    - `hidden_program`: what the sandbox hides of a shell command, and the cure; None for nothing.
    """

    account: Callable[[], str]
    notes: Callable[[], Sequence[tuple[str, str]]]
    facts: Callable[[str], RepositoryFacts]
    labels: Callable[[str], frozenset[str]]
    fetch: Callable[[str], str]
    policy: Callable[[str], Policy]
    file: Callable[[str, str], bytes | None]
    names: Callable[[str, str], Sequence[str]]
    is_root: Callable[[], bool]
    git_version: Callable[[], tuple[int, int]]
    at_work: Callable[[], str | None]
    ledger: Callable[[], int]
    state_room: Callable[[], DiskSpace | None]
    workspace_room: Callable[[], DiskSpace]
    agent: Callable[[str], AgentPresence]
    sandbox_status: Callable[[], SandboxStatus]
    network: Callable[[str], str]
    program_of: Callable[[str], str]
    has_program: Callable[[str], bool]
    rules: Callable[[str, str], Sequence[BranchRule]]
    protection: Callable[[str, str], ClassicProtection | None]
    signing_keys: Callable[[str], Sequence[str]]
    title_style: Callable[[str, Policy], TitleStyle]
    signing_key: Callable[[], SigningKeyStatus | None] = lambda: None
    hidden_program: Callable[[str], tuple[str, str] | None] = lambda _: None
    pauses: Callable[[], Sequence[Pause]] = tuple
    stand_backs: Callable[[], Sequence[StandBack]] = tuple
    rest: Callable[[str], str] = lambda _: ""
    command_network: Callable[[], CommandNetworkStatus] = CommandNetworkStatus
    valid_part: Callable[[str], Policy] = lambda _: Policy()
    image_problem: Callable[[str, str], str] = lambda _name, _reference: ""
    build_problem: Callable[[str], str] = lambda _name: ""


class MachineProbes(Protocol):
    """The probes of this machine."""

    @property
    def git_version(self) -> Callable[[], tuple[int, int]]: ...
    @property
    def state_room(self) -> Callable[[], DiskSpace | None]: ...
    @property
    def workspace_room(self) -> Callable[[], DiskSpace]: ...
    @property
    def agent(self) -> Callable[[str], AgentPresence]: ...
    @property
    def sandbox_status(self) -> Callable[[], SandboxStatus]: ...
    @property
    def network(self) -> Callable[[str], str]: ...
    @property
    def signing_key(self) -> Callable[[], SigningKeyStatus | None]: ...


class Template(BaseModel):
    """The labels of an issue template: a list, or a text with commas."""

    labels: str | tuple[str, ...] = ()


def labels_put_on(template: bytes) -> tuple[str, ...]:
    """List the labels of an issue template; none if it is invalid."""
    front = FRONT_MATTER.match(template)
    try:
        content: object = yaml.safe_load(front[1] if front else template)
        labels = Template.model_validate(content).labels
    except (yaml.YAMLError, ValueError):
        return ()
    return tuple(each.strip() for each in labels.split(",")) if isinstance(labels, str) else labels


def diagnose_repository(name: str, probes: Probes, *, asks: bool) -> Iterator[Diagnosis]:
    """Check one repository; with `asks`, on GitHub too."""
    rights = list(or_fault(name, _rights(name, probes))) if asks else []
    yield from rights
    (fetched,) = or_fault(name, _fetch(name, probes))
    if fetched.level is Level.FAULT and not asks:
        yield note(name, f"Not checked yet: {fetched.message}", GITHUB_FIRST)
    elif fetched not in rights:
        yield fetched
    known = fetched.level is Level.OK
    try:
        policy = probes.policy(name)
        yield from or_fault(name, _valid_policy(name, policy, probes, known=known))
    except ConfigError as error:
        for mistake in split_mistakes(error):
            yield fault(name, str(mistake), "Fix that file on the base branch.")
        policy = probes.valid_part(name)
    except MulliganError:
        # The fetch above has already reported the same error.
        return
    if asks and fetched not in rights:
        yield from or_fault(name, _labels(name, policy, probes))
    if asks and known:
        yield from _rules(name, policy, probes)
    if known:
        yield from or_fault(name, _files(name, policy, probes))


def _valid_policy(name: str, policy: Policy, probes: Probes, *, known: bool) -> Iterator[Diagnosis]:
    """Check what a policy names; `known` is whether the repository was fetched."""
    if known or policy.checks:
        has_file = not known or _has_policy_file(name, probes)
        yield _policy(name, policy, has_file=has_file)
        yield from _patterns(name, policy)
        yield from _unused(name, policy)
    if policy.reviewer and policy.reviewer.network is True:
        yield warning(
            name,
            "The reviewer command reaches every host (reviewer.network: true), and so does what it"
            " runs of a change.",
            "Use `network: model`, and list other hosts in reviewer.hosts.",
        )
    if policy.image:
        yield from _image(name, policy.image, probes, known=known)
    else:
        yield from _programs(name, policy, probes, known=known)
    if known:
        yield from _repairing(name, policy, probes)


def _rights(name: str, probes: Probes) -> Iterator[Diagnosis]:
    wrong = list(_wrong_rights(name, probes.facts(name)))
    yield from wrong or [fine(name, "The token can push, and issues are enabled.")]


def _wrong_rights(name: str, facts: RepositoryFacts) -> Iterator[Diagnosis]:
    if facts.archived:
        yield fault(
            name,
            "The repository is archived, so Mulligan cannot write to it.",
            "Unarchive it, or remove it from `repositories` in mulligan.yml.",
        )
    if not facts.has_issues:
        fix = "Enable them in the repository's settings on GitHub."
        yield fault(name, "Issues are disabled.", fix)
    if facts.may_push is None:
        yield note(
            name,
            "GitHub does not report whether the token can push.",
            "Make sure that it has read and write access to contents, issues and pull requests.",
        )
    elif not facts.may_push:
        fix = "Give its account the role Write, or use the token of an account that has it."
        yield fault(name, "The token cannot push.", fix)


def _fetch(name: str, probes: Probes) -> Iterator[Diagnosis]:
    yield fine(name, f"Git can fetch the base branch {probes.fetch(name)!r}.")


def _policy(name: str, policy: Policy, *, has_file: bool) -> Diagnosis:
    if not policy.checks and not has_file:
        return warning(
            name,
            f"The base branch has no {POLICY_FILE}, so Mulligan publishes changes without"
            " verification.",
            "Commit the file and push it; `mulligan init` proposes one.",
        )
    if not policy.checks:
        return warning(
            name,
            "The policy has no checks, so Mulligan publishes changes without verification.",
            "Add the repository's test commands under `checks`.",
        )
    checks = pluralize(len(policy.checks), "check")
    attempts = pluralize(policy.max_issue_attempts, "attempt")
    return fine(name, f"The policy is valid: {checks}, {attempts}.")


def _rules(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    """Compare GitHub's rules for branches with an example of Mulligan's work (RULES-1)."""
    base, commit = probes.fetch(name), policy.commit
    ours = Publication(
        branch=f"{BRANCH_PREFIX}1",
        base=base,
        message=message_of(_example(probes.title_style(name, policy)), commit),
        email=commit.email,
        max_file_bytes=policy.scope.max_file_bytes,
        signs=probes.signing_key() is not None,
        merges=policy.update_branch,
        deletes=policy.pull_request.delete_branch,
    )
    on_branch, on_base = list[BranchRule](), list[BranchRule]()
    unknown = list[str]()
    for branch, found in ((ours.branch, on_branch), (base, on_base)):
        try:
            found.extend(probes.rules(name, branch))
        except MulliganError as error:
            unknown.append(f"GitHub does not report its rules for the branch {branch}. {error}")
    try:
        if classic := probes.protection(name, base):
            on_base += rules_of(classic)
    except MulliganError:
        unknown.append(f"The branch {base} is protected, and GitHub does not say how.")
    for message in unknown:
        yield note(name, one_line(message, RULE_CHARS), UNKNOWN_RULES)
    obstacles = list(find_obstacles(name, ours, on_branch, on_base))
    for each in obstacles:
        yield replace(each, message=one_line(each.message, RULE_CHARS))
    if not unknown and not obstacles:
        yield fine(name, "No rule of GitHub's for its branches refuses Mulligan's work.")
    if ours.signs and belongs_to_nobody(commit.email):
        message = f"GitHub shows signed commits of {commit.email} as unverified."
        yield warning(name, message, "Set `commit: {email: …}` in the policy to an account's.")


EXAMPLE = Issue(IssueRef("OWNER/NAME", 1), "Example", "", "octocat", "", is_open=True)


def _example(style: TitleStyle) -> CommitText:
    """Write the message of an example commit, in the form of the repository."""
    title = issue_title(EXAMPLE, style) or EXAMPLE.title
    number = " (#1)" if style.has_number else ""
    return CommitText(
        f"{title}{number}", f"Issue: {EXAMPLE.ref}\nMulligan-Attempt: 1", EXAMPLE.author
    )


RULE_CHARS = 600

UNKNOWN_RULES = (
    "Look at the repository's settings, Rules and Branches: signed commits need"
    " github.signing_key_file, and pushes to `mulligan/**` must be allowed."
)


def _unused(name: str, policy: Policy) -> Iterator[Diagnosis]:
    """Name the keys that have no effect any more."""
    if policy.context.max_unexplained_output_chars is not None:
        message = "The key `context.max_unexplained_output_chars` has no effect any more."
        yield warning(name, message, "Remove it, and set `context.max_digest_chars`.")


def _patterns(name: str, policy: Policy) -> Iterator[Diagnosis]:
    """Name the patterns that find nothing (CONFIG-4)."""
    for check in policy.checks:
        for pattern, advice in check.unusable_patterns():
            shown = one_line(pattern, WORDS_CHARS)
            message = f"The pattern {shown!r} of the check {check.name!r} finds nothing."
            yield warning(name, message, f"{advice[:1].upper()}{advice[1:]}.")


MISPLACED = re.compile(r"\.?mulligan\.(?:ya?ml|json|toml)", re.IGNORECASE)


def _misplaced(name: str, probes: Probes) -> Iterator[Diagnosis]:
    """Name a file that looks like a policy, if the repository has none where Mulligan reads it."""
    if _has_policy_file(name, probes):
        return
    for path in (*probes.names(name, "."), *probes.names(name, ".github")):
        if MISPLACED.fullmatch(path.rpartition("/")[2]):
            message = f"Mulligan does not read {path} as the policy of the repository."
            yield warning(name, message, f"If it is one, move it to {POLICY_FILE}.")


def _has_policy_file(name: str, probes: Probes) -> bool:
    return any(probes.file(name, path) is not None for path in POLICY_FILES)


def _programs(name: str, policy: Policy, probes: Probes, *, known: bool) -> Iterator[Diagnosis]:
    """Find the program of every command; `known` is whether the repository was fetched."""
    lines = [(f"the setup command {line!r}", line) for line in policy.setup.run]
    installers = len(lines)
    lines += [(f"the check {check.name!r}", check.run) for check in policy.checks]
    lines += [("the reviewer", policy.reviewer.run)] if policy.reviewer else []
    missing = [
        (what, program, min(place, installers))
        for place, (what, line) in enumerate(lines)
        if (program := probes.program_of(line)) and not _is_there(name, program, probes, known)
    ]
    made = dict.fromkeys(
        program for _, program, before in missing if before and not _is_on_path(program)
    )
    if made:
        yield note(
            name,
            f"The repository does not contain {' and '.join(map(repr, made))}.",
            "The setup commands have to create that. To try, in a clone: `mulligan check`.",
        )
    for what, program, before in missing:
        message = f"{program!r} not found. It is the program of {what}."
        if not before:
            yield fault(name, message, "Install it, or fix the command.")
        elif program not in made:
            yield warning(name, message, "Make sure that the setup commands install it.")
    hidden = dict.fromkeys(filter(None, (probes.hidden_program(line) for _, line in lines)))
    for reason, fix in hidden:
        yield warning(name, reason, fix)
    if lines and not missing and not hidden:
        yield fine(name, "The programs of the setup commands and checks are installed.")


def _image(name: str, image: str, probes: Probes, *, known: bool) -> Iterator[Diagnosis]:
    """Check whether the image of a policy can be used here (IMAGE-1)."""
    source: str | ImageBuild = image
    if image == DEVCONTAINER:
        if not known:
            return
        try:
            path, text = devcontainer_file(lambda path: probes.file(name, path))
            source = source_of_devcontainer(path, text)
        except MisconfiguredError as error:
            yield fault(name, str(error), NO_IMAGE)
            return
        if ignored := ignored_keys(text):
            message = f"Mulligan ignores {' and '.join(f'`{key}`' for key in ignored)} of {path}."
            yield note(name, message, "Put what the checks need into the image or `setup`.")
    if isinstance(source, str):
        named, problem = f"the image {source}", probes.image_problem(name, source)
    else:
        named, problem = f"an image built from {source.file}", probes.build_problem(name)
        if not problem and probes.file(name, source.file) is None:
            problem = f"{source.file}, which the devcontainer.json names, does not exist; add it."
    if problem:
        yield fault(name, problem, NO_IMAGE)
    else:
        yield fine(name, f"Setup commands and checks run in {named}.")


NO_IMAGE = "Without `image` in the policy, checks run with the machine's programs."


def _repairing(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    """Find checks that repair files: these pass, and verify nothing (CHECK-2)."""
    texts = {
        path: probes.file(name, path) for path in ("pyproject.toml", "ruff.toml", ".ruff.toml")
    }
    read = {path: (text or b"").decode(errors="replace") for path, text in texts.items()}
    repairs = repairs_by_default(read["pyproject.toml"], read["ruff.toml"] or read[".ruff.toml"])
    for check in policy.checks:
        checking = checking_form(check.run, ruff_repairs=repairs)
        if checking != check.run:
            message = f"The check {check.name!r} repairs files instead of reporting them."
            yield warning(name, message, f"Let it run this instead: `{checking}`.")


def _is_there(name: str, program: str, probes: Probes, known: bool) -> bool:  # noqa: FBT001
    """Find a program: a relative path in the repository, another one on this machine."""
    if _is_on_path(program):
        return probes.has_program(program)
    return not known or probes.file(name, str(PurePosixPath(program))) is not None


def _is_on_path(program: str) -> bool:
    return "/" not in program or program.startswith("/")


def _labels(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    existing = {label.casefold() for label in probes.labels(name)}
    ready, wanted = policy.labels.ready, policy.labels
    others = (wanted.running, wanted.review, wanted.hitl)
    if ready.casefold() not in existing:
        yield note(
            name,
            f"The label {ready!r} does not exist, so nobody can add it.",
            "Run `mulligan init` in a clone, or create it on GitHub under Issues, Labels.",
        )
    missing = ", ".join(repr(label) for label in others if label.casefold() not in existing)
    if missing:
        yield note(
            name,
            f"Labels that do not exist yet: {missing}.",
            "You need to do nothing: GitHub creates them when Mulligan first adds them.",
        )


def _files(name: str, policy: Policy, probes: Probes) -> Iterator[Diagnosis]:
    yield from _misplaced(name, probes)
    if b"filter=lfs" in (probes.file(name, ".gitattributes") or b""):
        yield (
            note(
                name,
                "It uses Git LFS. Agents and checks get the files.",
                "You need to do nothing: `checkout.lfs` is on.",
            )
            if policy.checkout.lfs
            else note(
                name,
                "It uses Git LFS. Agents and checks see pointers, not the files.",
                "If a check needs the files, set `checkout: {lfs: true}` in the policy.",
            )
        )
    if probes.file(name, ".gitmodules"):
        yield (
            note(
                name,
                "It has submodules. Agents and checks get their files.",
                "You need to do nothing: `checkout.submodules` is on.",
            )
            if policy.checkout.submodules
            else note(
                name,
                "It has submodules. They are empty for agents and checks.",
                "If a check needs their files, set `checkout: {submodules: true}` in the policy.",
            )
        )
    ready = policy.labels.ready
    for path in probes.names(name, TEMPLATES):
        labels = labels_put_on(probes.file(name, path) or b"")
        if ready.casefold() in {label.casefold() for label in labels}:
            yield warning(
                name,
                f"{path} adds the label {ready!r} to every issue. It starts work only if a trusted "
                "person opens the issue; the other issues never start.",
                f"Remove {ready!r} from the template.",
            )


def diagnose(operator: Operator, probes: Probes) -> Iterator[Diagnosis]:
    """Check this machine, then GitHub, then every repository."""
    yield from diagnose_without_configuration(probes.is_root, probes.git_version)
    yield from or_fault(STATE, _state(probes))
    yield from or_fault(STATE, _running(probes))
    yield from _rooms(probes, operator.limits.free_mib * MIB)
    for name in operator.all_agents:
        yield from _agent(name, probes.agent(name))
        if rest := probes.rest(name):
            yield warning(f"agents.{name}" if name else AGENT, rest, RESTS)
    yield from _sandbox(operator.sandbox.mode, probes, operator.all_agents)
    yield from or_fault(SANDBOX, _command_network(probes))
    yield from or_fault(SIGNING, _signing(probes))
    (account,) = or_fault(GITHUB, _account(operator, probes))
    yield account
    if account.level is Level.OK:
        yield from or_fault(SIGNING, _registered(probes))
        yield from (note(GITHUB, message, fix) for message, fix in probes.notes())
    for repository in operator.repositories:
        name, asks = repository.name, account.level is Level.OK
        yield from or_fault(name, diagnose_repository(name, probes, asks=asks))


def diagnose_without_configuration(
    is_root: Callable[[], bool], git_version: Callable[[], tuple[int, int]]
) -> Iterator[Diagnosis]:
    """Check what does not depend on the configuration."""
    if is_root():
        yield warning(USER, AS_ROOT, NOT_AS_ROOT)
    yield from or_fault(GIT, _git(git_version))


def machine_faults(operator: Operator, probes: MachineProbes) -> tuple[Diagnosis, ...]:
    """Return the faults that hold all work on this machine (OUTCOME-5).

    They are those of git, the disks, the sandbox and the signing key.

    Disk space is not among them: each start checks it, and may free some.
    """
    walls = _sandbox(operator.sandbox.mode, probes, ())
    signing = or_fault(SIGNING, _signing(probes))
    found = (*or_fault(GIT, _git(probes.git_version)), *_rooms(probes, 0), *walls, *signing)
    return tuple(each for each in found if each.level is Level.FAULT)


def agent_faults(name: str, found: AgentPresence) -> tuple[Diagnosis, ...]:
    """Find why an agent cannot start on this machine; the default agent has the name ""."""
    return tuple(each for each in _agent(name, found) if each.level is Level.FAULT)


def _git(git_version: Callable[[], tuple[int, int]]) -> Iterator[Diagnosis]:
    found = git_version()
    version, oldest = (".".join(map(str, each)) for each in (found, OLDEST_GIT))
    if found < OLDEST_GIT:
        yield fault(
            GIT,
            f"Git {version} is too old: it always reads the user's configuration.",
            f"Install git {oldest} or newer.",
        )
    else:
        yield fine(GIT, f"Git {version} is installed.")


def _signing(probes: MachineProbes) -> Iterator[Diagnosis]:
    """Check the key that signs commits, if one is configured (COMMIT-3)."""
    status = probes.signing_key()
    if status is None:
        return
    if problem := signing_problem(status):
        yield fault(SIGNING, *problem)
    else:
        yield fine(SIGNING, f"Every commit is signed with {status.file}.")


def _registered(probes: Probes) -> Iterator[Diagnosis]:
    """Report a signing key that GitHub does not know for Mulligan's account."""
    status = probes.signing_key()
    if status is None or signing_problem(status):
        return
    login = probes.account()
    if login.endswith("[bot]"):
        yield note(
            SIGNING,
            "A GitHub App has no signing keys, so GitHub looks for the key by the email address.",
            "Add the public key to the account that `commit: {email: …}` of the policy belongs to.",
        )
    elif status.public_key not in probes.signing_keys(login):
        yield warning(
            SIGNING,
            f"GitHub knows no such signing key of {login}, so it shows the commits as unverified.",
            f"Add {status.file}.pub to that account as a signing key ({SIGNED_COMMITS}).",
        )


def _state(probes: Probes) -> Iterator[Diagnosis]:
    issues = probes.ledger()
    pauses, stand_backs = probes.pauses(), probes.stand_backs()
    yield from (warning(STATE, each.sentence, RESUME) for each in pauses)
    yield from (warning(STATE, each.sentence, ONE_OWNER) for each in stand_backs)
    known = pluralize(issues, "issue")
    yield fine(STATE, f"Mulligan can read and write the ledger. It has {known}.")


def _running(probes: Probes) -> Iterator[Diagnosis]:
    if at_work := probes.at_work():
        yield fine(STATE, f"{at_work} is running.")
    else:
        fix = "To work on issues, start `mulligan run` or `mulligan once`."
        yield note(STATE, "No Mulligan is running now.", fix)


def _rooms(probes: MachineProbes, least: int) -> Iterator[Diagnosis]:
    """Check the disks of the ledger and of the workspace for `least` free bytes."""
    for area, key, look in (
        (STATE, "state.url", probes.state_room),
        (WORKSPACE, "workspace.root", probes.workspace_room),
    ):
        yield from or_fault(area, _room(area, key, look, least))


def _room(
    area: str, key: str, look: Callable[[], DiskSpace | None], least: int
) -> Iterator[Diagnosis]:
    room = look()
    if room is None:
        return
    free = f"{room.free / GIB:.1f} GiB are free for {room.path}"
    fix = f"Free space on that disk, or set another directory in {key}."
    if not room.writable:
        fix = f"Give this user write access, or set another directory in {key}."
        yield fault(area, f"Mulligan cannot write to {room.path}.", fix)
    elif short := disk_shortage([room], least):
        yield fault(area, f"No attempt can start: {free}. {short}", fix)
    elif room.free < LOW_DISK_BYTES:
        yield warning(area, f"Only {free}.", fix)
    else:
        yield fine(area, f"{free}.")


RESTS = "Fix the named problem, then try it: `mulligan doctor --agent`. Work continues after that."


def _agent(name: str, found: AgentPresence) -> Iterator[Diagnosis]:
    """Check the agent of that name in mulligan.yml."""
    key, program = f"agents.{name}" if name else AGENT, found.wanted
    if found.program and found.failure:
        fix = "Run it by hand, and install it again with the interpreter and libraries it needs."
        if found.install:
            fix = f"Run it by hand, and install it again: `{found.install}`."
        message = f"The agent's program {found.program} does not start. {found.failure}"
        yield fault(key, message.rstrip(".") + ".", fix)
    elif found.program:
        yield fine(key, f"The agent's program is {found.program}.")
    elif "/" in program and not program.startswith("/"):
        yield warning(
            key,
            f"The agent's program {program!r} is a path relative to each worktree.",
            f"Write its full path in {key}.command, unless the repositories contain it.",
        )
    elif found.not_executable:
        message = f"The agent's program {found.not_executable} is not executable."
        yield fault(key, message, f"Run `chmod +x {found.not_executable}` as its owner.")
    else:
        fix = f"Install it on the PATH of this process, or fix {key}.command."
        if found.install:
            fix = f"Install it: `{found.install}`, or name another agent in {key}.kind."
        yield fault(key, f"The agent's program {program!r} was not found.", fix)
    for file in found.missing_files:
        fix = f"Create it, or fix {key}.command."
        yield warning(key, f"{key}.command names {file}, which does not exist.", fix)
    for variable in found.missing_variables:
        fix = f"Set it where Mulligan runs, or remove it from {key}.env."
        yield fault(key, f"{key}.env names {variable}, which is not set.", fix)


def _sandbox(
    mode: SandboxMode, probes: MachineProbes, agents: Collection[str]
) -> Iterator[Diagnosis]:
    if mode is SandboxMode.OFF:
        fix = "Set sandbox to auto or required."
        yield warning(SANDBOX, f"The sandbox is off: {UNCONFINED}", fix)
        return
    walls = probes.sandbox_status()
    if walls.available:
        yield fine(SANDBOX, "Bubblewrap confines agents, setup commands and checks.")
        for name in agents:
            yield from or_fault(SANDBOX, _network(name, probes))
    else:
        off = "" if mode is SandboxMode.REQUIRED else f" Or set sandbox to off: {UNCONFINED}"
        reason = f"`sandbox: {mode}` needs a working sandbox. {walls.reason}"
        yield fault(SANDBOX, reason, f"{walls.fix}{off}")
    if walls.available and not walls.calls_filtered:
        yield note(
            SANDBOX,
            "The sandbox does not filter system calls on this processor.",
            "You need to do nothing; the other limits of the sandbox apply.",
        )
    if walls.copies:
        message = f"Each command copies the files that setup commands left: {walls.copies}."
        yield note(SANDBOX, message, "docs/verification.md says what this costs and what helps.")
    for path in walls.missing:
        fix = "Create it, or remove it from `sandbox` in mulligan.yml."
        yield warning(SANDBOX, f"`sandbox` lists {path}, which does not exist.", fix)
    for path in walls.closed:
        yield warning(
            SANDBOX,
            f"`sandbox` lists {path}, but the user of sandboxed commands cannot read it.",
            "Give that user access (docs/security.md), or remove it from `sandbox`.",
        )


def _command_network(probes: Probes) -> Iterator[Diagnosis]:
    """Report variables, files and package indexes that commands cannot use as intended."""
    found = probes.command_network()
    for name in found.unset:
        message = f"`sandbox.env` lists {name}, which is not set where Mulligan runs."
        yield warning(SANDBOX, message, f"Set {name}, or remove it from sandbox.env.")
    for name in found.exposed:
        message = f"{name} in `sandbox.env` has a password, which every check can read."
        yield warning(SANDBOX, message, f"Remove it from {name}. {TO_REGISTRIES}")
    for path in found.secret_files:
        message = f"Commands in the sandbox cannot read {path}, since it contains a secret."
        yield warning(SANDBOX, message, f"Remove the secret from the file. {TO_REGISTRIES}")
    for problem in found.registry_problems:
        yield warning(SANDBOX, problem, "Correct sandbox.registries, or fix that server.")


TO_REGISTRIES = "For a package index, set `sandbox.registries`."


def _network(name: str, probes: MachineProbes) -> Iterator[Diagnosis]:
    """Report which hosts an agent can reach from the sandbox."""
    who = f"The agent {name}" if name else "The agent"
    match probes.network(name):
        case "model":
            yield fine(SANDBOX, f"{who} can reach only its model and sandbox.hosts.")
        case "none":
            yield fine(SANDBOX, f"{who} has no network.")
        case _:
            fix = "To limit it, list the hosts of its model in sandbox.hosts."
            yield note(SANDBOX, f"{who} can reach every host that this machine can.", fix)


def _account(operator: Operator, probes: Probes) -> Iterator[Diagnosis]:
    settings = operator.github
    if settings.token is None and settings.token_file is None and settings.app is None:
        fix = "Set one in an environment variable and write `github: {token: $NAME}`."
        yield fault(GITHUB, "No token for GitHub is configured.", fix)
        return
    what = "the App's key" if settings.app else "the token"
    yield fine(GITHUB, f"GitHub accepts {what}; its account is {probes.account()}.")
