"""`mulligan.yml`: the settings of the operator of a machine."""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mulligan.config.adapters import Adapter
from mulligan.config.policy import Policy
from mulligan.config.settings import (
    Budget,
    Duration,
    HostName,
    LocalPath,
    Price,
    Settings,
    matching,
    short_form,
)
from mulligan.domain.issue import REPOSITORY, Permission

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"

ADDRESS = re.compile(rf"(?P<host>{NAME}|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{{1,5}})")

OFF = "off"

HIGHEST_PORT = 65535

OPERATOR_FILE = "mulligan.yml"
"""The usual name of the file on the machine that runs Mulligan."""
STATE_HOME = "~/.local/state/mulligan"
LISTEN = "127.0.0.1:8787"


class AppSettings(Settings):
    """The GitHub App that Mulligan acts as; set one of the two keys."""

    id: int | str
    """The App ID or the client ID.

    Example: 123456
    """
    private_key_file: LocalPath | None = None
    """The file with the app's private key."""
    private_key: SecretStr | None = Field(default=None, validate_default=True)
    """The private key itself, as $NAME (an environment variable).

    Example: $MULLIGAN_APP_KEY
    """

    @field_validator("private_key")
    @classmethod
    def _one_key(cls, key: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if (key is None) is (info.data.get("private_key_file") is None):
            raise ValueError(
                "name either the file of the app's private key or the key itself as $NAME"
            )
        return key


class GitHubSettings(Settings):
    """The address of GitHub, and the credentials."""

    api_url: str = "https://api.github.com"
    """The address of the REST API. For GitHub Enterprise: `https://HOST/api/v3`."""
    token: SecretStr | None = None
    """The token, as $NAME (an environment variable). Mulligan refuses a token in the file.

    Example: $GITHUB_TOKEN
    """
    token_file: LocalPath | None = None
    """A file with the token, instead of `token`."""
    app: AppSettings | None = Field(default=None, validate_default=True)
    """A GitHub App to act as, instead of a token. Install it on each repository."""
    webhook_secret: SecretStr | None = None
    """The secret of the [webhook](github.md#a-webhook), as $NAME. Without one, Mulligan refuses
    all deliveries.

    Example: $MULLIGAN_WEBHOOK_SECRET
    """
    webhook_secret_file: LocalPath | None = Field(default=None, validate_default=True)
    """A file with the secret, instead of `webhook_secret`."""
    ca_file: LocalPath | None = None
    """The certificates to trust, in PEM form, for a GitHub Enterprise with its own authority."""
    signing_key_file: LocalPath | None = None
    """A private SSH key without a passphrase. Mulligan signs every commit with it
    ([Signed commits](github.md#signed-commits)). Default: commits are not signed."""

    @field_validator("app")
    @classmethod
    def _one_of_them(cls, app: AppSettings | None, info: ValidationInfo) -> AppSettings | None:
        others = (app, info.data.get("token"), info.data.get("token_file"))
        if sum(each is not None for each in others) > 1:
            raise ValueError("name one of token, token_file and app")
        return app

    @field_validator("webhook_secret_file")
    @classmethod
    def _one_secret(cls, file: LocalPath | None, info: ValidationInfo) -> LocalPath | None:
        if file and info.data.get("webhook_secret"):
            raise ValueError("name one of webhook_secret and webhook_secret_file")
        return file


def _off(value: object) -> object:
    # YAML 1.1 reads a bare `off` as false.
    return OFF if value is False else value


class Dashboard(Settings):
    """Health, metrics and the dashboard of `mulligan run`; may be given as `listen` alone."""

    listen: Annotated[str, BeforeValidator(_off, json_schema_input_type=str | Literal[False])] = (
        Field(default=LISTEN)
    )
    """HOST:PORT, or off. Port 0 selects a free port."""
    hosts: tuple[
        Annotated[
            str,
            matching(re.compile(NAME), "write the name of a host, without https:// and port"),
        ],
        ...,
    ] = ()
    """Host names that browsers may use, such as a proxy's. localhost and IP addresses always
    work.

    Example: [mulligan.example.org]
    """

    url: str = ""
    """Where people open the dashboard. The status comment then links to the page of the attempt.

    Example: https://mulligan.example.org
    """

    @field_validator("url")
    @classmethod
    def _a_url(cls, url: str) -> str:
        if url and not re.fullmatch(r"https?://[\w.:\[\]-]+(?:/[\w./-]*)?", url, re.ASCII):
            raise ValueError("write the address of a website, such as https://HOST")
        return url.rstrip("/")

    @field_validator("listen")
    @classmethod
    def _an_address(cls, listen: str) -> str:
        found = ADDRESS.fullmatch(listen)
        if listen != OFF and (found is None or int(found["port"]) > HIGHEST_PORT):
            raise ValueError(f"write HOST:PORT, such as {LISTEN}, or off")
        return listen

    @property
    def address(self) -> tuple[str, int] | None:
        """Return host and port; None if it is off."""
        found = ADDRESS.fullmatch(self.listen)
        return (found["host"].strip("[]"), int(found["port"])) if found else None


AddressOrMore = str | Literal[False] | Dashboard


class Occasion(StrEnum):
    """The events that can be notified."""

    ESCALATED = "escalated"
    PAUSED = "paused"
    BUDGET = "budget"


class Notify(Settings):
    """A web address that receives notifications."""

    url: SecretStr | None = None
    """The address to send JSON to, as $NAME: a Slack webhook or another receiver of JSON.

    Example: $SLACK_WEBHOOK
    """
    events: tuple[Occasion, ...] = (Occasion.ESCALATED, Occasion.PAUSED, Occasion.BUDGET)
    """Which events to send. `escalated`: an issue needs human review. `paused`: an issue is
    paused. `budget`: a budget is used up."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url and not url.get_secret_value().startswith(("https://", "http://")):
            raise ValueError(
                "write an address that begins with https://, or the variable that holds it"
            )
        return url


class RepositorySettings(Settings):
    """One repository."""

    name: Annotated[str, matching(REPOSITORY, "write OWNER/NAME")] = Field(
        json_schema_extra={"pattern": f"^{REPOSITORY.pattern}$"}
    )
    """OWNER/NAME."""
    clone_url: str | None = None
    """A git URL or path. Default: the URL that GitHub reports.

    Example: /srv/git/hello-world.git
    """
    base_branch: str | None = None
    """The branch that work starts from, and that pull requests target. Default: the
    repository's default branch.

    Example: develop
    """
    submodules: tuple[Annotated[str, matching(REPOSITORY, "write OWNER/NAME")], ...] = ()
    """Private repositories, as OWNER/NAME, that submodules of this one may lead to. Mulligan
    fetches them with its credential, so everyone who may write to this repository can read them.
    Public ones need no entry. See `checkout.submodules` of the policy.

    Example: [octocat/library]
    """
    policy: dict[str, JsonValue] = Field(default_factory=dict)
    """Keys of .github/mulligan.yml that this file overrides.

    Example: {max_issue_attempts: 2}
    """

    @field_validator("policy", mode="before", json_schema_input_type=Policy)
    @classmethod
    def _valid_policy(cls, policy: object) -> object:
        Policy.model_validate(policy)
        return policy


class PollSettings(Settings):
    """How often Mulligan polls GitHub."""

    interval: Duration = timedelta(seconds=30)
    """The time between two polls. Mulligan polls less often if it would exceed 600 requests a
    minute."""


class AgentSettings(Settings):
    """The coding agent."""

    kind: str = "command"
    """claude, codex, gemini, opencode, aider, mini, command, or a name of `adapters`."""
    command: tuple[str, ...] = Field(default=(), validate_default=True)
    """The program and its arguments. For a kind other than `command`, the program to run
    instead of the usual one.

    Example: [python3, /srv/agent.py]
    """
    model: str = ""
    """The model, as the agent names it. Default: the agent's own default.

    Example: claude-sonnet-4-5
    """
    arguments: tuple[str, ...] = ()
    """Arguments to add after those of the adapter.

    Example: [--verbose]
    """
    max_turns: int | None = Field(default=None, ge=1)
    """The agent's own limit of turns, if it supports one."""
    timeout: Duration = timedelta(hours=1)
    """The time limit of one run."""
    stall_timeout: Duration = timedelta(minutes=15)
    """The time limit without any output."""
    provider_stall: Duration = timedelta(minutes=2)
    """If the model's service sent nothing for this long when a time limit stopped a run, the
    service failed, not the agent. Needs `sandbox.network: model`."""
    env: tuple[str, ...] = ()
    """Names of environment variables to pass to the agent.

    Example: [MODEL_API_KEY]
    """
    fallback: tuple[str, ...] = ()
    """Names in `agents` for the second attempt, the third, and so on. The last one stays.

    Example: [strong]
    """

    @field_validator("command")
    @classmethod
    def _something_to_run(cls, command: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("kind") == "command" and not command:
            raise ValueError("write the program and its arguments here, or another agent.kind")
        return command


class SandboxMode(StrEnum):
    """Whether to use the sandbox."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


class SandboxLimits(Settings):
    """The limits of one sandboxed command with all its processes."""

    processes: int = Field(default=4096, ge=16)
    """The maximum number of processes and threads at a time."""
    memory_mib: int = Field(default=8192, ge=64)
    """The maximum memory in total, in MiB. In a control group, it includes the files in /tmp."""
    file_mib: int = Field(default=4096, ge=1)
    """The maximum size of a single file, in MiB."""
    tmp_mib: int = Field(default=1024, ge=1)
    """The maximum size of /tmp, in MiB."""


VISIBLE_ASCII = re.compile(r"[!-~]+")

NO_COLON = re.compile(r"[^:]*")
"""A user name of Basic authentication (RFC 7617, 2)."""


class RegistrySettings(Settings):
    """A private package index. Mulligan adds its credentials outside the sandbox."""

    host: HostName
    """Its host, as NAME or NAME:PORT (default port: 443). It is reached by HTTPS.

    Example: packages.example.com
    """
    user: Annotated[str, matching(NO_COLON, "a user name has no colon")] = ""
    """The user name that belongs to the password.

    Example: ci
    """
    password: SecretStr | None = None
    """The password, as $NAME (an environment variable).

    Example: $PACKAGES_PASSWORD
    """
    token: SecretStr | None = Field(default=None, validate_default=True)
    """A token that is sent as `Bearer`, as $NAME, instead of user and password.

    Example: $PACKAGES_TOKEN
    """

    @field_validator("token")
    @classmethod
    def _one_of_both(cls, token: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if (token is None) is (info.data.get("password") is None):
            raise ValueError("name either the password or the token, as $NAME")
        for secret in (token, info.data.get("password")):
            value = secret.get_secret_value() if secret else "-"
            if not (value and value.isprintable()):
                raise ValueError("the password or token is empty or has control characters")
        if token and not VISIBLE_ASCII.fullmatch(token.get_secret_value()):
            raise ValueError("a token has no spaces and no letters beyond ASCII; check its value")
        return token


VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

OWN_VARIABLES = frozenset({"PATH", "HOME", "PWD", "LANG", "TERM", "CI"})
"""Variables of setup commands and checks that Mulligan sets itself."""


def _passed_on(name: str) -> str:
    if name in OWN_VARIABLES:
        raise ValueError(f"Mulligan sets {name} itself; remove it here")
    return name


class SandboxSettings(Settings):
    """The sandbox of agents and checks; may be given as the mode alone."""

    mode: Annotated[SandboxMode, BeforeValidator(_off)] = SandboxMode.AUTO
    """auto: refuse to start where the sandbox does not work, and say how to do without it.
    required: refuse, and do not say so. off: do not use it."""
    read: tuple[LocalPath, ...] = ()
    """Further paths that may be read.

    Example: [/opt/toolchain]
    """
    write: tuple[LocalPath, ...] = ()
    """Further paths that may be written.

    Example: [/var/cache/build]
    """
    network: Literal["model", "open", "none"] | None = None
    """An agent may reach its model only (model), the whole network (open), or nothing (none).
    Default: model, or open if Mulligan does not know the agent's services.

    Example: model
    """
    hosts: tuple[HostName, ...] = ()
    """Hosts that the agent may reach besides its model, as NAME or NAME:PORT (default port:
    443).

    Example: [pypi.org, files.pythonhosted.org]
    """
    env: tuple[
        Annotated[
            str,
            matching(VARIABLE_NAME, "write the name of an environment variable"),
            AfterValidator(_passed_on),
        ],
        ...,
    ] = ()
    """Names of environment variables to pass to setup commands, checks and the reviewer. A file
    or directory that a value names can be read there.

    Example: [PIP_INDEX_URL, HTTPS_PROXY]
    """
    images: tuple[str, ...] = ()
    """Patterns of the container images that a repository may name in `image`; `*` stands for any
    text. Default: none. An `image` in the operator's own `policy` needs no pattern.

    Example: ["docker.io/library/python:*", "ghcr.io/octocat/*"]
    """
    builds: tuple[str, ...] = ()
    """Patterns of the repositories for which podman or buildah may build an image from the
    Dockerfile of their devcontainer.json. Their code then runs in containers of that program, not
    in the sandbox. Default: none. See [Security](security.md#images).

    Example: ["octocat/*"]
    """
    image_mib: int = Field(default=8192, ge=1)
    """The maximum size of the files of an image, in MiB."""
    ca_file: LocalPath | None = None
    """Certificates, in PEM form, that setup commands and checks with the network trust besides
    the system's."""
    registries: tuple[RegistrySettings, ...] = ()
    """Private package indexes for setup commands, and for checks with the network. No command
    sees the password or token.

    Example: [{host: packages.example.com, user: ci, password: $PACKAGES_PASSWORD}]
    """
    limits: SandboxLimits = SandboxLimits()
    """The limits of one sandboxed command."""


ModeOrMore = SandboxMode | Literal[False] | SandboxSettings


class StateSettings(Settings):
    """The location of the ledger."""

    url: str = Field(
        default_factory=lambda: f"sqlite:///{Path(STATE_HOME).expanduser()}/mulligan.db"
    )
    """sqlite:////PATH for one worker; postgresql://USER:PASSWORD@HOST/NAME for a fleet.

    Example: "sqlite:////var/lib/mulligan/mulligan.db"
    """
    mirror: bool | Literal["public"] = False
    """Copy the records of issues, without prompts, logs and host names, to refs/mulligan/state.

    After a lost ledger, the next prompt then has the failures of earlier attempts. Anybody who can
    read the repository can read the ref, so a public repository needs the value `public`.

    Example: true
    """


class Engine(StrEnum):
    """How work reaches the workers."""

    POLLING = "polling"
    FLEET = "fleet"


class WorkspaceSettings(Settings):
    """The location of mirrors, worktrees and artifacts."""

    root: LocalPath = Field(default_factory=lambda: Path(STATE_HOME).expanduser() / "work")
    """The directory. Mulligan creates it and owns everything in it."""
    keep_ignored: bool = False
    """Keep files that git ignores when Mulligan resets a worktree."""


LEASE_TIME = timedelta(seconds=40)


class Limits(Settings):
    """Limits on parallel work, and on retries that are not the agent's fault."""

    concurrency: int = Field(default=2, ge=1, le=64)
    """The maximum number of issues at the same time."""
    per_repository: int = Field(default=1, ge=1, le=64)
    """The maximum number of issues of one repository at the same time; in a fleet, for
    all workers."""
    fleet: int | None = Field(default=None, ge=1)
    """The maximum number of issues at the same time for all workers on one ledger. Default: no
    limit."""
    lease: Duration = Field(default=LEASE_TIME, ge=timedelta(seconds=1))
    """The time without a sign of life after which other workers take over a worker's issues. A
    worker renews its lease four times in this time."""
    infrastructure_retries: int = Field(default=5, ge=0)
    """The number of attempts in a round that may fail because of GitHub, git, the disk or the
    setup commands."""
    consecutive_timeouts: int = Field(default=2, ge=1)
    """The number of agent timeouts in a row after which the issue needs human review."""
    interruptions: int = Field(default=3, ge=0)
    """The number of Mulligan's crashes in a round that cost no attempt."""
    shutdown_grace: Duration = timedelta(seconds=30)
    """The time for running attempts to finish after `mulligan run` was told to stop."""
    free_mib: int = Field(default=512, ge=0)
    """The free space, in MiB, that the disks of the ledger and the workspace need for an
    attempt to start. With less than half of it, Mulligan stops what is running."""


class Retention(Settings):
    """How long data is kept for issues that are in review, need human review or are resolved."""

    artifacts: Duration = timedelta(days=30)
    """How long to keep the prompts, diffs and logs of an attempt."""
    artifacts_mib: int = Field(default=5120, ge=1)
    """The maximum size of all artifacts, in MiB. Beyond it, Mulligan removes the oldest."""
    setup_mib: int = Field(default=10240, ge=1)
    """The maximum size of what setup commands left, in MiB. Beyond it, Mulligan removes what was
    not used for the longest time."""
    images: Duration = timedelta(days=14)
    """How long to keep the files of an image after its last use."""
    worktrees: Duration = timedelta(days=7)
    """How long to keep the worktree of an issue after its last event."""
    ledger: Duration = timedelta(days=90)
    """How long to keep the history of a resolved issue after its last event; at least 2d."""

    @field_validator("ledger")
    @classmethod
    def _past_the_day(cls, ledger: timedelta) -> timedelta:
        # The daily budget needs today's spending.
        if ledger < timedelta(days=2):
            raise ValueError("write 2d or more")
        return ledger


class Trust(Settings):
    """Who may start work (TRUST-1)."""

    permission: Permission = Permission.WRITE
    """The least permission on the repository that may start work: none, read, triage, write,
    maintain or admin."""
    users: tuple[str, ...] = ()
    """Logins that may start work whatever their permission. Bots count only if they are listed.

    Example: [octocat, "renovate[bot]"]
    """


class Operator(Settings):
    """The configuration of the operator."""

    github: GitHubSettings = GitHubSettings()
    """The address of GitHub, and the credentials."""
    repositories: tuple[RepositorySettings, ...] = Field(min_length=1)
    """The repositories to work on."""
    agent: AgentSettings
    """The coding agent."""
    agents: dict[str, AgentSettings] = Field(default_factory=dict[str, AgentSettings])
    """Further agents, by name. A repository can choose among them, for all issues or by label."""
    adapters: dict[str, Adapter] = Field(default_factory=dict[str, Adapter])
    """Agents that are not built in, by name. [Agents](agents.md#describe-another-agent)
    explains the format."""
    budget: Budget = Budget()
    """The limits on what agents may spend. Omit a value for no limit. See
    [Budgets](agents.md#budgets)."""
    prices: dict[str, Price] = Field(default_factory=dict[str, Price])
    """The prices of models, by name, for agents that report only tokens. They override the
    built-in list."""
    poll: PollSettings = PollSettings()
    """How often Mulligan polls GitHub."""
    limits: Limits = Limits()
    """Limits on parallel work and on retries."""
    sandbox: Annotated[
        SandboxSettings,
        BeforeValidator(short_form("mode", str, bool), json_schema_input_type=ModeOrMore),
    ] = SandboxSettings()
    """The sandbox of agents and checks. Short form: `sandbox: required`."""
    state: StateSettings = Field(default_factory=StateSettings)
    """The location of the ledger."""
    engine: Engine | None = Field(default=None, validate_default=True)
    """fleet: one worker polls for all, and the others get their work from PostgreSQL
    ([Fleet](fleet.md)). polling: each worker polls GitHub. Default: fleet with PostgreSQL, else
    polling.

    Example: polling
    """
    workspace: WorkspaceSettings = Field(default_factory=WorkspaceSettings)
    """The location of mirrors, worktrees and artifacts."""
    retention: Retention = Retention()
    """How long data is kept for issues that are in review, need human review or are resolved."""
    trust: Trust = Trust()
    """Who may start work."""
    dashboard: Annotated[
        Dashboard,
        BeforeValidator(short_form("listen", str, bool), json_schema_input_type=AddressOrMore),
    ] = Dashboard()
    """The address of health, metrics and the dashboard of `mulligan run`. Short form:
    `dashboard: off`."""
    notify: Notify = Notify()
    """Notifications besides GitHub."""

    @field_validator("repositories")
    @classmethod
    def _each_once(cls, found: tuple[RepositorySettings, ...]) -> tuple[RepositorySettings, ...]:
        names = [repository.name.lower() for repository in found]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is listed twice; list each repository once")
        return found

    @field_validator("engine")
    @classmethod
    def _on_a_server(cls, engine: Engine | None, info: ValidationInfo) -> Engine:
        state = info.data.get("state")
        is_shared = bool(state) and state.url.startswith("postgresql")
        if engine is Engine.FLEET and state and not is_shared:
            raise ValueError("a fleet needs state.url: postgresql://USER@HOST/NAME")
        return engine or (Engine.FLEET if is_shared else Engine.POLLING)

    @field_validator("dashboard")
    @classmethod
    def _serves_webhook(cls, dashboard: Dashboard, info: ValidationInfo) -> Dashboard:
        github: GitHubSettings | None = info.data.get("github")
        asked = github and (github.webhook_secret or github.webhook_secret_file)
        if asked and dashboard.address is None:
            raise ValueError("github.webhook_secret needs an address here, to receive deliveries")
        return dashboard

    @property
    def all_agents(self) -> Mapping[str, AgentSettings]:
        """Return every configured agent by name; the default agent has the name ""."""
        return {"": self.agent, **self.agents}

    @model_validator(mode="after")
    def _names_of_agents(self) -> Self:
        for key, settings in self.all_agents.items():
            where = f"agents.{key}" if key else "agent"
            for name in settings.fallback:
                if name not in self.agents:
                    known = ", ".join(self.agents) or "none"
                    raise ValueError(
                        f"{where}.fallback names {name!r}; the names in `agents`: {known}"
                    )
        return self
