"""`mulligan.yml`: what the operator of a machine decides."""

import re
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
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
from mulligan.config.settings import Budget, Duration, LocalPath, Price, Settings
from mulligan.domain.issue import REPOSITORY, Permission

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"

ADDRESS = re.compile(rf"(?P<host>{NAME}|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{{1,5}})")

OFF = "off"

HIGHEST_PORT = 65535

HOST = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
"""A name or an address, and a port."""

OPERATOR_FILE = "mulligan.yml"
"""The usual name of the file on the machine that runs Mulligan."""
STATE_HOME = "~/.local/state/mulligan"
LISTEN = "127.0.0.1:8787"


class AppSettings(Settings):
    """A GitHub App that Mulligan acts as, with either of the two keys."""

    id: int | str
    """Its App ID or client ID."""
    private_key_file: LocalPath | None = None
    """The file that holds its private key, as GitHub gave it."""
    private_key: SecretStr | None = Field(default=None, validate_default=True)
    """The key itself, given as $NAME (an environment variable)."""

    @field_validator("private_key")
    @classmethod
    def _one_key(cls, key: SecretStr | None, info: ValidationInfo) -> SecretStr | None:
        if (key is None) is (info.data.get("private_key_file") is None):
            message = "name either the file of the app's private key or the key itself as $NAME"
            raise ValueError(message)
        return key


class GitHubSettings(Settings):
    """Where GitHub is, and who Mulligan is there."""

    api_url: str = "https://api.github.com"
    """The REST API's address; GitHub Enterprise: https://HOST/api/v3."""
    token: SecretStr | None = None
    """A token, given as $NAME (an environment variable); never written here."""
    token_file: LocalPath | None = None
    """A file that holds the token, instead."""
    app: AppSettings | None = Field(default=None, validate_default=True)
    """A GitHub App to act as, instead of a token; it is installed on each repository."""
    ca_file: LocalPath | None = None
    """The certificates to trust, in PEM form, where GitHub Enterprise has its own authority."""

    @field_validator("app")
    @classmethod
    def _one_of_them(cls, app: AppSettings | None, info: ValidationInfo) -> AppSettings | None:
        others = (app, info.data.get("token"), info.data.get("token_file"))
        if sum(each is not None for each in others) > 1:
            message = "name one of token, token_file and app"
            raise ValueError(message)
        return app


def _off(value: object) -> object:
    # YAML 1.1 reads a bare `off` as false.
    return OFF if value is False else value


class Dashboard(Settings):
    """Health, metrics and the dashboard of `mulligan run`; may be written as `listen` alone."""

    listen: Annotated[str, BeforeValidator(_off, json_schema_input_type=str | Literal[False])] = (
        Field(default=LISTEN)
    )
    """HOST:PORT, or off; the port 0 is any free one."""
    hosts: tuple[str, ...] = ()
    """Names by which browsers reach it, such as a proxy's; localhost and addresses always do."""

    @field_validator("listen")
    @classmethod
    def _an_address(cls, listen: str) -> str:
        found = ADDRESS.fullmatch(listen)
        if listen != OFF and (found is None or int(found["port"]) > HIGHEST_PORT):
            message = f"{listen!r} is no address; write HOST:PORT, as {LISTEN}, or off"
            raise ValueError(message)
        return listen

    @field_validator("hosts")
    @classmethod
    def _names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not re.fullmatch(NAME, host):
                message = f"{host!r} is not the name of a host; write it without https:// and port"
                raise ValueError(message)
        return hosts

    @property
    def address(self) -> tuple[str, int] | None:
        """Give host and port; None where it is off."""
        found = ADDRESS.fullmatch(self.listen)
        return (found["host"].strip("[]"), int(found["port"])) if found else None


AddressOrMore = str | Literal[False] | Dashboard


def parse_dashboard_address(value: object) -> object:
    """Take an address, or off, for all of the settings."""
    return {"listen": value} if value is False or isinstance(value, str) else value


class Occasion(StrEnum):
    """What can be told."""

    ESCALATED = "escalated"
    PAUSED = "paused"
    BUDGET = "budget"


class Notify(Settings):
    """A web address that hears when a person is needed, or work rests."""

    url: SecretStr | None = None
    """Where to send it, given as $NAME: a Slack webhook, or anything that takes JSON."""
    events: tuple[Occasion, ...] = (Occasion.ESCALATED, Occasion.PAUSED, Occasion.BUDGET)
    """What is told: that a person is asked, that one paused an issue, that a budget is used up."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url and not url.get_secret_value().startswith(("https://", "http://")):
            message = "write an address that begins with https://, or the variable that holds it"
            raise ValueError(message)
        return url


def _state_url() -> str:
    return f"sqlite:///{Path(STATE_HOME).expanduser()}/mulligan.db"


def _workspace_root() -> Path:
    return Path(STATE_HOME).expanduser() / "work"


class RepositorySettings(Settings):
    """One repository that is served."""

    name: str = Field(json_schema_extra={"pattern": f"^{REPOSITORY.pattern}$"})
    """OWNER/NAME."""
    clone_url: str | None = None
    """A git URL or path; default: what the API says."""
    base_branch: str | None = None
    """The branch that work starts from and goes to; default: the repository's default branch."""
    policy: dict[str, JsonValue] = Field(default_factory=dict)
    """Keys of .github/mulligan.yml that are decided here instead."""

    @field_validator("name")
    @classmethod
    def _owner_and_name(cls, name: str) -> str:
        if not REPOSITORY.fullmatch(name):
            message = "write OWNER/NAME"
            raise ValueError(message)
        return name

    @field_validator("policy", mode="before", json_schema_input_type=Policy)
    @classmethod
    def _valid_policy(cls, policy: object) -> object:
        Policy.model_validate(policy)
        return policy


class PollSettings(Settings):
    """How often GitHub is asked."""

    interval: Duration = timedelta(seconds=30)
    """Time between two polls; longer where more than 600 requests a minute would come of it."""


class AgentSettings(Settings):
    """The coding agent."""

    kind: str = "command"
    """claude, codex, gemini, opencode, aider, mini, command, or a name of `adapters`."""
    command: tuple[str, ...] = Field(default=(), validate_default=True)
    """For `command`: the program and its arguments; for others: what is run as their program."""
    model: str = ""
    """The model, as the agent names it; default: its own."""
    arguments: tuple[str, ...] = ()
    """Further arguments, after those of the adapter."""
    max_turns: int | None = Field(default=None, ge=1)
    """The agent's own limit of turns, where it has one."""
    timeout: Duration = timedelta(hours=1)
    """How long one run may take."""
    stall_timeout: Duration = timedelta(minutes=15)
    """How long it may print nothing."""
    env: tuple[str, ...] = ()
    """Names of environment variables it may have."""
    fallback: tuple[str, ...] = ()
    """Names in `agents` that make the second attempt, the third and so on; the last stays."""

    @field_validator("command")
    @classmethod
    def _something_to_run(cls, command: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("kind") == "command" and not command:
            message = "write the program and its arguments here, or another agent.kind"
            raise ValueError(message)
        return command


class SandboxMode(StrEnum):
    """What to do about isolation."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


class SandboxLimits(Settings):
    """The most that one confined command may have, with all that it starts."""

    processes: int = Field(default=4096, ge=16)
    """Processes at a time."""
    memory_mib: int = Field(default=8192, ge=64)
    """Memory in all, in MiB."""
    file_mib: int = Field(default=4096, ge=1)
    """A single file, in MiB."""
    tmp_mib: int = Field(default=1024, ge=1)
    """What lies in its /tmp, in MiB."""


class SandboxSettings(Settings):
    """How agents and checks are contained; may be written as the mode alone."""

    mode: SandboxMode = SandboxMode.AUTO
    """auto, required or off."""
    read: tuple[LocalPath, ...] = ()
    """Further paths that may be read."""
    write: tuple[LocalPath, ...] = ()
    """Further paths that may be written."""
    network: Literal["model", "open", "none"] | None = None
    """What an agent may reach: its model alone, everything, or nothing; default: model, or open
    for agents of which Mulligan does not know where their model is."""
    hosts: tuple[str, ...] = ()
    """Hosts that it may reach besides its model, each as NAME or NAME:PORT (else 443)."""
    limits: SandboxLimits = SandboxLimits()
    """What one confined command may have."""

    @field_validator("hosts")
    @classmethod
    def _hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not HOST.fullmatch(host):
                message = f"{host!r} is not a host; write NAME or NAME:PORT, without https://"
                raise ValueError(message)
        return hosts


ModeOrMore = SandboxMode | Literal[False] | SandboxSettings


def _mode_alone(value: object) -> object:
    # YAML 1.1 reads a bare `off` as false.
    if value is False:
        return {"mode": "off"}
    return {"mode": value} if isinstance(value, str) else value


class StateSettings(Settings):
    """Where the ledger is."""

    url: str = Field(default_factory=_state_url)
    """sqlite:////PATH for one worker; postgresql://USER:PASSWORD@HOST/NAME for a fleet of them."""


class WorkspaceSettings(Settings):
    """Where mirrors, worktrees and artifacts are."""

    root: LocalPath = Field(default_factory=_workspace_root)
    """The directory; Mulligan makes it and owns all in it."""
    keep_ignored: bool = False
    """Keep files that git ignores when a worktree is reset."""


class Limits(Settings):
    """How much at once, and how often something that is not the agent's fault is tried."""

    concurrency: int = Field(default=2, ge=1, le=64)
    """Issues worked on at the same time."""
    per_repository: int = Field(default=1, ge=1, le=64)
    """Issues of one repository worked on at the same time."""
    fleet: int | None = Field(default=None, ge=1)
    """Issues worked on at the same time by all workers on one ledger; default: any number."""
    lease: Duration = Field(default=timedelta(seconds=60), ge=timedelta(seconds=1))
    """How long a worker that is not heard of is believed alive; then others take its issues over.
    It makes itself heard four times as often."""
    infrastructure_retries: int = Field(default=5, ge=0)
    """Attempts in an epoch that may fail through GitHub, git, disk or set-up."""
    consecutive_timeouts: int = Field(default=2, ge=1)
    """Agent time-outs in a row after which a person is asked."""
    interruptions: int = Field(default=3, ge=0)
    """Deaths of Mulligan in an epoch that cost no attempt."""
    shutdown_grace: Duration = timedelta(seconds=30)
    """How long running attempts may go on after `mulligan run` was told to stop."""
    free_mib: int = Field(default=512, ge=0)
    """MiB that have to be free on the disks of ledger and workspace for an attempt to begin; where
    less than half of that is left, whatever runs is stopped."""


class Retention(Settings):
    """What is kept of issues that are in review, with a person or resolved."""

    artifacts: Duration = timedelta(days=30)
    """How long prompts, diffs and logs of an attempt are kept."""
    artifacts_mib: int = Field(default=5120, ge=1)
    """How much all artifacts may take, in MiB; beyond it the oldest attempts go."""
    worktrees: Duration = timedelta(days=7)
    """How long after the last event the worktree of an issue is kept."""
    ledger: Duration = timedelta(days=90)
    """How long after its last event the history of a resolved issue is kept; 2d at least."""

    @field_validator("ledger")
    @classmethod
    def _past_the_day(cls, ledger: timedelta) -> timedelta:
        # What was spent today counts for the budget of the day.
        if ledger < timedelta(days=2):
            message = "write 2d or more"
            raise ValueError(message)
        return ledger


class Trust(Settings):
    """Who may start work (SPEC T1)."""

    permission: Permission = Permission.WRITE
    """The least permission on the repository."""
    users: tuple[str, ...] = ()
    """Logins that may start work whatever their permission; bots only if they are here."""


class Operator(Settings):
    """All that the operator decides."""

    github: GitHubSettings = GitHubSettings()
    """Where GitHub is, and who Mulligan is there."""
    repositories: tuple[RepositorySettings, ...] = Field(min_length=1)
    """The repositories that are served."""
    agent: AgentSettings
    """The coding agent."""
    agents: dict[str, AgentSettings] = Field(default_factory=dict[str, AgentSettings])
    """Other agents, by names of yours; a repository may choose among them, by label or for all."""
    adapters: dict[str, Adapter] = Field(default_factory=dict[str, Adapter])
    """Agents that are not built in, by name; docs/agents.md says how one is described."""
    budget: Budget = Budget()
    """What agents may spend."""
    prices: dict[str, Price] = Field(default_factory=dict[str, Price])
    """What models cost, by name, for agents that report tokens only; before the built-in list."""
    poll: PollSettings = PollSettings()
    """How often GitHub is asked."""
    limits: Limits = Limits()
    """How much at once, and how often."""
    sandbox: Annotated[
        SandboxSettings, BeforeValidator(_mode_alone, json_schema_input_type=ModeOrMore)
    ] = SandboxSettings()
    """How agents and checks are contained."""
    state: StateSettings = Field(default_factory=StateSettings)
    """Where the ledger is."""
    workspace: WorkspaceSettings = Field(default_factory=WorkspaceSettings)
    """Where mirrors, worktrees and artifacts are."""
    retention: Retention = Retention()
    """What is kept of issues that are in review, with a person or resolved."""
    trust: Trust = Trust()
    """Who may start work."""
    dashboard: Annotated[
        Dashboard, BeforeValidator(parse_dashboard_address, json_schema_input_type=AddressOrMore)
    ] = Dashboard()
    """Where `mulligan run` serves health, metrics and the dashboard."""
    notify: Notify = Notify()
    """Who hears of what, besides GitHub."""

    @field_validator("repositories")
    @classmethod
    def _each_once(cls, found: tuple[RepositorySettings, ...]) -> tuple[RepositorySettings, ...]:
        names = [repository.name.lower() for repository in found]
        for name in names:
            if names.count(name) > 1:
                message = f"{name!r} stands twice; name each repository once"
                raise ValueError(message)
        return found

    @model_validator(mode="after")
    def _names_of_agents(self) -> Self:
        named = [
            ("agent", self.agent),
            *((f"agents.{name}", self.agents[name]) for name in self.agents),
        ]
        for where, settings in named:
            for name in settings.fallback:
                if name not in self.agents:
                    known = ", ".join(self.agents) or "none"
                    message = f"{where}.fallback names {name!r}; the names in `agents`: {known}"
                    raise ValueError(message)
        return self
