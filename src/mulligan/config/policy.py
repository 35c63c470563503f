"""`.github/mulligan.yml`: a repository's settings, read from its base branch only."""

import re
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from mulligan.config.settings import Duration, HostName, Settings, matching, short_form
from mulligan.domain.issue import Issue, Stage
from mulligan.domain.protected import PROTECTED_BY_DEFAULT, Protected
from mulligan.domain.result import CheckKind

POLICY_FILE = ".github/mulligan.yml"
"""The path of the policy in a repository."""

POLICY_FILES = (POLICY_FILE, ".github/mulligan.yaml")
"""The paths that a policy may have; a repository has one of them."""

LABEL = r"^[^,\n]{1,50}$"
"""Names that GitHub accepts for a label, and that its lists can filter by."""

DEVCONTAINER = "devcontainer"
"""Value of `image`: the image of the repository's devcontainer.json."""

IMAGE = re.compile(
    # A host, which has a dot or a port, or is localhost; then the name, a tag and a digest.
    rf"{DEVCONTAINER}|(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9.-]+:[0-9]+)"
    r"(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
"""The whole reference of an image: no other forms, such as paths of this machine."""

MAX_PATTERNS = 100
"""The maximum number of patterns of a check."""


LabelName = Annotated[
    str,
    # GitHub's lists take several labels separated by commas.
    matching(
        re.compile(r"(?!\s)[^,\n]{1,50}(?<!\s)"),
        "write 1 to 50 characters, without a comma and without spaces around them",
    ),
    Field(json_schema_extra={"pattern": LABEL}),
]


def _prompt(template: str) -> str:
    if not template:
        return template
    # Imported only if there is a template: Jinja2 takes 30 ms of CPU.
    from mulligan.config.prompt_template import check_prompt_template  # noqa: PLC0415

    return check_prompt_template(template)


class Labels(Settings):
    """The labels that show the stage of an issue (LABEL-1)."""

    ready: LabelName = "mulligan"
    """The request: put it on an issue to start work."""
    running: LabelName = "mulligan:running"
    """Shown while an attempt runs.

    Example: "bot: running"
    """
    review: LabelName = "mulligan:review"
    """Shown while the pull request is open."""
    hitl: LabelName = "mulligan:hitl"
    """Shown when the issue needs human review (HITL, human in the loop)."""
    priority: tuple[str, ...] = ()
    """Your own labels that put an issue ahead of others, the most urgent first.

    Example: [urgent, bug]
    """
    agents: dict[str, str] = Field(default_factory=dict[str, str])
    """Your own labels, each with the agent that it selects: a name in the operator's `agents`.

    Example: {"use strong": strong}
    """

    reproduce: tuple[str, ...] = ()
    """Your own labels whose issues need a test that fails without the change, as with
    `reproduce: required`.

    Example: [bug]
    """

    @property
    def others(self) -> frozenset[str]:
        """Return all labels except the ready one."""
        stages = (self.running, self.review, self.hitl)
        return frozenset({*stages, *self.priority, *self.agents, *self.reproduce})

    def name(self, stage: Stage) -> str | None:
        """Return the label of a stage; None for a resolved issue."""
        names = {
            Stage.READY: self.ready,
            Stage.RUNNING: self.running,
            Stage.REVIEW: self.review,
            Stage.HITL: self.hitl,
        }
        return names.get(stage)


REPORT_PATTERNS = {"report_patterns": True}
"""As the context of a validation: an unusable pattern of a check is a mistake, too."""


def _expression(pattern: str, about: ValidationInfo) -> str:
    if about.context == REPORT_PATTERNS and (advice := _unusable(pattern)):
        raise ValueError(advice)
    return pattern


def _unusable(pattern: str) -> str:
    # Imported only where there is a pattern: RE2 takes 4 ms of CPU.
    from mulligan.domain.patterns import PatternError, expression  # noqa: PLC0415

    try:
        expression(pattern)
    except PatternError as error:
        return str(error)
    return ""


def _glob(pattern: str) -> str:
    _globs((pattern,))
    return pattern


def _globs(patterns: tuple[str, ...]) -> tuple[str, ...]:
    # Imported only where there is a pattern: pathspec takes 30 ms of CPU.
    from mulligan.domain.globs import globs  # noqa: PLC0415

    if patterns:
        globs(patterns)
    return patterns


Globs = Annotated[tuple[Annotated[str, AfterValidator(_glob)], ...], AfterValidator(_globs)]
"""Path patterns as in .gitignore. An invalid one makes the policy invalid (CONFIG-4)."""


def _paths(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if patterns and all(pattern.startswith("!") for pattern in patterns):
        raise ValueError("write a pattern without `!` first, such as `*`; these match no path")
    return patterns


class Check(Settings):
    """One verification command of the repository (CHECK-1)."""

    name: str = Field(min_length=1, max_length=100)
    """The name of the check in prompts and comments.

    Example: tests
    """
    run: str = Field(min_length=1)
    """The shell command, run in the worktree.

    Example: python -m pytest -q
    """
    kind: CheckKind = CheckKind.OTHER
    """test, lint, type, build, format or other."""
    required: bool = True
    """Whether a failure of the check fails the attempt."""
    timeout: Duration = timedelta(minutes=10)
    """The time limit of the check."""
    network: bool = False
    """Whether the check may use the network. The sandbox enforces it."""
    paths: Annotated[Globs, AfterValidator(_paths)] = ()
    """Run the check only if the change touches one of these paths, as in .gitignore. Default:
    always. See [Verification](verification.md#checks-of-some-paths).

    Example: [packages/web/, packages/common/]
    """
    report: str | None = None
    """A structured report that the command writes, relative to the worktree. A pattern with `*` or
    `?` names one report for each package. Without `report`, Mulligan asks pytest for one. See
    [Verification](verification.md#reports).

    Example: packages/*/report.xml
    """
    ran: bool = True
    """Whether the tests that ran on the start tree must run with the change, and a failed test in a
    report fails the check. See [Verification](verification.md#which-tests-ran)."""
    patterns: tuple[Annotated[str, AfterValidator(_expression)], ...] = ()
    r"""Regular expressions that find failures in the output, in the syntax of RE2. See
    [Verification](verification.md#patterns).

    Example: ['^FAIL: (?P<test_id>\S+)']
    """

    @field_validator("report")
    @classmethod
    def _inside(cls, report: str | None) -> str | None:
        parts = PurePosixPath(report or "report").parts
        if report is not None and (not parts or parts[0] == "/" or ".." in parts):
            raise ValueError("write a relative path inside the worktree")
        _globs((f"/{report}",) if report and "*" in report else ())
        return report

    @field_validator("patterns")
    @classmethod
    def _few(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if len(patterns) > MAX_PATTERNS:
            raise ValueError(f"write at most {MAX_PATTERNS} patterns for a check")
        return patterns

    def unusable_patterns(self) -> Iterator[tuple[str, str]]:
        """Yield each pattern that finds nothing, and what to write instead (CONFIG-4)."""
        for pattern in self.patterns:
            if advice := _unusable(pattern):
                yield pattern, advice


MODEL_ONLY: Literal["model"] = "model"


class Reviewer(Settings):
    """A command that reads the task and the change, and gives a verdict (REVIEWER-1)."""

    run: str = Field(min_length=1)
    """The shell command. It reads and writes JSON. See
    [Verification](verification.md#the-reviewer).

    Example: python3 tools/review.py
    """
    timeout: Duration = timedelta(minutes=10)
    """The time limit of the reviewer."""
    network: Literal["model"] | bool = MODEL_ONLY
    """The hosts that the reviewer reaches in the sandbox. `model`: the model of the issue's agent,
    with the key added outside, and `hosts`. `true`: every host, without a key. `false`: nothing."""
    hosts: tuple[str, ...] = ()
    """Further hosts with `network: model`, as NAME or NAME:PORT (default port: 443).

    Example: [api.example.com]
    """
    vetoes: int = Field(default=1, ge=0, le=10)
    """How many attempts of a round HARD_FAIL may reject. After that, it is advice."""


class Scope(Settings):
    """Which changes are allowed at all (GUARD-1); patterns are written as in .gitignore."""

    allow: Globs = ()
    """Paths that may change, as in .gitignore. Empty: all paths.

    Example: [src/, tests/, "*.md"]
    """
    deny: Globs = ()
    """Paths that must not change, even if `allow` permits them.

    Example: [".github/**"]
    """
    protect: tuple[Protected, ...] = PROTECTED_BY_DEFAULT
    """Kinds of files that must not change, even if `allow` permits them, and the files to which
    links of such names lead. [Guards](verification.md#guards) lists the files. `autorun` is off by
    default: files that run, or that bots read, when somebody opens or merges the work.

    Example: [workflows, instructions, policy, owners, git, autorun]
    """
    max_changed_files: int = Field(default=300, ge=1)
    """The maximum number of files that one attempt may change."""
    max_file_bytes: int = Field(default=5 * 1024 * 1024, ge=1)
    """The maximum size, in bytes, of a file that an attempt adds or changes."""
    allow_deleted_tests: bool = False
    """Whether a change may leave fewer tests than before."""
    allow_skipped_tests: bool = False
    """Whether a change may skip tests that ran before."""
    allow_secrets: Globs = ()
    """Paths that may contain text that looks like a key or token, such as invented ones in
    fixtures.

    Example: [tests/fixtures/]
    """


class ContextLimits(Settings):
    """How much the next prompt contains about earlier attempts (CONTEXT-5)."""

    max_prior_attempts: int = Field(default=3, ge=0)
    """The number of earlier attempts that get a line, besides the last one."""
    max_diff_lines: int = Field(default=500, ge=0)
    """The maximum lines of the last attempt's diff."""
    max_check_output_lines: int = Field(default=400, ge=1)
    """The maximum lines of the digest of each failing check, half of them from its end."""
    max_digest_chars: int = Field(default=12000, ge=200)
    """The maximum characters of the digest of each failing check. It is never more than 12000."""
    max_unexplained_output_chars: int | None = Field(default=None, ge=200)
    """Not used any more, and `mulligan doctor` says so; see `max_digest_chars`."""
    max_code_lines: int = Field(default=60, ge=0)
    """The maximum lines of code around the places that each failing check names."""
    max_verifier_feedback_chars: int = Field(default=2000, ge=0)
    """The maximum characters of the reviewer's feedback."""
    max_context_tokens: int = Field(default=8000, ge=500)
    """The maximum size of the retry context. A token is 4 bytes of UTF-8."""
    include_prior_diffs: bool = True
    """Whether to include the last attempt's diff."""
    include_check_output: bool = True
    """Whether to include digests. Otherwise only the name, the exit code and the first finding."""
    include_verifier_feedback: bool = True
    """Whether to include the reviewer's feedback."""


class TitleSource(StrEnum):
    """What names a change (PR-11)."""

    CHANGE = "change"
    ISSUE = "issue"


class PullRequestSettings(Settings):
    """How the pull request is opened (PR-1)."""

    draft: bool = False
    """Open the pull request as a draft."""
    reviewers: tuple[str, ...] = ()
    """Logins to ask for a review. Empty: the person who requested the work.

    Example: [octocat]
    """
    team_reviewers: tuple[str, ...] = ()
    """Teams to ask for a review.

    Example: [maintainers]
    """
    labels: tuple[str, ...] = ()
    """Labels for the pull request.

    Example: [bot]
    """
    check_run: bool = False
    """Whether the pull request gets a check run `Mulligan`: the verdict, with annotations on the
    lines of failures that did not stop it. GitHub allows this to an App with `Checks: write` and to
    a workflow's token with `checks: write`, but not to a personal access token."""
    title: TitleSource = TitleSource.CHANGE
    """With `change`, the agent may name its change, in the form of the repository's titles. With
    `issue`, pull request and commit have the issue's title as it is.

    Example: issue
    """
    template: bool = True
    """Whether the text begins with the repository's pull-request template (PR-10)."""
    delete_branch: bool = True
    """Whether to delete the branch after a merge or close. Mulligan keeps a branch with other
    people's commits."""


class ReviewSettings(Settings):
    """How reviews of the pull request are answered (PR-2)."""

    settle: Duration = timedelta(minutes=2)
    """The time without a new review after which Mulligan answers all reviews together."""
    rounds: int = Field(default=3, ge=0, le=20)
    """How many rounds of attempts reviews may start when no attempt is left. After that, the
    issue needs human review."""


class OnConflict(StrEnum):
    """What to do if the base branch has moved and the pull request has a conflict."""

    IGNORE = "ignore"
    REBUILD = "rebuild"


class WatchCi(Settings):
    """The response to the checks that GitHub runs on the pull request (PR-3)."""

    enabled: bool = True
    """Whether Mulligan reads these checks. Short form: `watch_ci: true`. Off by default."""
    max_attempts: int = Field(default=2, ge=1, le=10)
    """How many attempts of a round failing checks may start. After that, the issue needs human
    review."""
    pending_timeout: Duration = timedelta(minutes=30)
    """How long a failed check waits for checks that are still pending. Mulligan then acts on the
    failure alone."""
    ignore: tuple[str, ...] = ()
    """Checks that Mulligan ignores, by the name that GitHub shows for the check run or the context
    of the commit status. `*` stands for any characters, `?` for one.

    Example: [tide, "codecov/*"]
    """


class Baseline(StrEnum):
    """When checks also run without the change, and whether (BASELINE-1)."""

    ON = "on"
    ON_FAILURE = "on-failure"
    OFF = "off"


def _baseline(value: object) -> object:
    """Read `true` and `false`, which YAML 1.1 also writes `on` and `off`."""
    if isinstance(value, bool):
        return Baseline.ON if value else Baseline.OFF
    return value


class Learnings(StrEnum):
    """Which issues the facts reach that agents note about the repository (LEARNING-2)."""

    ISSUE = "issue"
    REPOSITORY = "repository"


class Escalation(Settings):
    """How Mulligan asks for human review (ESCALATION-1)."""

    mention: tuple[str, ...] = ()
    """Logins or `org/team` names to mention in the comment.

    Example: [octocat, acme/maintainers]
    """
    assignees: tuple[str, ...] = ()
    """Logins to assign to the issue.

    Example: [octocat]
    """
    push_work: bool = False
    """Whether to push the last attempt's work to refs/mulligan/attempts/N-K. No workflow runs
    for this ref."""
    draft_pr: bool = False
    """Whether to open the pull request as a draft with the last attempt's work. Workflows run
    on it."""


class CommitSettings(Settings):
    """The author of Mulligan's commits (COMMIT-1)."""

    name: str = "mulligan"
    """The name of the author and committer."""
    email: str = "mulligan@bot.invalid"
    """Their email address. The default belongs to nobody."""
    signoff: bool = False
    """Whether to add a Signed-off-by line."""


class SetUp(Settings):
    """The setup commands; may be given as a list of commands alone (SETUP-1)."""

    run: tuple[str, ...] = ()
    """Shell commands that install dependencies before the agent runs.

    Example: [python -m venv .venv, .venv/bin/pip install -e .]
    """
    inputs: Globs = ()
    """The files that the commands depend on, as in .gitignore. While they are unchanged, Mulligan
    uses what the commands left. Default: known manifests and lock files, and files that a command
    names; if there are none, every file.

    Example: [requirements/, vendor/native/]
    """
    hosts: tuple[HostName, ...] = ()
    """Hosts that the commands may reach when they run again on a change to their inputs, as NAME
    or NAME:PORT (default port: 443). Before the agent, they may reach every host.

    Example: [packages.example]
    """


RECURSIVE: Literal["recursive"] = "recursive"


class CheckoutSettings(Settings):
    """Files that are not in the repository's own commits, and that attempts get (WORKTREE-5)."""

    submodules: Literal["recursive"] | bool = False
    """Whether the agent, the setup commands and the checks get the files of submodules. `true`: of
    the repository's own submodules. `recursive`: also of the submodules in them. Only from the
    repository's host. See [Submodules and Git LFS](verification.md#submodules-and-git-lfs).

    Example: true
    """
    lfs: bool = False
    """Whether they get the content of Git LFS files, instead of pointers.

    Example: true
    """


class Reproduce(StrEnum):
    """Whether a change needs a test that fails without it (PROOF-2)."""

    OPTIONAL = "optional"
    REQUIRED = "required"


class Policy(Settings):
    """The settings of a repository; an operator's `policy` replaces its top-level keys."""

    labels: Labels = Labels()
    """The labels that show the stage of an issue."""
    agent: str = ""
    """The agent for this repository: a name in the operator's `agents`. Default: the operator's
    `agent`.

    Example: strong
    """
    max_issue_attempts: int = Field(default=3, ge=1, le=10)
    """The number of attempts in a round. After that, the issue needs human review."""
    max_no_output_attempts: int | None = Field(default=None, ge=1, le=10)
    """The number of attempts in a round that may change nothing. Default: the value of
    max_issue_attempts."""
    checkout: CheckoutSettings = CheckoutSettings()
    """Files that are not in the repository's own commits. By default, attempts do not get them."""
    image: Annotated[
        str,
        matching(
            re.compile(f"(?:{IMAGE.pattern})?"),
            "write the whole reference, such as docker.io/library/python:3.12, or devcontainer",
        ),
    ] = ""
    """The container image in whose file system setup commands and checks run, instead of the
    machine's; the operator must allow it in `sandbox.images`. `devcontainer`: the image of
    `.devcontainer/devcontainer.json` or `.devcontainer.json`, or what is built from its Dockerfile
    (`sandbox.builds`). Default: the machine's own file system. See
    [Verification](verification.md#an-image).

    Example: docker.io/library/python:3.12
    """
    setup: Annotated[
        SetUp,
        BeforeValidator(
            short_form("run", list, tuple), json_schema_input_type=SetUp | tuple[str, ...]
        ),
    ] = SetUp()
    """Commands that install dependencies before the agent runs. Short form: a list of commands."""
    checks: tuple[Check, ...] = ()
    """The commands that verify a change, in order."""
    baseline: Annotated[
        Baseline, BeforeValidator(_baseline, json_schema_input_type=Baseline | bool)
    ] = Baseline.ON
    """Whether failures that also occur without the change are ignored. `on`: required checks of
    kind `test` run without the change while the agent works. `on-failure`: a check runs without
    the change only after it failed, which takes longer but uses less. `off`: every failure fails
    the attempt. In the GitHub Action, the default is `on-failure`. See
    [Verification](verification.md#when-a-check-fails)."""
    flaky_reruns: int = Field(default=1, ge=0, le=5)
    """How often a failing check of kind `test` runs again on the same tree."""
    max_fix_rounds: int = Field(default=0, ge=0, le=5)
    """How often the agent may run again on its own change in one attempt, with the failing
    checks."""
    proof: bool = True
    """Whether the tests of a change run once more without its other files, to see whether one fails
    there. See [Verification](verification.md#proof-that-a-fix-fixes)."""
    reproduce: Reproduce = Reproduce.OPTIONAL
    """Whether a change needs a test that fails without it. `required`: without one, the attempt
    fails. `optional`: the pull request says so."""
    test_files: Globs = ()
    """The files that belong to tests, with their helpers and data, as in .gitignore. Default: the
    [conventions](verification.md#proof-that-a-fix-fixes) of many tools.

    Example: [checks/, "*_check.py"]
    """
    pictures: bool = True
    """Whether the agent gets the pictures and text files that people attached to the issue. See
    [Texts](text.md#pictures-and-files)."""
    reviewer: Reviewer | None = None
    """A command that judges a change whose checks pass. None by default."""
    scope: Scope = Scope()
    """The changes that are allowed."""
    prompt: Annotated[str, AfterValidator(_prompt)] = ""
    """A Jinja2 template of the whole prompt. Default: the built-in template. See [The
    prompt](prompt.md#a-prompt-of-your-own).

    Example: "{{ task }} {{ guidance }} {{ retry_context }} {{ instructions }}"
    """
    context: ContextLimits = ContextLimits()
    """How much the next prompt contains about earlier attempts."""
    learnings: Learnings = Learnings.ISSUE
    """Which prompts contain the facts that agents note about the repository. `issue`: later
    attempts at the same issue. `repository`: also other issues, once the pull request was merged
    or an operator accepted them. See [Notes](agents.md#notes-about-the-repository)."""
    pull_request: PullRequestSettings = PullRequestSettings()
    """How Mulligan opens the pull request."""
    review: ReviewSettings = ReviewSettings()
    """How Mulligan answers reviews of the pull request."""
    on_conflict: OnConflict = OnConflict.IGNORE
    """`rebuild` makes an attempt if the pull request no longer merges. `ignore` leaves the
    conflict to you."""
    update_branch: bool = False
    """Whether to merge the base branch into a pull request that GitHub reports as behind."""
    watch_ci: Annotated[
        WatchCi, BeforeValidator(short_form("enabled", bool), json_schema_input_type=WatchCi | bool)
    ] = WatchCi(enabled=False)
    """Whether failing checks of GitHub on the pull request start attempts. Short form:
    `watch_ci: true`."""
    escalation: Escalation = Escalation()
    """How Mulligan asks for human review."""
    commit: CommitSettings = CommitSettings()
    """The author of Mulligan's commits."""

    @property
    def has_baseline(self) -> bool:
        """Return whether failures that also occur without the change are ignored."""
        return self.baseline is not Baseline.OFF

    @model_validator(mode="after")
    def _tests_reproduce(self) -> Self:
        wants = self.labels.reproduce or self.reproduce is Reproduce.REQUIRED
        tests = any(check.kind is CheckKind.TEST and check.required for check in self.checks)
        # An operator's policy may leave the checks to the repository's.
        if wants and (not self.proof or (self.checks and not tests)):
            raise ValueError(
                "`reproduce` needs a required check with `kind: test`, and `proof: on`"
            )
        return self

    def needs_proof(self, issue: Issue) -> bool:
        """Return whether a change for an issue needs a test that fails without it (PROOF-2)."""
        is_labelled = any(map(issue.carries, self.labels.reproduce))
        return self.proof and (is_labelled or self.reproduce is Reproduce.REQUIRED)

    @field_validator("checks")
    @classmethod
    def _names_differ(cls, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        names = [check.name for check in checks]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two checks are called {name!r}; give each its own name")
        return checks
