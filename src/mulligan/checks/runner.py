"""Run setup commands, checks and the reviewer command, and build results from their output."""

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from mulligan.checks import source_code
from mulligan.checks.asked_reports import NO_TOOL, Plan, ask_for_reports, plan_reports
from mulligan.checks.compare import apply_rerun, keep_reproduced, subtract_baseline
from mulligan.checks.digest import MAX_CHARS, Digest, digest
from mulligan.checks.digest.reports import LARGEST_REPORT, PackageReport
from mulligan.checks.guards import violations
from mulligan.checks.left_reports import is_pattern, left_reports, package_reports
from mulligan.checks.progress import with_progress
from mulligan.checks.proof import (
    files_of_tests,
    needs_second_run,
    proof_of,
    proof_without_files,
    unproved,
)
from mulligan.checks.ran import excuses_of, judge_tests
from mulligan.checks.source_code import code_around
from mulligan.config.policy import MODEL_ONLY, Check, Reviewer, Scope, SetUp
from mulligan.config.settings import format_duration
from mulligan.domain.attempt import Change, ReviewerResult, TimeLimit
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.events import FailedCheck
from mulligan.domain.host import Network
from mulligan.domain.layer import Layer
from mulligan.domain.result import (
    NOT_FOUND,
    TIMEOUT_EXIT_CODE,
    CheckKind,
    CheckResult,
    GuardViolation,
    Proof,
    RanTests,
    VerifierOutcome,
)
from mulligan.implement.ports import ReviewQuestion, RunDirectory
from mulligan.implement.prompt.outcome_text import verdict
from mulligan.sandbox.egress_rules import NO_MODEL
from mulligan.sandbox.hidden_programs import HiddenProgram, find_hidden_program
from mulligan.sandbox.home import Homes
from mulligan.sandbox.operator_network import (
    NO_NETWORK_SETTINGS,
    CommandNetwork,
    NamedHosts,
    OperatorNetwork,
)
from mulligan.sandbox.process import Command, Finished, run
from mulligan.sandbox.programs import machine_variables
from mulligan.sandbox.sandbox import CommandAccess, Sandbox, Unconfined, moved, place_in
from mulligan.text.certificates import COMMAND_TRUST, says_untrusted
from mulligan.text.escape import last_lines, one_line
from mulligan.text.redact import Redactor

logger = structlog.get_logger()

SET_UP_TIMEOUT = timedelta(minutes=30)

SET_UP_CHECK = "setup"
"""The name of the setup commands among the checks of an attempt."""

MAX_FINDINGS = 1000
"""Limit of a check's findings to compare with the start tree; further ones are only counted."""

MAX_LOG_BYTES = 256 * 1024**2
"""Limit of a command's output to store; a digest of that takes about five seconds."""


CheckOut = Callable[[], object]

NO_CHECK_OUT: CheckOut = object
"""Does nothing: for a directory in which checks run as it is."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A shell line with its limits; `arguments` are the positional parameters of the shell.

    It may also read `readable`, and write to `writable`.
    """

    text: str
    timeout: timedelta
    arguments: tuple[str, ...] = ()
    stdin: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandVerifier:
    """Implements the port Verifier with shell lines, which get only PATH of `environment`.

    `network` adds the operator's variables, certificates and package indexes.

    A log keeps at most `max_log_bytes` of an output, and the end of a longer one.
    """

    environment: Mapping[str, str]
    sandbox: Sandbox = field(default_factory=Unconfined)
    set_up_timeout: timedelta = SET_UP_TIMEOUT
    max_log_bytes: int = MAX_LOG_BYTES
    redactor: Redactor = field(default_factory=Redactor)
    network: OperatorNetwork = NO_NETWORK_SETTINGS

    def violations(self, change: Change, scope: Scope) -> tuple[GuardViolation, ...]:
        return violations(change, scope, self.redactor)

    def set_up(self, lines: Sequence[str], worktree: RunDirectory, log: Path) -> CheckResult:
        with self._open_network(Network.OPEN, worktree, log) as network:
            return self._with_hints(self._set_up(lines, worktree, log, network), network)

    def set_up_again(
        self, settings: SetUp, worktree: RunDirectory, log: Path, note: str
    ) -> CheckResult:
        """Without a sandbox, the commands have the whole network (see security.md)."""
        with ExitStack() as opened:
            if isinstance(self.sandbox, Unconfined):
                network = opened.enter_context(self._open_network(Network.OPEN, worktree, log))
            else:
                hosts = NamedHosts(settings.hosts, "setup.hosts")
                network = opened.enter_context(self._open_hosts(hosts, worktree, log))
            result = self._set_up(settings.run, worktree, log, network)
            result = self._with_hints(result, network)
        if result.passed:
            return result
        return _with_first_line(result, f"{note} {verdict(result)}")

    def _with_hints(self, failed: CheckResult, network: CommandNetwork) -> CheckResult:
        """Add the refusals and failures of the proxy to a failure, or what may explain it."""
        hints, output = [*network.hints], f"{failed.digest}\n{failed.long_digest}"
        if not hints and says_untrusted(output):
            hints.append(COMMAND_TRUST)
        elif not hints and UNREACHABLE.search(output):
            hints.extend(self.network.withheld_from(network))
        return failed if failed.passed or not hints else _with_first_line(failed, "\n".join(hints))

    def _open_network(
        self, wanted: Network, worktree: RunDirectory, log: Path
    ) -> AbstractContextManager[CommandNetwork]:
        return self.network.open(wanted, worktree.private, _egress_log(log), self.redactor.text)

    def _open_hosts(
        self, hosts: NamedHosts, worktree: RunDirectory, log: Path
    ) -> AbstractContextManager[CommandNetwork]:
        place = worktree.private
        return self.network.open_hosts(hosts, place, _egress_log(log), self.redactor.text)

    def _set_up(
        self, lines: Sequence[str], worktree: RunDirectory, log: Path, network: CommandNetwork
    ) -> CheckResult:
        """Run setup commands until one fails; its digest is the end of its output."""
        began = time.monotonic()
        log.write_bytes(b"")
        part = log.with_name(f"{log.name}.part")
        with self._homes(worktree).for_set_up() as home:
            for text in lines:
                line = _Line(text, self.set_up_timeout)
                try:
                    ended = self._run_in(home, line, worktree, part, network)
                    found = _digest(text, ended, part)
                finally:
                    _append(log, text, part)
                if ended.stopped_by or ended.exit_code:
                    hidden = self._hidden_program(text, ended, worktree)
                    _append_hint(log, hidden)
                    return _failed_set_up(text, ended, found, hidden)
        return CheckResult(
            name=SET_UP_CHECK,
            kind=CheckKind.OTHER,
            command="; ".join(lines),
            passed=True,
            is_set_up=True,
            exit_code=0,
            duration_ms=round((time.monotonic() - began) * 1000),
        )

    def check(
        self, check: Check, worktree: RunDirectory, log: Path, check_out: CheckOut = NO_CHECK_OUT
    ) -> CheckResult:
        for pattern, advice in check.unusable_patterns():
            logger.warning("pattern_ignored", check=check.name, pattern=pattern, reason=advice)
        ended, left = self._run_check(check, worktree, log, check_out)
        reports = [
            replace(report, content=self.redactor.content(report.content))
            if isinstance(report, PackageReport)
            else self.redactor.content(report)
            for report in left
        ]
        late = _why_stopped(ended, check.timeout)
        hidden = self._hidden_program(check.run, ended, worktree)
        late += f"{hidden.text}\n" if hidden else ""
        with log.open("rb") as output:
            found = digest(
                output,
                command=check.run,
                exit_code=_exit_code(ended),
                max_chars=MAX_CHARS - len(late),
                # Without `ran`, the exit code alone decides.
                report=reports if check.ran or ended.exit_code else (),
                patterns=check.patterns,
                root=self.place(worktree),
            )
        # The digest is published, and the log is not.
        _append_hint(log, hidden)
        if ended.exit_code == NOT_FOUND and not ended.stopped_by:
            self._refuse_a_missing_program(check, worktree, hidden)
        return CheckResult(
            name=check.name,
            kind=check.kind,
            command=check.run,
            required=check.required,
            passed=found.passed,
            exit_code=ended.exit_code,
            timed_out=ended.stopped_by is TimeLimit.TIMEOUT,
            duration_ms=round(ended.duration.total_seconds() * 1000),
            digest=late + found.short,
            long_digest=late + found.text if found.text != found.short else "",
            findings=found.findings[:MAX_FINDINGS],
            count=found.count,
            source=code_around(worktree.path, found.findings),
            fingerprint=found.fingerprint,
            evidence=found.evidence,
            cut_short=found.cut_short,
            tests=found.tests if check.ran else None,
        )

    def _run_check(
        self, check: Check, worktree: RunDirectory, log: Path, check_out: CheckOut
    ) -> tuple[Finished, tuple[bytes | PackageReport, ...]]:
        """Run a check, and return its reports; run it again where asking disturbed it (CHECK-6)."""
        wanted = Network.OPEN if check.network else Network.NONE
        line = _Line(check.run, check.timeout)
        check_out()
        if check.report and is_pattern(check.report):
            with ask_for_reports(worktree.private, self.environment, NO_TOOL) as asked:
                ended = self._run(line, worktree, log, wanted)
                tree, written, since = worktree.path, _written_to(worktree), asked.since
                return ended, (*package_reports(tree, written, since, check.report),)
        if check.report:
            # A report of an earlier run must not count for this one.
            self._remove(check.report, worktree)
            ended = self._run(line, worktree, log, wanted)
            report = self._read(check.report, worktree)
            return ended, (report,) if report else ()
        plan = plan_reports(worktree.path, check.run)
        while (ran := self._run_asking(plan, line, worktree, log, wanted)) is None:
            plan = replace(plan, tools=NO_TOOL)
            check_out()
        return ran

    def _run_asking(
        self, plan: Plan, line: _Line, worktree: RunDirectory, log: Path, wanted: Network
    ) -> tuple[Finished, tuple[bytes, ...]] | None:
        """Run a line, and return its reports; None if asking may have made it fail."""
        with ask_for_reports(worktree.private, self.environment, plan.tools) as asked:
            asking = replace(
                line, variables=asked.variables(self.network.variables), writable=(asked.place,)
            )
            ended = self._run(asking, worktree, log, wanted)
            reports, is_named = asked.collect(), asked.clean_log(log)
            is_refused = asked.is_refused(ended.exit_code) and not reports
            if ended.exit_code and not ended.stopped_by and (is_named or is_refused):
                return None
            left = left_reports(_written_to(worktree), asked.since, everywhere=plan.writes_own)
            return ended, (*reports, *left)

    def _remove(self, name: str, worktree: RunDirectory) -> None:
        if worktree.layer is None:
            source_code.remove(worktree.path, name)
        else:
            self._run(_Line(REMOVE, FILE_TIMEOUT, ("sh", name)), worktree, _file_log(worktree))

    def _read(self, name: str, worktree: RunDirectory) -> bytes | None:
        """Read a file as the last check left it; None if it is missing or too large."""
        if worktree.layer is None:
            return source_code.read(worktree.path, name, LARGEST_REPORT)
        # The layer is merged for a command only, and only there a link leads nowhere else.
        log = _file_log(worktree)
        ended = self._run(_Line(READ, FILE_TIMEOUT, ("sh", name)), worktree, log)
        if ended.exit_code or ended.stopped_by or ended.output_bytes > LARGEST_REPORT:
            return None
        return log.read_bytes()

    def merge_reruns(self, first: CheckResult, again: CheckResult) -> CheckResult:
        return apply_rerun(first, again)

    def subtract_baseline(
        self, failed: CheckResult, before: CheckResult | None, files: Collection[str]
    ) -> CheckResult:
        return subtract_baseline(failed, before, files)

    def judge_tests(
        self, runs: Sequence[CheckResult], before: CheckResult, diff: bytes, scope: Scope
    ) -> CheckResult:
        return judge_tests(runs, before, excuses_of(diff, scope))

    def files_of_tests(self, change: Change, patterns: Sequence[str]) -> frozenset[str]:
        return files_of_tests(change.files, patterns)

    def needs_second_run(self, diff: bytes, change: CheckResult, run: CheckResult) -> bool:
        return needs_second_run(diff, change, run)

    def proof_of(
        self, change: CheckResult, runs: Sequence[CheckResult], before: RanTests | None
    ) -> Proof:
        return proof_of(change, runs, before)

    def proof_without_files(
        self, diff: bytes, change: CheckResult, before: RanTests | None
    ) -> Proof:
        return proof_without_files(diff, change, before)

    def unproved(self, proof: Proof) -> CheckResult | None:
        return unproved(proof)

    def with_progress(
        self, result: CheckResult, before: CheckResult | None, number: int
    ) -> CheckResult:
        return with_progress(result, before, number)

    def condense(self, name: str, output: bytes) -> FailedCheck:
        found = digest(io.BytesIO(self.redactor.content(output)), exit_code=1)
        return FailedCheck(name=name, digest=found.short, long_digest=found.text)

    def review(
        self, reviewer: Reviewer, question: ReviewQuestion, worktree: RunDirectory, log: Path
    ) -> ReviewerResult:
        result = self._review(reviewer, question, worktree, log)
        if result.verdict:
            return result
        again = log.with_name(f"{log.stem}-again{log.suffix}")
        return self._review(reviewer, question, worktree, again)

    def _review(
        self, reviewer: Reviewer, question: ReviewQuestion, worktree: RunDirectory, log: Path
    ) -> ReviewerResult:
        is_confined = not isinstance(self.sandbox, Unconfined)
        model = question.model if reviewer.network == MODEL_ONLY else NO_MODEL
        if reviewer.network == MODEL_ONLY and is_confined:
            hosts = NamedHosts(reviewer.hosts, "reviewer.hosts", model)
            opened = self._open_hosts(hosts, worktree, log)
        else:
            wanted = Network.OPEN if reviewer.network else Network.NONE
            opened = self._open_network(wanted, worktree, log)
        change = {CHANGE_VARIABLE: str(question.change)}
        line = _Line(
            reviewer.run,
            reviewer.timeout,
            stdin=question.asked,
            variables=change if is_confined else {**model.variables, **change},
            readable=(question.change,),
        )
        with self._homes(worktree).for_command() as home, opened as network:
            ended = self._run_in(home, line, worktree, log, network)
            hidden = self._hidden_program(reviewer.run, ended, worktree)
            hints = (*network.hints, *([hidden.text] if hidden else []))
        if ended.stopped_by:
            after = format_duration(reviewer.timeout)
            result = no_verdict(f"The reviewer command gave no answer within {after}.")
        else:
            result = read_answer(ended.tail, ended.exit_code, f"{question.change}/")
        if result.verdict or not hints:
            return result
        _append_hint(log, hidden)
        return no_verdict(" ".join((result.unreadable, *hints)))

    def merge_baseline_runs(self, first: CheckResult, again: CheckResult) -> CheckResult:
        return keep_reproduced(first, again)

    def place(self, worktree: RunDirectory) -> str:
        return str(self.sandbox.worktree_path(worktree.path))

    def toolchain(self, lines: Sequence[str]) -> str:
        """Include the variables of the operator's network in the hash."""
        programs = toolchain_of(lines, self.environment.get("PATH", ""))
        variables = json.dumps(self.network.plain_variables, sort_keys=True)
        return hashlib.sha256(f"{programs}{variables}".encode()).hexdigest()

    def _run(
        self, line: _Line, worktree: RunDirectory, log: Path, wanted: Network = Network.NONE
    ) -> Finished:
        """Run a line with its own copy of the HOME that the setup commands left."""
        with (
            self._homes(worktree).for_command() as home,
            self._open_network(wanted, worktree, log) as network,
        ):
            return self._run_in(home, line, worktree, log, network)

    def _homes(self, worktree: RunDirectory) -> Homes:
        is_layered = worktree.layer is not None
        left, copies = worktree.set_up_files, worktree.copies
        return Homes(worktree.private, self.environment, left, is_layered, copies)

    def _run_in(
        self,
        home: Path,
        line: _Line,
        worktree: RunDirectory,
        log: Path,
        network: CommandNetwork,
    ) -> Finished:
        image = worktree.image
        ended = self.sandbox.run(
            Command(
                argv=("/bin/sh", "-c", line.text, *line.arguments),
                directory=place_in(worktree.path, worktree.layer),
                environment={
                    **(image.environment if image else machine_variables(self.environment)),
                    **network.variables,
                    **line.variables,
                    "HOME": str(home),
                    "LANG": image.environment.get("LANG", "C.UTF-8") if image else "C.UTF-8",
                    "TERM": "dumb",
                    "CI": "true",
                },
                timeout=line.timeout,
                stdin=line.stdin,
                log=log,
                max_log_bytes=self.max_log_bytes,
                redactor=self.redactor,
            ),
            _command_access(network, worktree, home, self._homes(worktree).layers, line),
        )
        _append_cut_output(ended, log)
        return ended

    def _hidden_program(
        self, line: str, ended: Finished, worktree: RunDirectory
    ) -> HiddenProgram | None:
        """Return a program that a failed line needs and the sandbox hides."""
        if ended.stopped_by or not ended.exit_code or worktree.image:
            return None
        variables = machine_variables(self.environment)
        hidden = find_hidden_program(self.sandbox, line, ended.text, variables)
        if hidden:
            logger.warning(
                "program_hidden", program=hidden.name, reason=hidden.reason, fix=hidden.fix
            )
        return hidden

    def _refuse_a_missing_program(
        self, check: Check, worktree: RunDirectory, hidden: HiddenProgram | None
    ) -> None:
        program = program_of(check.run)
        trees = map(Path, (worktree.path, *(worktree.layer.lower if worktree.layer else ())))
        if not program or any((tree / program).exists() for tree in trees):
            return
        log = worktree.private / "program.log"
        look_up = _Line(LOOK_UP, LOOK_UP_TIMEOUT, ("sh", program))
        if self._run(look_up, worktree, log).exit_code:
            cure = "; install it in a setup command, or change the check's command."
            cure = f". {hidden.text}" if hidden else cure
            place = f" in the image {worktree.image.reference}" if worktree.image else ""
            message = f"{program!r} not found{place}. It is the program of the check {check.name!r}"
            raise MisconfiguredError(message + cure)


def _written_to(worktree: RunDirectory) -> Path:
    """Return the directory with the files that a command in a worktree wrote."""
    return Path(worktree.layer.upper) if worktree.layer else worktree.path


def _egress_log(log: Path) -> Path:
    """Return the log of a command's proxy, beside the command's own."""
    return log.with_name(f"{log.stem}-egress.log")


def _with_first_line(result: CheckResult, line: str) -> CheckResult:
    parts = {"digest": result.digest, "long_digest": result.long_digest}
    return result.model_copy(update={name: f"{line}\n{part}" for name, part in parts.items()})


def _command_access(
    network: CommandNetwork,
    worktree: RunDirectory,
    home: Path,
    home_layers: tuple[Layer, ...],
    line: _Line,
) -> CommandAccess:
    """Return the paths and the network that a command may use."""
    tree, layer = worktree.path, worktree.layer
    return CommandAccess(
        read=(*moved(worktree.readable, tree, layer), *line.readable),
        shown=network.shown,
        write=(*worktree.writable, *line.writable),
        worktree=place_in(tree, layer),
        home=home,
        network=network.network,
        proxy=network.proxy,
        layers=(*((layer,) if layer else ()), *home_layers),
        owned=(tree,) if layer else (),
        image=worktree.image,
    )


UNREACHABLE = re.compile(
    r"attempts to connect|connection|could ?n[o']t connect|resolve|getaddrinfo|ENOTFOUND|ETIMEDOUT|"
    r"proxy|network|failed to (?:download|fetch)",
    re.IGNORECASE,
)
"""How pip, Poetry, uv, npm, curl and git say that they did not reach a server."""


REMOVE = 'rm -f -- "$1"'
READ = 'test -f "$1" && ! test -L "$1" && exec cat -- "$1"'
FILE_TIMEOUT = timedelta(minutes=1)
"""Shell lines for one file of a merged tree, and their time limit."""


def _file_log(worktree: RunDirectory) -> Path:
    return worktree.private / "file-of-a-check"


def _failed_set_up(
    line: str, ended: Finished, found: Digest, hidden: HiddenProgram | None
) -> CheckResult:
    """Return the result of a setup command that failed."""
    hint = f"\n{hidden.text}" if hidden else ""
    return CheckResult(
        name=SET_UP_CHECK,
        kind=CheckKind.OTHER,
        command=line,
        passed=False,
        is_set_up=True,
        exit_code=_exit_code(ended),
        timed_out=ended.stopped_by is not None,
        duration_ms=round(ended.duration.total_seconds() * 1000),
        digest=last_lines(ended.text) + hint,
        long_digest=found.text + hint,
        findings=found.findings[:MAX_FINDINGS],
        count=found.count,
        fingerprint=found.fingerprint,
    )


def _why_stopped(ended: Finished, timeout: timedelta) -> str:
    """Say in one line why Mulligan stopped a check; "" if it did not."""
    if ended.stopped_by is TimeLimit.DISK:
        return "Mulligan stopped it because it filled the disk with its own files.\n"
    return f"Timed out after {format_duration(timeout)}.\n" if ended.stopped_by else ""


def _digest(line: str, ended: Finished, log: Path) -> Digest:
    with log.open("rb") as output:
        return digest(output, command=line, exit_code=_exit_code(ended))


def _exit_code(ended: Finished) -> int:
    return TIMEOUT_EXIT_CODE if ended.stopped_by else ended.exit_code


def _append_hint(log: Path, hidden: HiddenProgram | None) -> None:
    """Name in the log, which stays on this machine, the path that the sandbox hides."""
    if hidden:
        with log.open("ab") as whole:
            whole.write(f"\nMulligan: {hidden.reason} {hidden.fix}\n".encode(errors="replace"))


def _append_cut_output(ended: Finished, log: Path) -> None:
    """Add the end of an output that was too large for its log; tools print totals there."""
    missing = ended.output_bytes - log.stat().st_size
    if missing > 0:
        end = ended.tail[-missing:]
        mark = f"\n[... {missing - len(end)} bytes omitted]\n" if missing > len(end) else ""
        with log.open("ab") as whole:
            whole.write(mark.encode() + end)


def _append(log: Path, line: str, part: Path) -> None:
    part.touch()
    with log.open("ab") as whole, part.open("rb") as source:
        whole.write(f"$ {line}\n".encode())
        shutil.copyfileobj(source, whole)
    part.unlink()


# The first program of a shell line

LOOK_UP = 'command -v -- "$1"'
LOOK_UP_TIMEOUT = timedelta(seconds=30)
PLAIN_WORD = re.compile(r"[\w./+@-]+")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def program_of(line: str) -> str:
    """Return the program that a shell line runs first; empty if only a shell can find out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        word = next((word for word in lexer if not ASSIGNMENT.match(word)), "")
    except ValueError:
        return ""
    return word if PLAIN_WORD.fullmatch(word) else ""


def program_exists(program: str, environment: Mapping[str, str]) -> bool:
    """Return whether the shell that runs the checks finds a program; builtins count."""
    looked = run(
        Command(
            argv=("/bin/sh", "-c", LOOK_UP, "sh", program),
            directory=Path("/"),
            environment={"PATH": environment.get("PATH", "")},
            timeout=LOOK_UP_TIMEOUT,
        )
    )
    return not looked.exit_code


# The programs of this machine

WORD = re.compile(r"[\w./+@-]+")


def toolchain_of(lines: Sequence[str], path: str) -> str:
    """Return a hash of the programs on `path` (as in PATH); equal while nothing is installed.

    It covers each directory's modification time, and the real path, size and modification time of
    each program that a line names. Programs inside the repository belong to its tree and its setup.
    """
    words = sorted({word for line in lines for word in WORD.findall(line)})
    programs: list[str | None] = [
        shutil.which(word, path=path) for word in words if "/" not in word
    ]
    directories = [_state(Path(directory)) for directory in path.split(os.pathsep) if directory]
    found = [*directories, *(_state(Path(program)) for program in programs if program)]
    return hashlib.sha256("\n".join(found).encode(errors="surrogateescape")).hexdigest()


def _state(path: Path) -> str:
    real = path.resolve()
    try:
        known = real.stat()
    except OSError:
        return f"{real} is missing"
    return f"{real} {known.st_size} {known.st_mtime_ns}"


# The reviewer's answer

FEEDBACK_CHARS = 10_000

END_CHARS = 200

CHANGE_VARIABLE = "MULLIGAN_CHANGE"
"""Names the directory with the files of the change, for the reviewer command."""


def _in_capitals(verdict: object) -> object:
    return verdict.upper() if isinstance(verdict, str) else verdict


class Answer(BaseModel):
    """The JSON of an answer; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    verdict: Annotated[VerifierOutcome, BeforeValidator(_in_capitals)]
    feedback: str = ""


def read_answer(output: bytes, exit_code: int = 0, place: str = "") -> ReviewerResult:
    """Return the last JSON object that is a verdict, unless the command failed after it.

    The output may quote the change, with a verdict in it; so only a HARD_FAIL counts of a command
    that failed. `place` is cut off the paths in what it says.
    """
    text = output.decode(errors="replace")
    answers = [found for found in map(_answer, _objects(text)) if found]
    last = answers[-1] if answers else None
    if last and (exit_code == 0 or last.verdict is VerifierOutcome.HARD_FAIL):
        feedback = last.feedback.replace(place, "") if place else last.feedback
        return ReviewerResult(last.verdict, feedback.strip()[:FEEDBACK_CHARS])
    if exit_code:
        said = f"ended with exit code {exit_code}"
    else:
        said = "printed no verdict as JSON" if text.strip() else "printed nothing"
    last = text.strip().rpartition("\n")[2]
    end = one_line(last.replace(place, "") if place else last, END_CHARS)
    return no_verdict(f"The reviewer command {said}." + (f" Its last line: {end}" if end else ""))


def no_verdict(why: str) -> ReviewerResult:
    """Return that the reviewer gave no verdict; a person decides (REVIEWER-1)."""
    return ReviewerResult(None, unreadable=why)


def _objects(text: str) -> Iterator[object]:
    """Yield the JSON objects in a text, but none that is inside another one.

    The output may quote the change, which may have a verdict on a line of its own.
    """
    decoder, start = json.JSONDecoder(), text.find("{")
    while start >= 0:
        try:
            found, end = decoder.raw_decode(text, start)
            yield found
        except (ValueError, RecursionError):
            end = start + 1
        start = text.find("{", end)


def _answer(found: object) -> Answer | None:
    try:
        return Answer.model_validate(found)
    except ValidationError:
        return None
