"""Build an agent's command line and network access from its adapter. Pure.

In the sandbox, each service of a model is a path of the proxy, and each key is a placeholder. The
proxy adds the real key outside.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from mulligan.agents.adapters import BUILT_IN
from mulligan.config.adapters import Adapter, Fact, Service
from mulligan.config.operator import AgentSettings
from mulligan.config.settings import Price
from mulligan.domain.errors import ConfigError, MisconfiguredError
from mulligan.domain.host import Network
from mulligan.sandbox.egress_rules import (
    Allowed,
    Route,
    addresses_of,
)

# The adapter of an agent.


@dataclass(frozen=True, slots=True)
class OperatorAgents:
    """The operator's own adapters, prices and allowed hosts.

    `name` is the configured name of the agent, or empty.
    """

    adapters: Mapping[str, Adapter]
    prices: Mapping[str, Price]
    hosts: tuple[str, ...] = ()
    name: str = ""


NO_OPERATOR_AGENTS = OperatorAgents({}, {})


def adapter_of(settings: AgentSettings, own: Mapping[str, Adapter]) -> Adapter:
    """Return the adapter for `agent.kind`; ConfigError if the kind is unknown."""
    if settings.kind == "command":
        return Adapter(program=settings.command[0], arguments=settings.command[1:])
    found = own.get(settings.kind) or BUILT_IN.get(settings.kind)
    if found is None:
        known = ", ".join([*BUILT_IN, *own, "command"])
        raise ConfigError(f"agent.kind: {settings.kind!r} is not known; write one of {known}.")
    return found


def program_of(settings: AgentSettings, adapter: Adapter) -> tuple[str, ...]:
    """Return the program, and the arguments that precede all others."""
    if settings.kind == "command":
        return (adapter.program,)
    return settings.command or (adapter.program,)


def litter_of(own: Mapping[str, Adapter]) -> tuple[str, ...]:
    """List the patterns of files that agents leave behind (AGENT-2), `own` included.

    They are patterns as in .gitignore.
    """
    return tuple(name for each in (*BUILT_IN.values(), *own.values()) for name in each.litter)


def marks_closing_text(adapter: Adapter) -> bool:
    """Return whether rules mark the agent's closing text, so that other output is not its text."""
    return any(Fact.SAID in rule.take for rule in adapter.reads)


# The command line, the standard input and the files of one run.

MAX_ARGUMENT_BYTES = 120_000
"""Linux's limit for one argument is 131,072 bytes (MAX_ARG_STRLEN)."""

PROMPT_FILE = "prompt.md"


@dataclass(frozen=True, slots=True)
class Invocation:
    """How to start one run; `files` maps paths in its HOME to their content."""

    argv: tuple[str, ...]
    stdin: bytes
    files: Mapping[str, str]
    record: Path | None


def invoke(
    settings: AgentSettings, adapter: Adapter, prompt: str, home: Path, *, contained: bool
) -> Invocation:
    """Build the start of a run; `contained` is True in Mulligan's sandbox."""
    given = home / PROMPT_FILE
    record = home / adapter.record if adapter.record else None
    as_argument = prompt.replace("\0", "")
    files = dict(adapter.files)
    if adapter.prompt == "argument" and len(as_argument.encode()) > MAX_ARGUMENT_BYTES:
        as_argument = f"Read your task in the file {given}, all of it, and do it."
    if "{prompt_file}" in adapter.arguments or str(given) in as_argument:
        files[PROMPT_FILE] = prompt
    placeholders = {
        "{prompt}": as_argument,
        "{prompt_file}": str(given),
        "{record}": str(record),
        "{model}": settings.model,
        "{turns}": str(settings.max_turns),
    }
    template = _template(settings, adapter, contained=contained)
    filled = [_filled(argument, placeholders) for argument in template]
    return Invocation(
        argv=(*program_of(settings, adapter), *filled),
        stdin=prompt.encode() if adapter.prompt == "stdin" else b"",
        files=files,
        record=record,
    )


def _template(settings: AgentSettings, adapter: Adapter, *, contained: bool) -> tuple[str, ...]:
    return (
        *adapter.arguments,
        *(adapter.model_arguments if settings.model else ()),
        *(adapter.turns_arguments if settings.max_turns else ()),
        *(adapter.contained_arguments if contained else adapter.uncontained_arguments),
        *settings.arguments,
    )


def _filled(argument: str, placeholders: Mapping[str, str]) -> str:
    """Fill in one placeholder per argument, so that placeholders in a prompt stay as they are."""
    for placeholder, value in placeholders.items():
        if placeholder in argument:
            return argument.replace(placeholder, value)
    return argument


# The network.


def choose_network(wanted: str | None, adapter: Adapter, hosts: tuple[str, ...]) -> Network:
    """Choose a confined agent's network; ConfigError for `model` if no host is known."""
    known = bool(adapter.services or hosts)
    if wanted is None:
        return Network.MODEL if known else Network.OPEN
    if wanted == Network.MODEL and not known:
        raise ConfigError(
            f"sandbox.network: model cannot be used, because the configuration does not say where"
            f" {adapter.program} finds its model; name its hosts in sandbox.hosts, or describe the"
            " service under adapters.NAME.services."
        )
    return Network(wanted)


def allowed_for(
    adapter: Adapter, environment: Mapping[str, str], hosts: tuple[str, ...], port: int
) -> Allowed:
    """Return the hosts that an agent may reach; `environment` is Mulligan's own, with the keys."""
    used = services_used(adapter, environment)
    routes = (_route(name, each, environment) for name, each in used.items())
    return Allowed(port, tuple(routes), addresses_of(hosts))


def proxy_arguments(adapter: Adapter, environment: Mapping[str, str], port: int) -> Adapter:
    """Add the arguments that point an agent at the proxy, if it takes addresses as arguments."""
    used = services_used(adapter, environment).items()
    urls = {name: address_inside(name, each, environment, port) for name, each in used}
    return _with_arguments(adapter, urls)


def direct_arguments(adapter: Adapter, environment: Mapping[str, str]) -> Adapter:
    """Add the arguments for the addresses in the operator's variables, if it takes them so."""
    urls = {
        name: environment[each.url_variable]
        for name, each in adapter.services.items()
        if each.url_variable in environment
    }
    return _with_arguments(adapter, urls)


def services_used(adapter: Adapter, environment: Mapping[str, str]) -> Mapping[str, Service]:
    """Return the services that the operator has set a variable for; all if there is none."""
    used = {
        name: each
        for name, each in adapter.services.items()
        if any(environment.get(variable) for variable in (*each.keys, each.url_variable))
    }
    return used or adapter.services


def _with_arguments(adapter: Adapter, urls: Mapping[str, str]) -> Adapter:
    added = [
        argument.replace("{url}", urls[name])
        for name, each in adapter.services.items()
        if name in urls
        for argument in each.url_arguments
    ]
    return adapter.model_copy(update={"arguments": (*adapter.arguments, *added)})


def _route(name: str, service: Service, environment: Mapping[str, str]) -> Route:
    parts = _base(service, environment)
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    for variable, header in service.keys.items():
        if key := environment.get(variable, "").strip():
            if not (key.isascii() and key.isprintable()):
                raise MisconfiguredError(
                    f"{variable} is not a valid key: it cannot be sent in a header; set it again."
                )
            field, _, value = header.partition(":")
            return Route(name, origin, field, key, value.strip())
    return Route(name, origin)


def address_inside(name: str, service: Service, environment: Mapping[str, str], port: int) -> str:
    """Return the address of a service inside the sandbox: a path of the proxy."""
    return f"http://127.0.0.1:{port}/{name}{_base(service, environment).path.rstrip('/')}"


def _base(service: Service, environment: Mapping[str, str]) -> SplitResult:
    """Return the base URL of a service: the operator's variable, else the default."""
    url = environment.get(service.url_variable) or service.url
    try:
        parts = urlsplit(url)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine, parts = False, urlsplit("")
    if fine:
        return parts
    where = service.url_variable if service.url_variable in environment else "url"
    raise MisconfiguredError(
        f"{where} is not the address of a model; write https://HOST, or remove it."
    )
