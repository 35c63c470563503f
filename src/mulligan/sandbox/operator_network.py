"""The operator's network for setup commands and checks: variables, certificates, package indexes.

Credentials of a package index never reach a command. Its HTTPS goes through a proxy outside, which
opens tunnels to such an index and adds the credentials; commands trust the proxy's authority.
"""

import os
import re
import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import proxy_bypass

import certifi

from mulligan.config.certificates import has_certificates, read_certificates, trusted_bundle
from mulligan.config.operator import SandboxSettings
from mulligan.domain.errors import ConfigError, MisconfiguredError
from mulligan.domain.host import Network
from mulligan.sandbox.authority import Authority, make_authority
from mulligan.sandbox.egress import (
    AccessLog,
    Unobserved,
    open_access_log,
    open_local_proxy,
    open_proxy,
    registry_problem,
)
from mulligan.sandbox.egress_rules import (
    HTTPS_PROXY_VARIABLES,
    NO_MODEL,
    PROXY_VARIABLES,
    Allowed,
    ModelAccess,
    Registry,
    addresses_of,
    proxy_variables,
    registry_at,
)
from mulligan.sandbox.sandbox import PROXY_PORT
from mulligan.text.secret_shapes import is_secret, passwords_in

CERTIFICATE_VARIABLES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"),
    *("NPM_CONFIG_CAFILE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "DENO_CERT"),
)
"""Variables by which OpenSSL (Python, Ruby, uv, Go), requests, curl, pip, Node.js, npm, git, cargo
and Deno find certificates; for some, a configuration file would override another variable. A Java
program reads none of them."""

PROXY_VARIABLES_OF_PROGRAMS = ("PIP_PROXY", "NPM_CONFIG_HTTPS_PROXY", "YARN_HTTPS_PROXY")
"""Variables for programs that ignore HTTPS_PROXY (yarn from version 2 on), or for which a proxy in
a configuration file overrides it."""

BUNDLE_NAME = "certificates.pem"

CA_FILE_KEY = "sandbox.ca_file"

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class CommandNetwork:
    """The network of some commands: variables, files to show, and the channel of a proxy.

    `access_log` is that of the proxy, if there is one. `hosts_key` is the setting that lists hosts.
    """

    network: Network
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    shown: tuple[Path, ...] = ()
    proxy: int | None = None
    access_log: AccessLog | None = None
    hosts_key: str = ""

    @property
    def hints(self) -> Iterator[str]:
        """Yield sentences about what the proxy refused, or could not reach."""
        if self.access_log is None:
            return
        if hosts := self.access_log.hosts:
            yield f"Refused: {', '.join(hosts)}; a maintainer can list it in {self.hosts_key}."
        yield from (f"{problem}." for problem in self.access_log.problems)


@dataclass(frozen=True, slots=True)
class NamedHosts:
    """The only hosts for a command, as NAME or NAME:PORT; `key` is the setting that lists them."""

    hosts: Sequence[str]
    key: str
    model: ModelAccess = NO_MODEL


@dataclass(frozen=True, slots=True)
class OperatorNetwork:
    """What the operator configured for commands under `sandbox`: `env` with its values, and so on.

    `environment` is Mulligan's own. There is an `authority` if there are `registries`.
    """

    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    registries: tuple[Registry, ...] = ()
    ca_file: Path | None = None
    authority: Authority | None = field(default=None, repr=False)

    @contextmanager
    def open(
        self, wanted: Network, private: Path, log: Path, redact: Redact
    ) -> Generator[CommandNetwork]:
        """Open the whole network, or none; certificates go into `private`, and a proxy has a `log`.

        MisconfiguredError if certificates cannot be read, UnavailableError if the log cannot be
        written.
        """
        if wanted is Network.NONE:
            yield CommandNetwork(wanted, self._visible, named_paths(self._visible))
            return
        bundle = self._write_certificates(private)
        variables = {**self._visible, **self._trusting(bundle)}
        shown = named_paths(variables)
        names = self._proxied_variables()
        if not names:
            yield CommandNetwork(wanted, variables, shown)
            return
        password = secrets.token_urlsafe(24)
        allowed = Allowed(0, any_host=True, registries=self.registries, password=password)
        with (
            open_access_log(log, redact) as access_log,
            open_local_proxy(allowed, access_log, Unobserved(), bundle, self.authority) as port,
        ):
            own = _of_programs(proxy_variables(port, password, names, self._direct_hosts()))
            yield CommandNetwork(wanted, {**variables, **own}, shown, access_log=access_log)

    @contextmanager
    def open_hosts(
        self, wanted: NamedHosts, private: Path, log: Path, redact: Redact
    ) -> Generator[CommandNetwork]:
        """Open a network with nothing but some hosts and a model; else as `open`."""
        bundle = self._write_certificates(private)
        allowed = Allowed(
            PROXY_PORT, wanted.model.routes, addresses_of(wanted.hosts), registries=self.registries
        )
        with (
            open_access_log(log, redact) as access_log,
            open_proxy(allowed, access_log, Unobserved(), bundle, self.authority) as proxy,
        ):
            own = _of_programs(proxy_variables(PROXY_PORT))
            variables = {**self._visible, **self._trusting(bundle), **own, **wanted.model.variables}
            shown = named_paths(variables)
            yield CommandNetwork(Network.NONE, variables, shown, proxy, access_log, wanted.key)

    @property
    def _visible(self) -> Mapping[str, str]:
        """The variables without the password of the operator's proxy."""
        return {
            name: value
            for name, value in self.variables.items()
            if not (name.upper() in PROXY_VARIABLES and passwords_in(value))
        }

    def _trusting(self, bundle: Path | None) -> Mapping[str, str]:
        """Return the variables of certificates: the written ones, else those of Mulligan's own."""
        if bundle:
            return dict.fromkeys(CERTIFICATE_VARIABLES, str(bundle))
        own = {name: self.environment.get(name, "") for name in CERTIFICATE_VARIABLES}
        return {name: value for name, value in own.items() if value}

    def problems(self) -> tuple[str, ...]:
        """Send each package index a request; list the failures in sentences."""
        if not self.registries:
            return ()
        with TemporaryDirectory(prefix="mulligan-") as private:
            bundle = self._write_certificates(Path(private))
            found = [registry_problem(each, bundle) for each in self.registries]
        return tuple(filter(None, found))

    def withheld_from(self, given: CommandNetwork) -> Iterator[str]:
        """Yield a sentence if Mulligan's own network has variables that these commands lack."""
        set_here = [name for name in PROXY_VARIABLES if self.environment.get(name)]
        missing = [name for name in set_here if name not in given.variables]
        if missing:
            yield (
                f"Mulligan's environment has {', '.join(missing)}, and commands do not. If they"
                " need it to reach a server, list it under `sandbox.env` in mulligan.yml."
            )

    @property
    def plain_variables(self) -> Mapping[str, str]:
        """The variables that hold no secret."""
        return {
            name: value
            for name, value in self.variables.items()
            if not (is_secret(name, value) or passwords_in(value))
        }

    def exposed(self) -> tuple[str, ...]:
        """List the variables with a password in a URL that every command can read."""
        own = {name.lower() for name in self._proxied_variables()}
        return tuple(
            name
            for name, value in self.variables.items()
            if passwords_in(value) and name.lower() not in own
        )

    def _proxied_variables(self) -> tuple[str, ...]:
        """Return the variables in capitals that lead to Mulligan's proxy; none without need.

        It is needed for package indexes, and hides the password of the operator's own proxy.
        """
        with_password = tuple(
            name
            for name in PROXY_VARIABLES
            for value in (self.variables.get(name), self.variables.get(name.lower()))
            if value and passwords_in(value)
        )
        https = HTTPS_PROXY_VARIABLES if self.registries else ()
        return tuple(dict.fromkeys((*https, *with_password)))

    def _direct_hosts(self) -> tuple[str, ...]:
        """Return the operator's NO_PROXY without entries that cover a package index."""
        written = self.variables.get("no_proxy") or self.variables.get("NO_PROXY", "")
        indexes = [each.address[0] for each in self.registries]
        return tuple(
            entry
            for entry in SEPARATOR.split(written)
            if entry and not any(_covers(entry, host) for host in indexes)
        )

    def _write_certificates(self, private: Path) -> Path | None:
        """Write all certificates that commands trust to one file; None if the system's are enough.

        The proxy trusts the same ones: nobody else can sign for its authority.
        """
        if self.authority is None and self.ca_file is None:
            return None
        try:
            parts = [*self._certificates()]
        except ConfigError as error:
            # The file was there when Mulligan started.
            raise MisconfiguredError(str(error)) from error
        bundle = private / BUNDLE_NAME
        bundle.write_bytes(b"\n".join(parts))
        # Another user may run the commands.
        bundle.chmod(0o644)
        return bundle

    def _certificates(self) -> Iterator[bytes]:
        """Yield the certificates of the system, the environment, `ca_file` and the authority."""
        own = (self.environment.get(name) for name in CERTIFICATE_VARIABLES)
        named = filter(has_certificates, map(Path, filter(None, own)))
        trusted = trusted_bundle(self.environment) or Path(certifi.where())
        for file in dict.fromkeys((trusted, *named)):
            yield read_certificates(file)
        if self.ca_file:
            yield read_certificates(self.ca_file, CA_FILE_KEY)
        if self.authority:
            yield self.authority.certificate.encode()


NO_NETWORK_SETTINGS = OperatorNetwork()


def operator_network(settings: SandboxSettings, environment: Mapping[str, str]) -> OperatorNetwork:
    """Return the network of a configuration; `environment` is Mulligan's own.

    Variables of `sandbox.env` that are not set are skipped.
    """
    found = [
        registry_at(
            each.host,
            each.user,
            each.password.get_secret_value() if each.password else "",
            each.token.get_secret_value() if each.token else "",
        )
        for each in settings.registries
    ]
    return OperatorNetwork(
        environment,
        {name: environment[name] for name in settings.env if environment.get(name)},
        tuple(each for each in found if each),
        settings.ca_file,
        make_authority() if found else None,
    )


def named_paths(variables: Mapping[str, str]) -> tuple[Path, ...]:
    """List the existing files and directories that values name, but none that contains HOME."""
    home = Path("~").expanduser()
    paths = (Path(value) for value in variables.values() if value.startswith("/"))
    return tuple(
        path for path in paths if os.access(path, os.F_OK) and not home.is_relative_to(path)
    )


SEPARATOR = re.compile(r"[\s,]+")
"""What programs accept between the entries of NO_PROXY."""


def _covers(entry: str, host: str) -> bool:
    """Return whether any program may read an entry of NO_PROXY as one that covers a host."""
    name = entry.rpartition(":")[0] if PORT.search(entry) else entry
    return entry == "*" or bool(proxy_bypass(host, {"no": name.removeprefix("*.")}))


PORT = re.compile(r"[^:]:\d+$")


def _of_programs(proxy: Mapping[str, str]) -> dict[str, str]:
    """Add the variables of programs to those of a proxy for HTTPS."""
    https = proxy.get("HTTPS_PROXY")
    return {**proxy, **(dict.fromkeys(PROXY_VARIABLES_OF_PROGRAMS, https) if https else {})}
