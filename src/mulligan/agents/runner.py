"""Run a coding agent in its sandbox, and find its program and version."""

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import structlog
from pydantic import JsonValue

from mulligan.agents.adapters import BUILT_IN_AGENTS
from mulligan.agents.environment import (
    direct_model_access,
    missing_variables,
    model_access,
    names_read,
    passed_variables,
    task_variables,
    variables_inside,
    variables_of_run,
)
from mulligan.agents.invocation import (
    NO_OPERATOR_AGENTS,
    Invocation,
    OperatorAgents,
    adapter_of,
    allowed_for,
    direct_arguments,
    invoke,
    marks_closing_text,
    program_of,
    proxy_arguments,
)
from mulligan.agents.model_traffic import (
    ModelTraffic,
    ServiceRefusal,
    TokenCount,
    raise_counts,
    with_tokens,
)
from mulligan.agents.output import (
    LIMITED,
    LINE_CHARS,
    Reader,
    StreamFacts,
    closing_question,
    facts_from_stream,
    facts_of,
    fault_of_run,
    is_cut_off,
    last_words,
    priced,
    read_learned,
    read_output,
    read_report,
    read_title,
    refusal,
    refusing_service,
    reported_error,
    shortened,
    silent_service,
)
from mulligan.agents.wordings import LastWords
from mulligan.config.adapters import Adapter, Fact, Meaning
from mulligan.config.certificates import trusted_bundle
from mulligan.config.operator import AgentSettings
from mulligan.domain.attempt import AgentReport, AgentRun, Fault, Task, TimeLimit
from mulligan.domain.errors import (
    NotStartedError,
    UnavailableError,
    WorldError,
)
from mulligan.domain.host import AgentIdentity, AgentPresence, Network, RunLimits
from mulligan.domain.image import Image
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import AgentFacts, RestKind
from mulligan.domain.spending import UNREPORTED, bounded, spent_in
from mulligan.sandbox.egress import AccessLog, open_access_log, open_proxy
from mulligan.sandbox.egress_rules import ModelAccess
from mulligan.sandbox.home import clear
from mulligan.sandbox.image_root import has_program
from mulligan.sandbox.process import Command, Finished
from mulligan.sandbox.programs import machine_variables
from mulligan.sandbox.sandbox import (
    PROXY_PORT,
    CommandAccess,
    Sandbox,
    Unconfined,
    moved,
    place_in,
)
from mulligan.sandbox.supervisor import candidate_paths
from mulligan.text.escape import one_line
from mulligan.text.redact import Redactor

log = structlog.get_logger()

# The network of one run.


@dataclass(frozen=True, slots=True)
class RunNetwork:
    """The network of one run; `adapter` and `variables` point at the proxy if there is one."""

    adapter: Adapter
    variables: Mapping[str, str]
    network: Network
    proxy: int | None = None
    access_log: AccessLog | None = None
    traffic: ModelTraffic = field(default_factory=ModelTraffic)

    @property
    def refused(self) -> tuple[str, ...]:
        """The hosts that the proxy refused, in order."""
        return self.access_log.hosts if self.access_log else ()


@dataclass(frozen=True, slots=True)
class EgressSettings:
    """The hosts that agents may reach; `environment` is Mulligan's own and holds the keys.

    `bundle` has the certificates to trust, see config/certificates.py.
    """

    network: Network
    hosts: tuple[str, ...]
    environment: Mapping[str, str]
    redact: Callable[[str], str]
    bundle: Path | None = None

    @contextmanager
    def open_network(
        self, adapter: Adapter, variables: Mapping[str, str], log: Path
    ) -> Generator[RunNetwork]:
        """Open the network of one run while the block lasts; write its access log to `log`.

        Raises MisconfiguredError if the URL of a model's service is invalid, UnavailableError if
        the log cannot be written.
        """
        if self.network is not Network.MODEL:
            pointed = direct_arguments(adapter, self.environment)
            yield RunNetwork(pointed, variables, self.network)
            return
        allowed = allowed_for(adapter, self.environment, self.hosts, PROXY_PORT)
        inside = variables_inside(adapter, variables, self.environment, PROXY_PORT)
        pointed = proxy_arguments(adapter, self.environment, PROXY_PORT)
        traffic = ModelTraffic()
        with (
            open_access_log(log, self.redact) as access_log,
            open_proxy(allowed, access_log, traffic, self.bundle) as proxy,
        ):
            yield RunNetwork(pointed, inside, self.network, proxy, access_log, traffic)


# One run.

REPORT_BYTES = 64 * 1024

RECORD_BYTES = 64 * 1024 * 1024


class CommandAgent:
    """Implements CodingAgent: any program that edits files, by the contract in docs/agents.md.

    `own` holds the operator's adapters, prices and hosts.
    """

    def __init__(
        self,
        settings: AgentSettings,
        environment: Mapping[str, str],
        redactor: Redactor | None = None,
        sandbox: Sandbox | None = None,
        network: Network = Network.OPEN,
        own: OperatorAgents = NO_OPERATOR_AGENTS,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._redactor = redactor or Redactor()
        self._sandbox = sandbox or Unconfined()
        bundle = trusted_bundle(environment) if network is Network.MODEL else None
        self._egress = EgressSettings(network, own.hosts, environment, self._redactor.text, bundle)
        self._adapter = adapter_of(settings, own.adapters)
        self._prices = own.prices
        self._name = own.name

    @property
    def name(self) -> str:
        """The operator's name for the agent, else its kind."""
        return self._name or self._settings.kind

    @property
    def identity(self) -> AgentIdentity:
        """The version is None if the adapter cannot ask for it."""
        return AgentIdentity(self.name, self._version, self._sandbox.name)

    @property
    def account(self) -> str:
        """Return a short hash of the configuration, the variables and the program's file.

        It is too short to find a key by. A new installation of the same file is no change.
        """
        adapter = self._adapter
        names = names_read(self._settings, adapter)
        known: list[JsonValue] = [
            self._settings.model_dump(mode="json"),
            adapter.model_dump(mode="json"),
            {name: self._environment.get(name) for name in sorted(names)},
            [self._egress.network, *self._egress.hosts],
            self._program_file,
        ]
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def limits(self) -> RunLimits:
        settings = self._settings
        return RunLimits(
            timeout=settings.timeout,
            stall_timeout=settings.stall_timeout,
            max_turns=settings.max_turns,
            network=self._egress.network,
            hosts=self._egress.hosts,
        )

    @cached_property
    def _version(self) -> str | None:
        own = {self._settings.kind: self._adapter}
        return try_start(self._settings, self._environment, self._sandbox, own).version

    @property
    def _program_file(self) -> str:
        own = {self._settings.kind: self._adapter}
        program = find_program(self._settings, self._environment, own).program
        path, _, size = file_state(program).rpartition(" ")
        return f"{path.rpartition(' ')[0]} {size}"

    @property
    def model(self) -> ModelAccess:
        """Without a sandbox, the reviewer command gets the agent's key."""
        adapter = self._adapter
        if not isinstance(self._sandbox, Unconfined):
            return model_access(adapter, self._environment, PROXY_PORT)
        return direct_model_access(adapter, self._environment)

    def runs_in(self, image: Image) -> bool:
        """A command of the operator's own stays outside: most images have a Python or a shell."""
        if self._settings.kind == "command":
            return False
        program = program_of(self._settings, self._adapter)[0]
        return has_program(image.root, program, image.environment.get("PATH", os.defpath))

    def run(self, task: Task) -> AgentRun:
        """Remove the agent's HOME afterwards.

        Raises MisconfiguredError if its program or a variable of agent.env is missing.
        """
        home, report = _make_own(task.private)
        try:
            return self._run_in(home, report, task)
        finally:
            with suppress(UnavailableError):
                clear(home, self._environment)

    def _run_in(self, home: Path, report: Path, task: Task) -> AgentRun:
        log = task.log.with_name(task.log.name.replace("agent", "egress"))
        passed = passed_variables(self._settings, self._adapter, self._environment)
        with self._egress.open_network(self._adapter, passed, log) as run_network:
            start = self._invoke(run_network, task, home)
            reader, traffic = Reader(self._adapter.reads), run_network.traffic
            silence = timedelta()

            def on_stop() -> None:
                nonlocal silence
                silence = traffic.silence

            command = Command(
                argv=start.argv,
                directory=place_in(task.directory, task.layer),
                environment=variables_of_run(
                    task.image.environment if task.image else machine_variables(self._environment),
                    home,
                    run_network.adapter,
                    run_network.variables,
                    task_variables(task, report),
                ),
                timeout=self._settings.timeout,
                stall=self._settings.stall_timeout,
                stdin=start.stdin,
                log=task.log,
                redactor=self._redactor,
                on_output=self._output_reader(reader, task, traffic),
                on_stop=on_stop,
            )
            try:
                access = _command_access(task, home, run_network, start.argv)
                finished = self._sandbox.run(command, access)
            except NotStartedError as error:
                if _is_relative(start.argv[0]):
                    raise  # The program is a file of this worktree.
                return self._not_started(error)
        _read_record(start.record, home, reader)
        reported, noted = _report(report, task)
        run = self._run_of(finished, reader.close(), reported, traffic.tokens)
        run = replace(
            self._blame_service(run, silence, traffic.refusal),
            learned=noted.learned,
            title=noted.title,
        )
        run = replace(run, facts=self._bounded(run.facts, task, traffic))
        refused = tuple(
            host for host in run_network.refused if host not in self._adapter.idle_hosts
        )
        return replace(run, facts=run.facts.model_copy(update={"refused_hosts": refused}))

    def _not_started(self, error: NotStartedError) -> AgentRun:
        fault = Fault(Outcome.MISCONFIGURED, str(error), rest=RestKind.NOT_STARTED)
        facts = self._with_identity(AgentFacts(kind=self._settings.kind))
        return AgentRun(None, timedelta(), facts, fault=fault)

    def _invoke(self, run_network: RunNetwork, task: Task, home: Path) -> Invocation:
        contained = not isinstance(self._sandbox, Unconfined)
        start = invoke(self._settings, run_network.adapter, task.prompt, home, contained=contained)
        _put(start.files, home)
        return start

    def _blame_service(
        self, run: AgentRun, silence: timedelta, refusal: ServiceRefusal | None
    ) -> AgentRun:
        """Add the fault of a service that was silent, or refused, when the run ended.

        After any failure the service's `Retry-After` counts for the next attempt.
        """
        fault = run.fault
        if fault is None and run.stopped_by in self._time_limits:
            stall = self._settings.provider_stall
            fault = silent_service(silence, stall)
            if fault and refusal and refusal.reason:
                fault = refusing_service(refusal.status, refusal.reason)
            elif fault is None and refusal and refusal.retry_after and refusal.age >= stall:
                # The service still asked for no request, so the agent could only wait.
                fault = refusing_service(refusal.status, refusal.reason)
        elif run.stopped_by is None and run.exit_code and refusal and not (fault and fault.rest):
            fault = self._blame_refusal(refusal) or fault
        failed = fault or run.stopped_by or run.exit_code
        return replace(
            run, fault=fault, retry_after=refusal.retry_after if failed and refusal else None
        )

    def _blame_refusal(self, refusal: ServiceRefusal) -> Fault | None:
        """Blame the service's last answer for a failed run.

        An agent that reports refusals itself may also be refused what its model does not need.
        """
        is_known = not self._adapter.reads or refusal.status in {0, LIMITED}
        return refusing_service(refusal.status, refusal.reason) if is_known else None

    def _output_reader(
        self, reader: Reader, task: Task, traffic: ModelTraffic
    ) -> Callable[[bytes], TimeLimit | None]:
        """Return a callback that reads the output, and stops the agent once its budget is spent."""
        last = UNREPORTED

        def on_output(chunk: bytes) -> TimeLimit | None:
            nonlocal last
            reader.feed(chunk)
            usage = self._with_identity(
                facts_from_stream(
                    with_tokens(reader.facts, traffic.tokens), self._settings, self._prices
                )
            )
            if (spent := spent_in(usage)) == last:
                return None
            last = spent
            # What it claims may stop itself, but others only as far as it can be true.
            goes_on = task.meter(self._bounded(usage, task, traffic))
            return None if goes_on and task.allowance.covers(spent) else TimeLimit.BUDGET

        return on_output

    def _bounded(self, usage: AgentFacts, task: Task, traffic: ModelTraffic) -> AgentFacts:
        """Return the usage as far as its service, or the attempt's budget, can confirm it."""
        return bounded(usage, traffic.count.bound(self._prices, task.allowance))

    def _run_of(
        self,
        finished: Finished,
        facts: StreamFacts,
        report: AgentReport | None,
        tokens: TokenCount,
    ) -> AgentRun:
        """Build the result of a run from its process, output, report and the counted tokens."""
        adapter, output = self._adapter, read_output(finished.tail)
        facts = with_tokens(facts, tokens)
        stopped_by = finished.stopped_by
        if stopped_by is None and facts.ended is Meaning.LIMIT:
            stopped_by = TimeLimit.OWN_LIMIT
        code, closing = finished.exit_code, facts.texts.get(Fact.SAID)
        cut_off, words = is_cut_off(facts, adapter, code), last_words(finished.tail, adapter)
        has_failed = stopped_by is None and (code != 0 or cut_off)
        if closing is None and marks_closing_text(adapter):
            closing = ""
        return AgentRun(
            exit_code=code,
            duration=finished.duration,
            facts=_with_last_line(
                self._with_identity(
                    facts_from_stream(facts, self._settings, self._prices, code, stopped_by)
                    if adapter.reads
                    else priced(
                        raise_counts(
                            facts_of(output, self._settings.kind, code, stopped_by), tokens
                        ),
                        self._settings.model,
                        self._prices,
                    )
                ),
                words if has_failed else LastWords(),
            ),
            stopped_by=stopped_by,
            limit=self._time_limits.get(stopped_by),
            report=report,
            summary=output.summary if closing is None else shortened(closing),
            question=output.question if closing is None else closing_question(closing),
            fault=fault_of_run(facts, words if has_failed else None),
            refusal=refusal(facts, adapter),
            is_cut_off=cut_off,
            reported_error=reported_error(facts),
        )

    def _with_identity(self, facts: AgentFacts) -> AgentFacts:
        return facts.model_copy(update={"name": self._name})

    @property
    def _time_limits(self) -> Mapping[TimeLimit | None, timedelta]:
        return {
            TimeLimit.TIMEOUT: self._settings.timeout,
            TimeLimit.STALL_TIMEOUT: self._settings.stall_timeout,
        }


def _with_last_line(facts: AgentFacts, words: LastWords) -> AgentFacts:
    """Show the last line of a failed run if the program printed it, or if nothing else is known."""
    if not words.lines or (words.is_prose and facts.last_activity):
        return facts
    return facts.model_copy(update={"last_activity": one_line(words.lines[-1], LINE_CHARS)})


def _command_access(
    task: Task, home: Path, run_network: RunNetwork, argv: Sequence[str]
) -> CommandAccess:
    tree, layer = task.directory, task.layer
    return CommandAccess(
        read=(
            *moved(task.readable, tree, layer),
            *(path for path in (task.previous_diff, task.attachments) if path),
        ),
        shown=tuple(_arguments_outside(argv, task.image)) if task.image else (),
        write=(home.parent, *task.writable),
        worktree=place_in(tree, layer),
        layers=(layer,) if layer else (),
        network=run_network.network,
        proxy=run_network.proxy,
        image=task.image,
    )


def _arguments_outside(argv: Sequence[str], image: Image) -> Iterator[Path]:
    """Yield the files of this machine that arguments name and that the image does not have."""
    for argument in argv[1:]:
        inside = image.root / argument.lstrip("/")
        if argument.startswith("/") and os.path.lexists(argument) and not os.path.lexists(inside):
            yield Path(argument)


def _make_own(private: Path) -> tuple[Path, Path]:
    """Create a new, empty HOME; return it and the path of the report."""
    try:
        private.mkdir(parents=True, exist_ok=True)
        own = Path(tempfile.mkdtemp(prefix="agent-", dir=private))
        home = own / "home"
        home.mkdir(mode=0o700)
    except OSError as error:
        raise UnavailableError(
            f"No home for the agent could be created in {private}:"
            f" {error.strerror}; free some disk space."
        ) from error
    return home, own / "report.json"


def _put(files: Mapping[str, str], home: Path) -> None:
    """Write the adapter's files into the agent's HOME."""
    for name, content in files.items():
        place = home / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UnavailableError(
                f"The agent's file {name} could not be written: {error.strerror};"
                " free some disk space."
            ) from error


def _read_record(path: Path | None, home: Path, reader: Reader) -> None:
    """Read the run record that some agents write; ignore a missing or unsafe file.

    The agent can replace its HOME, too, by a link to files of others.
    """
    with suppress(OSError, ValueError):
        if path and not any(
            each.is_symlink() for each in path.parents if each.is_relative_to(home)
        ):
            reader.read_record(_content(path, RECORD_BYTES))


@dataclass(frozen=True, slots=True)
class Noted:
    """What an agent may note besides its report: facts, and a title for the change."""

    learned: tuple[str, ...] = ()
    title: str = ""


def _report(path: Path, task: Task) -> tuple[AgentReport | None, Noted]:
    """Read the agent's report, if it wrote a valid one, and what it noted."""
    noted = Noted()
    try:
        content = _content(path, REPORT_BYTES)
        noted = Noted(read_learned(content), read_title(content))
        return read_report(content), noted
    except FileNotFoundError:
        return None, noted
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        log.warning("report_ignored", issue=task.issue, attempt=task.attempt, reason=reason)
        return None, noted


def _content(path: Path, most: int) -> bytes:
    """Read a file that the agent controls; refuse links, pipes, devices and over `most` bytes."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a file")
        content = os.read(descriptor, most + 1)
    finally:
        os.close(descriptor)
    if len(content) > most:
        raise ValueError(f"it is larger than {most} bytes")
    return content


# The agent's program and its version.


def find_program(
    settings: AgentSettings,
    environment: Mapping[str, str],
    own: Mapping[str, Adapter] | None = None,
) -> AgentPresence:
    """Check for the agent's program, the files in its arguments, and its variables."""
    adapter = adapter_of(settings, own or {})
    program, *before = program_of(settings, adapter)
    arguments = [*before, *(adapter.arguments if settings.kind == "command" else ())]
    path = environment.get("PATH", os.defpath)
    known = None if settings.command else BUILT_IN_AGENTS.get(settings.kind)
    # A relative path is looked for in each worktree, and not where Mulligan runs.
    places = [place for place in candidate_paths(program, path) if place.startswith("/")]
    files = [place for place in places if Path(place).is_file()]
    found = next((place for place in files if os.access(place, os.X_OK)), None)
    return AgentPresence(
        program=found,
        wanted=program,
        not_executable="" if found else next(iter(files), ""),
        install=known.install if known and program == known.adapter.program else "",
        missing_files=tuple(
            each for each in arguments if each.startswith("/") and not os.access(each, os.F_OK)
        ),
        missing_variables=missing_variables(settings, environment),
    )


def _is_relative(program: str) -> bool:
    """Return whether a program is looked for in each worktree."""
    return "/" in program and not program.startswith("/")


def file_state(program: str | None) -> str:
    """Return a text that changes when the file of a program does; empty without one."""
    try:
        found = Path(program).stat() if program else None
    except OSError:
        return ""
    return f"{program} {found.st_mtime_ns} {found.st_size}" if found else ""


VERSION_TIMEOUT = timedelta(seconds=15)

MAX_VERSION_BYTES = 64 * 1024

VERSION = re.compile(r"(?<!\d)\d++(?:\.\d++)+[\w.+-]{0,40}")


@dataclass(frozen=True, slots=True)
class StartTrial:
    """The result of a start that only asks for the version; `failure` says why it failed."""

    version: str | None = None
    failure: str = ""


def try_start(
    settings: AgentSettings,
    environment: Mapping[str, str],
    sandbox: Sandbox,
    own: Mapping[str, Adapter] | None = None,
) -> StartTrial:
    """Start the agent's program in its sandbox, without a network, and ask for its version.

    Nothing is tried if the adapter cannot ask. A wrapper in `agent.command` may need more than this
    start has, so only a program that the system cannot execute is its failure.
    """
    adapter = adapter_of(settings, own or {})
    if not adapter.version_arguments:
        return StartTrial()
    started = program_of(settings, adapter)
    try:
        ended = _ask_version((*started, *adapter.version_arguments), adapter, environment, sandbox)
    except NotStartedError as error:
        return StartTrial(failure=str(error))
    except (WorldError, OSError) as error:
        log.info("agent_version_not_read", program=started[0], reason=str(error))
        return StartTrial()
    found = VERSION.search(ended.text)
    failure = ""
    if ended.exit_code and not ended.stopped_by and len(started) == 1:
        last = read_output(ended.tail).last_activity or "it printed nothing"
        failure = f"It ended with exit code {ended.exit_code}: {last}"
    return StartTrial(found[0] if found else None, failure)


def _ask_version(
    argv: Sequence[str], adapter: Adapter, environment: Mapping[str, str], sandbox: Sandbox
) -> Finished:
    with tempfile.TemporaryDirectory(prefix="mulligan-version-") as home:
        place = Path(home)
        command = Command(
            argv=argv,
            directory=place,
            environment=variables_of_run(machine_variables(environment), place, adapter),
            timeout=VERSION_TIMEOUT,
            max_log_bytes=MAX_VERSION_BYTES,
        )
        return sandbox.run(command, CommandAccess(write=(place,), network=Network.NONE))
