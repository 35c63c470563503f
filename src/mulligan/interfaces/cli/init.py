"""`mulligan init`: propose a configuration for a clone, show it, and write it on request."""

import os
import re
import secrets
import shlex
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from rich.console import Console
from rich.markup import escape

from mulligan.config.certificates import trusted_bundle
from mulligan.config.load import load_operator, load_policy, policy_in
from mulligan.config.operator import AgentSettings, GitHubSettings, Operator
from mulligan.config.policy import Labels
from mulligan.config.settings import format_duration
from mulligan.domain.errors import MulliganError, UnavailableError, UsageError
from mulligan.domain.issue import REPOSITORY
from mulligan.implement.prompt.outcome_text import pluralize
from mulligan.interfaces.action.workflow import (
    WORKFLOW_FILE,
    WorkflowSettings,
    minute_of,
    workflow_text,
)
from mulligan.interfaces.bootstrap.clone import (
    BUILT_IN_AGENTS,
    MadeApp,
    Registration,
    agent_here,
    agents_here,
    create_labels,
    gh_token,
    git_config,
    installed_from,
    machine_here,
    missing_labels,
    propose_policy,
    read_tree,
)
from mulligan.interfaces.cli.exit_codes import Exit
from mulligan.interfaces.cli.setup import DEFAULT, configuration_path, environment, make_console
from mulligan.interfaces.cli.terminal import (
    print_command,
    print_diff,
    print_error,
    typed,
)
from mulligan.interfaces.cli.trial import try_plan
from mulligan.interfaces.onboarding.plans import plan
from mulligan.interfaces.onboarding.proposal import (
    ActionSource,
    FileDraft,
    Origin,
    Proposal,
    named,
    operator_text,
    origin_of,
    policy_text,
    with_repository,
)

# `mulligan init`


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of `mulligan init`."""

    directory: Path
    yes: bool = False
    repository: str | None = None
    config: Path | None = None
    workflow: bool = True
    action: str | None = None
    gh_token: bool = False
    pull_request: bool = False
    tries: bool = True


@dataclass(frozen=True, slots=True)
class InitPlan:
    """The files to write and the labels to create; `token` goes into a separate file.

    `path` is that of the `policy` in the repository.

    With `proposes`, a pull request proposes the `policy`, instead of a file in the clone.
    """

    policy: str
    path: str
    drafts: tuple[FileDraft, ...]
    missing: tuple[str, ...]
    labels: Labels
    operator: Operator | None
    origin: Origin | None
    token: tuple[Path, str] | None = None
    proposes: bool = False

    @property
    def can_propose(self) -> bool:
        """Return whether a pull request with the policy can be opened."""
        return bool(self.origin and self.operator and _has_token(self.operator))


TOKEN_FILE = "mulligan-token"  # noqa: S105 - a name


def init(options: InitOptions) -> Exit:
    """Propose, show, ask, write; leave existing files and keys unchanged."""
    console, clone = make_console(), options.directory.absolute()
    origin, config = _origin(options, git_config(clone)), _operator_path(options, clone)
    token = _gh_token(options, origin, config)
    plan = _plan(console, clone, origin, config, token, tries=options.tries)
    if options.workflow:
        plan = _with_workflow(console, plan, clone, options.action)
    if options.pull_request and not plan.can_propose:
        raise UsageError(
            "To open a pull request, Mulligan needs the repository's name and a token. Set"
            " GITHUB_TOKEN, or add --gh-token."
        )
    if not (plan.drafts or plan.missing or options.pull_request):
        console.print("Nothing to do.")
        return Exit.DONE
    for draft in plan.drafts:
        _show(console, draft)
    if plan.missing and origin:
        names = ", ".join(plan.missing)
        console.print(f"\nLabels to create on {escape(origin.name)}: {escape(names)}")
    answer = _answer(console, options, plan, clone)
    if answer is Answer.NO:
        console.print("Nothing was written.")
        return Exit.FAILED
    if answer is Answer.PULL_REQUEST:
        kept = tuple(draft for draft in plan.drafts if draft.path != clone / plan.path)
        plan = replace(plan, drafts=kept, proposes=True)
    _carry_out(console, plan)
    plan = replace(plan, proposes=_propose(console, plan))
    _say_next(console, clone, config, plan)
    return Exit.DONE


def _origin(options: InitOptions, config: str) -> Origin | None:
    found = origin_of(config)
    if options.repository is None:
        return found
    if not REPOSITORY.fullmatch(options.repository):
        raise UsageError(f"{options.repository!r} does not name a repository; write OWNER/NAME.")
    return Origin(options.repository, found.host if found else "")


def _operator_path(options: InitOptions, clone: Path) -> Path:
    """Return the path of the operator's file: an existing one, or a new one outside the clone."""
    path = configuration_path(options.config)
    if options.config or path != DEFAULT or path.exists():
        return path
    return clone.parent / DEFAULT if Path.cwd().is_relative_to(clone) else path


def _gh_token(options: InitOptions, origin: Origin | None, config: Path) -> tuple[Path, str] | None:
    """With --gh-token, return the path of the token file and the token of `gh`; else None."""
    if not options.gh_token:
        return None
    if config.exists():
        raise UsageError(
            f"{config} already exists. To take the token of gh, remove its `github` settings first."
        )
    host = origin.host if origin and origin.api_url else ""
    return config.absolute().with_name(TOKEN_FILE), gh_token(environment(), host)


def _plan(
    console: Console,
    clone: Path,
    origin: Origin | None,
    config: Path,
    token: tuple[Path, str] | None,
    *,
    tries: bool,
) -> InitPlan:
    drafts, labels = list[FileDraft](), Labels()
    path = policy_in(clone)
    policy = clone / path
    if policy.exists():
        text = policy.read_text(encoding="utf-8")
        existing = load_policy(text.encode(), {}, str(policy))
        labels = existing.labels
        console.print(f"{path} already exists, with {pluralize(len(existing.checks), 'check')}.")
    else:
        text = policy_text(_proposal(console, clone, config, tries=tries))
        drafts.append(FileDraft(policy, text))
    operator = _operator(console, origin, config, drafts, token)
    _say_agents(console, operator)
    missing = _missing(console, operator, origin, labels)
    return InitPlan(text, path, tuple(drafts), missing, labels, operator, origin, token)


def _proposal(console: Console, clone: Path, config: Path, *, tries: bool) -> Proposal:
    """Find the repository's setup commands and checks, and try them."""
    planned = plan(read_tree(clone), machine_here(environment()))
    checks = planned.proposal.checks
    if not checks:
        message = f"No test commands found in {clone}. Add its checks to the file below."
        console.print(message, markup=False)
        return planned.proposal
    found = f"{planned.proposal.ecosystem}: {pluralize(len(checks), 'check')} found in {clone}."
    console.print(found, markup=False)
    if not tries:
        return planned.proposal
    return try_plan(console, planned, clone, config)


def _operator(
    console: Console,
    origin: Origin | None,
    config: Path,
    drafts: list[FileDraft],
    token: tuple[Path, str] | None,
) -> Operator | None:
    """Read the operator's file, or draft one; None if the repository is unknown."""
    if config.exists():
        operator = load_operator(config, environment(), needs_token=False)
        known = {each.name.lower() for each in operator.repositories}
        if origin is None or origin.name.lower() in known:
            return operator
        before = config.read_text(encoding="utf-8")
        if (added := with_repository(before, origin.name)) is None:
            console.print(
                f"{config} does not name {origin.name}. Add it to `repositories` there.",
                markup=False,
            )
            return operator
        return _as_read(drafts, FileDraft(config, added, before))
    if origin is None:
        console.print(
            "No git remote on GitHub, so there is no proposal for mulligan.yml. Name the"
            " repository with --repository OWNER/NAME."
        )
        return None
    agent = agent_here(environment())
    if token is None:
        return _as_read(drafts, FileDraft(config, operator_text(origin, agent)))
    file, secret = token
    drafts.append(FileDraft(config, operator_text(origin, agent, str(file))))
    # The file is written later, so that its token is read from a variable now.
    variables = {**environment(), "GITHUB_TOKEN": secret}
    return _as_read([], FileDraft(config, operator_text(origin, agent)), variables)


def _as_read(
    drafts: list[FileDraft], draft: FileDraft, variables: Mapping[str, str] | None = None
) -> Operator:
    """Add the draft of an operator's file, and return its settings."""
    drafts.append(draft)
    with tempfile.TemporaryDirectory() as place:
        trial = Path(place) / DEFAULT
        trial.write_text(draft.text, encoding="utf-8")
        return load_operator(trial, variables or environment(), needs_token=False)


def _missing(
    console: Console, operator: Operator | None, origin: Origin | None, labels: Labels
) -> tuple[str, ...]:
    """Return the labels that are missing on GitHub; none if they cannot be read."""
    if operator is None or origin is None:
        return ()
    if not _has_token(operator):
        message = f"The labels of {origin.name} were not checked: the token's variable is not set."
        console.print(message, markup=False)
        return ()
    try:
        return missing_labels(operator, environment(), origin.name, labels)
    except MulliganError as error:
        console.print(f"The labels could not be read: {escape(str(error))}")
        return ()


def _has_token(operator: Operator) -> bool:
    github = operator.github
    token = github.token and github.token.get_secret_value()
    return bool(github.token_file or github.app or token)


def _say_agents(console: Console, operator: Operator | None) -> None:
    """Print which agents are installed, and whether the configured one is."""
    kind = operator.agent.kind if operator else agent_here(environment())
    if kind not in BUILT_IN_AGENTS:
        return
    installed = agents_here(environment())
    found = f"Of the six built-in agents, {', '.join(installed) or 'none'} is installed."
    if len(installed) > 1:
        found = f"Installed agents: {', '.join(installed)}."
    console.print(f"{found} mulligan.yml names {kind}.", markup=False)


def _with_workflow(console: Console, plan: InitPlan, clone: Path, action: str | None) -> InitPlan:
    agent = plan.operator.agent if plan.operator else None
    proposed = propose_workflow(clone, plan.origin, agent, action)
    if isinstance(proposed, str):
        console.print(escape(proposed))
        return plan
    return replace(plan, drafts=(*plan.drafts, proposed))


def _show(console: Console, draft: FileDraft) -> None:
    console.print()
    print_diff(console, draft.diff(_shown(draft.path)))


def _shown(path: Path) -> str:
    """Return a path as a user would type it here."""
    current = Path.cwd()
    return str(path.relative_to(current)) if path.is_relative_to(current) else str(path)


class Answer(Enum):
    """A person's answer to the proposal."""

    NO = auto()
    YES = auto()
    PULL_REQUEST = auto()


def _answer(console: Console, options: InitOptions, plan: InitPlan, clone: Path) -> Answer:
    """Ask what to do; offer a pull request if a new policy can be proposed in one."""
    chosen = Answer.PULL_REQUEST if options.pull_request else Answer.YES
    if options.yes:
        return chosen
    if not sys.stdin.isatty():
        raise UsageError(
            "Nothing was written, because there is no terminal to confirm on. To"
            " write the files, add --yes."
        )
    has_policy = any(draft.path == clone / plan.path for draft in plan.drafts)
    offered = has_policy and plan.can_propose and not options.pull_request
    if options.pull_request:
        question = "Open the pull request, and write the other files?"
    elif plan.drafts:
        question = "Write these files?"
    else:
        question = "Create these labels?"
    if offered:
        console.print()
        console.print(f"Answer p to open a pull request with {plan.path} instead.", markup=False)
    choices, space = ("[y/p/N]", "") if offered else ("[y/N]", "\n")
    answer = console.input(f"{space}{question} {choices} ", markup=False).strip().lower()
    if offered and answer == "p":
        return Answer.PULL_REQUEST
    return chosen if answer in {"y", "yes"} else Answer.NO


def _carry_out(console: Console, plan: InitPlan) -> None:
    console.print()
    if plan.token:
        file, secret = plan.token
        file.touch(mode=0o600)
        file.chmod(0o600)
        file.write_text(f"{secret}\n", encoding="utf-8")
        console.print(f"Wrote the token of gh to {escape(_shown(file))}; only you can read it.")
    for draft in plan.drafts:
        draft.path.parent.mkdir(parents=True, exist_ok=True)
        draft.path.write_text(draft.text, encoding="utf-8")
        console.print(f"Wrote {escape(_shown(draft.path))}.")
    if plan.operator and plan.origin and plan.missing:
        create_labels(plan.operator, environment(), plan.origin.name, plan.labels)
        console.print(f"Created {pluralize(len(plan.missing), 'label')}.")


def _propose(console: Console, plan: InitPlan) -> bool:
    """Open the pull request with the policy, and report it; return whether it waits for a merge."""
    if not (plan.operator and plan.origin and plan.proposes):
        return False
    variables = {**environment(), **({"GITHUB_TOKEN": plan.token[1]} if plan.token else {})}
    found = propose_policy(plan.operator, variables, plan.origin.name, plan.policy, plan.path)
    message = PROPOSED[found.state].format(url=found.url) if found else NO_DIFFERENCE
    console.print(message, markup=False, soft_wrap=True)
    return found is not None and found.state in {"opened", "open"}


NO_DIFFERENCE = "The base branch has this policy already, so no pull request is needed."

PROPOSED = {
    "opened": "Opened a pull request with the policy: {url}",
    "open": "The pull request with the policy is open: {url}",
    "merged": "The pull request with the policy was merged: {url}",
    "closed": (
        "The pull request with the policy was closed without being merged: {url}\n"
        "Mulligan does not open it again. Reopen it there, or push the policy yourself."
    ),
}


def _say_next(console: Console, clone: Path, config: Path, plan: InitPlan) -> None:
    steps = list(_steps(clone, config, plan))
    console.print("\nNext:")
    for number, (what, line) in enumerate(steps, 1):
        console.print(f"{number}. {what}", markup=False)
        if line:
            print_command(console, f" {line}")


def _steps(clone: Path, config: Path, plan: InitPlan) -> Iterator[tuple[str, str]]:
    """Yield the next steps, in order: a sentence, and its command if there is one."""
    policy = load_policy(plan.policy.encode(), {}, plan.path)

    def there(line: str) -> str:
        """Run a command in the clone; the shell stays where it is, for the steps after it."""
        return line if Path.cwd() == clone else f"(cd {shlex.quote(_shown(clone))} && {line})"

    if plan.proposes:
        yield "Merge the pull request with the policy, then fetch it.", there("git pull")
    if not policy.checks:
        yield f"Add the commands that test a change to {_shown(clone / plan.path)}.", ""
    found = {DEFAULT, clone.parent / DEFAULT}
    of_clone = "" if Path.cwd() == clone else f" {shlex.quote(_shown(clone))}"
    checking = typed(f"check{of_clone}", None if config in found else config)
    yield "Run the setup commands and the checks as an attempt does.", checking
    if any(draft.path.is_relative_to(clone / ".github") for draft in plan.drafts):
        add = "git add .github && git commit -m 'Let Mulligan work on this repository' && git push"
        what = "Push the policy. Mulligan reads it from the base branch."
        yield "Push the workflow." if plan.proposes else what, there(add)
    for step in workflow_steps(clone, plan.drafts):
        yield step, ""
    yield from _steps_on_machine(config, plan, policy.labels.ready)


def _steps_on_machine(config: Path, plan: InitPlan, ready: str) -> Iterator[tuple[str, str]]:
    """Yield the next steps that do not concern the clone."""
    if plan.operator and (missing := _agent_to_install(plan.operator)):
        yield f"Install the agent {plan.operator.agent.kind}, or name another one.", missing
    if plan.operator and not _has_token(plan.operator):
        yield "Set a token (docs/quickstart.md).", _to_set_a_token()
    if plan.operator:
        given = None if config == DEFAULT else config
        yield "See whether anything is missing.", typed("doctor", given)
        yield f"Put the label {ready} on an issue, then make a pass.", typed("once", given)


def _agent_to_install(operator: Operator) -> str:
    """Return the command that installs the configured agent; empty if it is installed."""
    kind = operator.agent.kind
    known = BUILT_IN_AGENTS.get(kind)
    return known.install if known and kind not in agents_here(environment()) else ""


def _to_set_a_token() -> str:
    from_gh = shutil.which("gh", path=environment().get("PATH"))
    return f"export GITHUB_TOKEN={'$(gh auth token)' if from_gh else '…'}"


# The workflow of the Action


COMMAND = "command"

UNKNOWN = (
    "No workflow is proposed: this installation does not know its commit on GitHub. To run"
    " Mulligan as an Action, add --action OWNER/NAME@COMMIT."
)

OWN_AGENT = (
    "The workflow is left out, since mulligan.yml alone describes the agent {kind!r}; see "
    "docs/action.md for how an Action gets such a file."
)


def propose_workflow(
    clone: Path, origin: Origin | None, agent: AgentSettings | None, action: str | None
) -> FileDraft | str:
    """Propose `.github/workflows/mulligan.yml`, or return why not.

    `action` is OWNER/NAME@COMMIT of Mulligan.
    """
    given, path = named(action) if action else None, clone / WORKFLOW_FILE
    if path.exists():
        return f"{WORKFLOW_FILE} already exists."
    source = given or installed_from(environment())
    if source is None or not source.serves(origin):
        return UNKNOWN
    kind = agent.kind if agent else agent_here(environment())
    if kind not in {*BUILT_IN_AGENTS, COMMAND}:
        return OWN_AGENT.format(kind=kind)
    repository = origin.name if origin else clone.name
    return FileDraft(path, workflow_text(_caller(source, kind, agent, repository)))


def _caller(
    source: ActionSource, kind: str, agent: AgentSettings | None, repository: str
) -> WorkflowSettings:
    known = BUILT_IN_AGENTS.get(kind)
    return WorkflowSettings(
        source=source.name,
        sha=source.commit,
        version="",
        agent=kind,
        install=known.install if known else "",
        secret=known.secret if known else "",
        command=shlex.join(agent.command) if agent and kind == COMMAND else "",
        model=(agent.model if agent else None) or "",
        minute=minute_of(repository),
    )


def workflow_steps(clone: Path, drafts: Iterable[FileDraft]) -> Iterator[str]:
    """Yield the next steps after the workflow was written."""
    for draft in drafts:
        if draft.path == clone / WORKFLOW_FILE:
            yield "Either push the workflow too, and the Action does the work, or run it here."
            for name in sorted({each.secret for each in BUILT_IN_AGENTS.values()}):
                if f"secrets.{name}" in draft.text:
                    yield f"For the Action, add the secret {name} to the repository."


# `mulligan init --app`: register a GitHub App


@dataclass(frozen=True, slots=True)
class AppRequest:
    """The options of `mulligan init --app`."""

    organization: str | None = None
    name: str | None = None
    key_file: Path | None = None


def init_app(options: InitOptions, wanted: AppRequest) -> Exit:
    """Create a GitHub App; the clone, if any, gives the repository and the server."""
    clone = options.directory.absolute()
    origin = _origin(options, git_config(clone) if (clone / ".git").exists() else "")
    return register(wanted, origin, _operator_path(options, clone))


KEY = Path("mulligan-app.pem")
CALLBACK_TIMEOUT = timedelta(minutes=15)
DEFAULT_API_URL = GitHubSettings().api_url


def register(wanted: AppRequest, origin: Origin | None, config: Path) -> Exit:
    """Create the App on GitHub in a browser, write its key, and print the configuration."""
    console, github = make_console(), _github(origin, config)
    owner = wanted.organization or (origin.name.partition("/")[0] if origin else "")
    name = wanted.name or f"mulligan-{owner}".rstrip("-")
    bundle = trusted_bundle(environment(), github.ca_file)
    options = Registration(github.api_url, name, wanted.organization, bundle)
    place = (wanted.key_file or config.parent / KEY).absolute()
    try:
        with _reserved(place) as write:
            app = _have_made(options, console)
            write(app.pem)
    except KeyboardInterrupt:
        print_error("Interrupted, so no key was written. Start again: mulligan init --app")
        return Exit.INTERRUPTED
    _say(console, app, github, place)
    return Exit.DONE


def _github(origin: Origin | None, config: Path) -> GitHubSettings:
    """Return the GitHub settings of the configuration, else those of the clone."""
    if config.exists():
        return load_operator(config, environment(), needs_token=False).github
    return GitHubSettings(api_url=(origin and origin.api_url) or DEFAULT_API_URL)


def _have_made(options: Registration, console: Console) -> MadeApp:
    with oauth_callback_server() as callback:
        callback.page = options.page(callback.state, callback.back)
        console.print(f"Open {callback.address} in a browser on this machine.", markup=False)
        return options.exchange(callback.wait(CALLBACK_TIMEOUT))


@contextmanager
def _reserved(place: Path) -> Generator[Callable[[str], None]]:
    """Create the empty key file, readable by this user only, before the key exists."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise UsageError(
            f"{place} already exists. Move it, or name another file with --key-file FILE."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{place} could not be written ({error.strerror}). Name another file"
            " with --key-file FILE."
        ) from error
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


def _say(console: Console, app: MadeApp, github: GitHubSettings, place: Path) -> None:
    server = f"  api_url: {github.api_url}\n" if github.api_url != DEFAULT_API_URL else ""
    lines = f"github:\n{server}  app:\n    id: {app.id}\n    private_key_file: {place}\n"
    console.print(f"GitHub created the App. Its private key is in {place}.", markup=False)
    console.print("\nWrite this to mulligan.yml, instead of the token:\n", markup=False)
    console.print(lines, markup=False)
    console.print(f"Then install it on your repositories: {app.install_url}", markup=False)


# The page to which GitHub redirects the browser

HOST = "127.0.0.1"
BACK = "/back"
CODE = re.compile(r"[A-Za-z0-9_.-]{1,200}")
THANKS = "Done. Go back to the terminal."
SECOND = "Mulligan already has an answer. Go back to the terminal."
WRONG_STATE = "This answer belongs to another request. Open the address that the terminal shows."
NOWHERE = "Page not found. Open the address that the terminal shows."


class OAuthCallbackServer:
    """A web page at `address`; a request with its `state` ends the wait."""

    def __init__(self, port: int) -> None:
        self.state = secrets.token_urlsafe(32)
        self.host = f"{HOST}:{port}"
        self.page = ""
        self._heard = threading.Event()
        self._code = ""

    @property
    def address(self) -> str:
        """Return the address for the browser."""
        return f"http://{self.host}/"

    @property
    def back(self) -> str:
        """Return the address for the redirect."""
        return f"http://{self.host}{BACK}"

    def wait(self, limit: timedelta) -> str:
        """Return the code from the redirect; UnavailableError if none arrives in time."""
        if not self._heard.wait(limit.total_seconds()):
            time = format_duration(limit)
            raise UnavailableError(
                f"No answer from the browser within {time}, so nothing was"
                " written. Start again: mulligan init --app"
            )
        return self._code

    def answer(self, host: str, target: str) -> tuple[HTTPStatus, str]:
        """Answer a request for `target`; refuse one with another Host: a foreign page sent it."""
        parts = urlsplit(target)
        if host == self.host and parts.path == "/":
            return HTTPStatus.OK, self.page
        if host != self.host or parts.path != BACK:
            return HTTPStatus.NOT_FOUND, NOWHERE
        given = parse_qs(parts.query)
        state, code = given.get("state", [""])[0], given.get("code", [""])[0]
        is_ours = secrets.compare_digest(state.encode(), self.state.encode())
        if not is_ours or not CODE.fullmatch(code):
            return HTTPStatus.BAD_REQUEST, WRONG_STATE
        if self._heard.is_set():
            return HTTPStatus.CONFLICT, SECOND
        self._code = code
        self._heard.set()
        return HTTPStatus.OK, THANKS


@contextmanager
def oauth_callback_server() -> Generator[OAuthCallbackServer]:
    """Listen on a free port of loopback; stop the thread and close the socket afterwards."""
    server = ThreadingHTTPServer((HOST, 0), BaseHTTPRequestHandler)
    callback = OAuthCallbackServer(server.server_address[1])
    server.RequestHandlerClass = _handler(callback.answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="oauth-callback")
    thread.start()
    try:
        yield callback
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


def _handler(answer: Callable[[str, str], tuple[HTTPStatus, str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            status, text = answer(self.headers.get("Host", ""), self.path)
            body = text.encode()
            self.send_response(status)
            for name, value in {**HEADERS, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Log nothing: the request's target contains a secret."""

    return Handler
