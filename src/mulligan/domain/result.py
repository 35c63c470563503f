"""The record of an attempt, with its guards, checks, agent and change (RECORD-1). Pure."""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from mulligan.domain.outcome import Outcome, Record, ZeroKind

SCHEMA_VERSION = 1


# Guards.


class GuardKind(StrEnum):
    """The rule that was broken."""

    SCOPE = "scope"
    """`scope.allow` and `scope.deny`."""
    PROTECTED = "protected"
    """`scope.protect`: files that control CI, agents, reviews, git or Mulligan itself."""
    SIZE = "size"
    """The limits on a change's size."""
    LINK = "link"
    """A symbolic link that may lead out of the repository."""
    SUBMODULE = "submodule"
    LFS = "lfs"
    """Raw content where a Git LFS pointer belongs."""
    SET_UP = "set_up"
    """A file that setup commands made, or in a directory of theirs."""
    DELETED_TEST = "deleted_test"
    SKIPPED_TEST = "skipped_test"
    SECRET = "secret"  # noqa: S105 - a kind, not a password


class GuardViolation(Record):
    """One broken rule; `message` is one sentence that names what broke it, and what to do.

    `path` is None if the rule is about the change as a whole.
    """

    kind: GuardKind = GuardKind.SCOPE
    path: str | None = None
    message: str


# Checks and the reviewer.


class CheckKind(StrEnum):
    """The kind of tool that a check runs (CHECK-1)."""

    TEST = "test"
    LINT = "lint"
    TYPE = "type"
    BUILD = "build"
    FORMAT = "format"
    OTHER = "other"


NAMES_UNIT = re.compile(
    r"^\S*?(?:[A-Za-z_]\w*\.[A-Za-z_]|::|\\|//)|\.\w{1,5}(?::\d+)* (?:›|>) |^\[\S+\] | \(package\)$"
)


ID_CHARS = 300
"""The maximum length of a test's id; a report may name a test with millions of characters."""


class Finding(Record):
    """One failure that a tool reports; `summary` is one line of at most 100 characters (DIGEST-1).

    `line` and `column` count from 1. A finding's identity is its test id, with the package, crate,
    module or file of the test, or else its file, code and message (DIGEST-4); `summary` is for
    readers.
    """

    summary: str
    message: str = ""
    file: str | None = None
    line: int | None = None
    column: int | None = None
    code: str | None = None
    test_id: str | None = None
    hint: str | None = None

    @property
    def name(self) -> str:
        """The name in a list: the test, with its file if the id does not say where it belongs."""
        if self.test_id and self.file and not names_unit(self.test_id):
            return f"{self.test_id} ({self.file})"
        return self.test_id or self.summary


def names_unit(test_id: str) -> bool:
    """Return whether a test's id contains its package, class, module or file."""
    return bool(NAMES_UNIT.search(test_id[:ID_CHARS]))


class SourceExcerpt(Record):
    """The lines around the location of a finding, with its own line marked (CONTEXT-14)."""

    file: str
    line: int
    text: str


TIMEOUT_EXIT_CODE = 124
"""The exit code of a check that was stopped, as of timeout(1).

From this one on, a check was stopped or killed or could not run: it does not name every failure.
"""


CANNOT_EXECUTE, NOT_FOUND = 126, 127
"""The exit codes of a shell that cannot execute, or does not find, a program (POSIX)."""


class OnBase(StrEnum):
    """How a failing check ended on the start tree, without the change (BASELINE-1)."""

    PASSES = "passes"
    FAILS = "fails"
    CANNOT_RUN = "cannot_run"
    """It timed out, or could not start, in the same way as with the change (BASELINE-2)."""


class RanTests(Record):
    """The tests that a check's reports name: those that ran, and those that were skipped.

    `stopped` ended with an error, in the test or before it; `failed` are those of both that failed
    themselves, not before they began. A name has the file, class or suite of
    its test, and its parameters; the same name stands for tests of several environments as often as
    they ran.
    """

    ran: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class ProofState(StrEnum):
    """The result of a change's tests without its other files (PROOF-1)."""

    PROVED = "proved"
    """A test fails without the change, and passes with it."""
    NOT_PROVED = "not_proved"
    """The tests ran, and none of them fails without the change."""
    NOT_TRIED = "not_tried"
    """The tests cannot be built, or do not start, without the change."""
    NO_TEST = "no_test"
    """The change touches no test file."""


class Proof(Record):
    """Whether the tests of a change prove it.

    `tests` are at most 20 names of `count`: those that prove it, or else new tests that pass
    without it. `check` ran them; it is empty for NO_TEST.
    """

    state: ProofState
    tests: tuple[str, ...] = ()
    count: int = 0
    check: str = ""


class Progress(Record):
    """The failures of a check compared with those in an earlier attempt, at most 50 of each kind.

    `since` is the number of that attempt over all epochs. `fixed` failed there and `new` passed
    there; each of them ran in both attempts.
    """

    since: int
    fixed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()


class CheckResult(Record):
    """The verdict of one check, with the digest of its output.

    `findings` are the failures that count. `known` are those that also occurred before the change,
    and `unsteady` those that failed and passed on the same tree. A check is `preexisting` if all
    its failures occurred before; `flaky` (and `passed`) if it failed and then passed. `count` is
    the number of failures, listed or not; 0 if it is not known. `evidence` has a hash of each line
    about failures, empty where some were dropped; on the start tree, of those in both runs, and
    `varying` counts the others. `cut_short` is set if the tool says that it did not run or list
    everything. `long_digest` has more for the next prompt, where the findings do not explain the
    failure or do not fit; else it is empty. `is_set_up`: not a check of the policy, but the setup
    commands, which ran again on the change. `is_proof`: not a check of the policy, but the proof
    that is missing (PROOF-2). `changed` are tracked files that the check changed in its copy of the
    tree, at most 10. `on_base` is None if the check did not run on the start
    tree.

    `duration_ms` is the time of the last run, and of the first if the check is flaky. `runs` counts
    all runs of this round after the agent: on the change, again, and on the start tree. `wall_ms`
    is the time of all of them, with checkouts and copies. Both are 0 in records of old versions.
    """

    name: str
    kind: CheckKind
    command: str
    required: bool = True
    passed: bool
    exit_code: int | None = None
    timed_out: bool = False
    flaky: bool = False
    preexisting: bool = False
    duration_ms: int = 0
    runs: int = 0
    wall_ms: int = 0
    digest: str = ""
    findings: tuple[Finding, ...] = ()
    count: int = 0
    known: tuple[Finding, ...] = ()
    unsteady: tuple[Finding, ...] = ()
    source: tuple[SourceExcerpt, ...] = ()
    fingerprint: str = ""
    evidence: str = ""
    varying: int = 0
    cut_short: bool = False
    log_artifact: str = ""
    long_digest: str = ""
    is_set_up: bool = False
    is_proof: bool = False
    changed: tuple[str, ...] = ()
    on_base: OnBase | None = None
    tests: RanTests | None = None
    """None if there was no report; it is not recorded, since it may have 100,000 names."""
    tests_artifact: str = ""
    """The file with `tests`."""
    failure_hash: str | None = None
    """A hash of the failures with their messages, equal for the same failures in another attempt.

    Empty if they are not known in full, or may be the machine's; None in records of old versions.
    """
    progress: Progress | None = None
    """None without an earlier attempt in which the check ran, and in records of old versions."""

    @property
    def took_ms(self) -> int:
        """Return the time of all runs of the check, as far as it is recorded."""
        return max(self.wall_ms, self.duration_ms)

    @property
    def fails(self) -> bool:
        """Return whether the check fails an attempt of the agent."""
        failed = self.required and not self.passed and not self.preexisting
        return failed and self.on_base is not OnBase.CANNOT_RUN

    @property
    def is_broken(self) -> bool:
        """Return whether a required check cannot run, with or without the change (BASELINE-2)."""
        return self.required and not self.passed and self.on_base is OnBase.CANNOT_RUN

    @property
    def is_complete(self) -> bool:
        """Return whether the check ran to its end, so that its list of failures is complete."""
        return (
            not (self.timed_out or self.cut_short)
            and self.exit_code is not None
            and 0 <= self.exit_code < TIMEOUT_EXIT_CODE
        )

    @property
    def has_report(self) -> bool:
        """Return whether a report named the tests that ran."""
        return self.tests is not None or bool(self.tests_artifact)

    @property
    def unnamed(self) -> int:
        """Return the number of failures that no finding lists."""
        return max(0, self.count - len(self.findings))

    @property
    def names_all(self) -> bool:
        """Return whether the findings list every failure."""
        named = self.passed or self.preexisting or bool(self.findings)
        return named and self.is_complete and not self.unnamed


class SkippedCheck(Record):
    """A check that did not run: the change touches none of its `paths` (CHECK-8).

    It has not passed and not failed, so it is not among the `checks` of a record.
    """

    name: str
    kind: CheckKind
    command: str
    required: bool = True
    paths: tuple[str, ...] = ()


class VerifierOutcome(StrEnum):
    """The verdict of the optional reviewer command (REVIEWER-1)."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    SOFT_FAIL = "SOFT_FAIL"
    HARD_FAIL = "HARD_FAIL"


# The agent and its change.


class FileChange(Record):
    """A file that differs from the start tree; counts are None for a binary file.

    `status` is git's letter, and `old_path` is the path before a move (R). `mode` is git's; for a
    deleted file the former one. `size` is in bytes. `link` is the target of a symbolic link.
    """

    path: str
    status: str
    insertions: int | None = None
    deletions: int | None = None
    old_path: str | None = None
    mode: str | None = None
    size: int | None = None
    link: str | None = None


class RestKind(StrEnum):
    """Why an agent starts no run for a while."""

    REFUSED = "refused"
    """A person must renew the login, key or credit, name another model, or update the agent."""
    LIMITED = "limited"
    """The account has reached a limit that ends by itself, or the service is overloaded."""
    UNREACHABLE = "unreachable"
    """The model's service cannot be reached from this machine."""
    NOT_STARTED = "not_started"
    """The agent's program cannot be started."""
    ASKED = "asked"
    """The model's service asked for a wait (`Retry-After`); the failure counts on its issue."""


class Rest(Record):
    """Why and until when an agent starts no run (OUTCOME-6).

    `since` is the first of `count` failures in a row, and `at` the last one. `account` stands for
    the agent's configuration, key and program: a change of these ends the rest.
    """

    kind: RestKind
    since: datetime
    at: datetime
    until: datetime
    count: int = 1
    words: str = ""
    account: str = ""


class AgentFacts(Record):
    """Facts about the agent's run; a number that the agent did not report is None.

    `name` is the operator's name for the agent, if it has one besides its `kind`. `input_tokens`
    include the `cached_tokens`. `api_status` is the last HTTP error status of the model's service.
    `refused` lists the refused tools, `refused_hosts` the hosts that the sandbox blocked. `rest` is
    set if the agent can make no run for a while after this one, and `denied` if it was refused.
    """

    kind: str
    name: str = ""
    version: str | None = None
    model: str | None = None
    session_id: str | None = None
    exit_code: int | None = None
    turns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    stop_reason: str | None = None
    last_activity: str | None = None
    api_status: int | None = None
    refused: tuple[str, ...] = ()
    refused_hosts: tuple[str, ...] = ()
    denied: bool = False
    rest: Rest | None = None


# The record.


class FixRound(Record):
    """A further agent run in the same attempt, and the checks after it (ATTEMPT-3)."""

    number: int
    checks: tuple[CheckResult, ...] = ()
    skipped_checks: tuple[SkippedCheck, ...] = ()
    duration_ms: int = 0
    usage: AgentFacts | None = None
    manifest_hash: str | None = None


class AttemptTimes(Record):
    """The parts of an attempt's `duration_ms`, which add up to it, in milliseconds.

    `checks_ms` includes the runs on the start tree. `other_ms` includes commits and requests to
    GitHub. `waited_ms` comes before the attempt: since the request, or since the end of the
    previous attempt of its round. `set_up_reused`: the files of earlier setup commands were used.
    """

    waited_ms: int = 0
    worktree_ms: int = 0
    set_up_ms: int = 0
    set_up_reused: bool = False
    agent_ms: int = 0
    checks_ms: int = 0
    reviewer_ms: int = 0
    other_ms: int = 0


class SetUpFiles(Record):
    """How an attempt's commands got the files that setup commands left.

    With `copied_because`, each one got a copy, for that reason; else each one got a layer. All
    copies took `copied_ms`, which is part of the attempt's times.
    """

    copied_ms: int = 0
    copied_because: str = ""


class WorkerResultMeta(Record):
    """The record of one attempt. `attempt` counts within the epoch, `number` over all epochs.

    `sketch` is for comparing its change with those of other attempts.
    """

    schema_version: int = SCHEMA_VERSION
    issue: str
    epoch: int
    attempt: int
    number: int
    outcome: Outcome
    error: str = ""
    failure_reason: str = ""
    zero_kind: ZeroKind | None = None
    base_sha: str = ""
    start_sha: str = ""
    image: str = ""
    """The image in which setup commands and checks ran, with its digest; empty if in none."""
    head_sha: str | None = None
    branch: str = ""
    commits: int = 0
    files_modified: tuple[FileChange, ...] = ()
    nested: tuple[str, ...] = ()
    """Directories that had a git repository of their own, and so are not part of the change."""
    leftovers: tuple[str, ...] = ()
    """Files and directories that tools left behind, and that are not part of the change."""
    diff_summary: str = ""
    diff_artifact: str | None = None
    sketch: tuple[str, ...] = ()
    set_up: CheckResult | None = None
    """The setup command that failed before the agent started."""
    checks: tuple[CheckResult, ...] = ()
    """The checks that ran."""
    skipped_checks: tuple[SkippedCheck, ...] = ()
    """The checks that did not run, because the change touches none of their paths."""
    proof: Proof | None = None
    """None if no proof was looked for."""
    fix_rounds: tuple[FixRound, ...] = ()
    guard_violations: tuple[GuardViolation, ...] = ()
    agent: AgentFacts | None = None
    agent_summary: str = ""
    title: str = ""
    """What the pull request and the commit call the change (PR-11)."""
    learned: tuple[str, ...] = ()
    """Facts about the repository that the agent noted for later attempts (LEARNING-1)."""
    budget: str | None = None
    eats_budget: bool = False
    """Whether this issue has used more than half of that daily budget."""
    keeps_pull: bool = False
    """Whether its end leaves the pull request as it is: the reviews were withdrawn."""
    base_dropped: bool = False
    """Whether a force-push has removed its base commit from the base branch since."""
    restored: bool = False
    """Whether the ledger was lost since, so that only its outcome and error are known."""
    verifier_outcome: VerifierOutcome | None = None
    verifier_feedback: str | None = None
    unreviewed: str = ""
    """Why the reviewer command gave no verdict, so that a person decides (REVIEWER-1)."""
    started_at: datetime
    finished_at: datetime
    duration_ms: int = 0
    times: AttemptTimes | None = None
    """The parts of `duration_ms`; None if Mulligan was killed, or an earlier version wrote it."""
    set_up_files: SetUpFiles | None = None
    """None if no setup command left files, or an earlier version wrote it."""
    manifest_hash: str | None = None
    worker: str = ""

    @property
    def last_usage(self) -> AgentFacts | None:
        """The facts of the agent's last run; None if it did not run."""
        return self.fix_rounds[-1].usage if self.fix_rounds else self.agent


def latest_records(recorded: Iterable[WorkerResultMeta]) -> tuple[WorkerResultMeta, ...]:
    """Return the last record of each attempt: finished work may turn out to be lost (COMMIT-2)."""
    return tuple({meta.number: meta for meta in recorded}.values())
