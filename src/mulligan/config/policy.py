"""`.github/mulligan.yml`: what a repository asks of Mulligan, read from the base branch only."""

import re
from datetime import timedelta
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from mulligan.config.settings import Duration, Settings
from mulligan.domain.issue import Stage
from mulligan.domain.result import CheckKind

POLICY_FILE = ".github/mulligan.yml"
"""Where the policy is in a repository."""

LABEL = r"^[^,\n]{1,50}$"
"""What GitHub takes for a label, and finds again."""


def _label(name: str) -> str:
    # GitHub's lists are asked for labels with commas between them.
    if not re.fullmatch(LABEL, name) or name != name.strip():
        message = "write 1 to 50 characters, without a comma and without spaces around them"
        raise ValueError(message)
    return name


LabelName = Annotated[str, AfterValidator(_label), Field(json_schema_extra={"pattern": LABEL})]


def _prompt(template: str) -> str:
    if not template:
        return template
    # Loaded only where there is a template: Jinja2 takes a tenth of the start of `mulligan status`.
    from mulligan.config.prompt_template import check_prompt_template  # noqa: PLC0415

    return check_prompt_template(template)


class Labels(Settings):
    """The labels that show the stage of an issue (SPEC L1)."""

    ready: LabelName = "mulligan"
    """A person's request: put it on an issue to have it worked on."""
    running: LabelName = "mulligan:running"
    """On while an attempt is being made."""
    review: LabelName = "mulligan:review"
    """On when the pull request is open."""
    hitl: LabelName = "mulligan:hitl"
    """On when a person is asked (human in the loop)."""
    priority: tuple[str, ...] = ()
    """Labels of yours that put an issue ahead of the others, the most urgent first."""
    agents: dict[str, str] = Field(default_factory=dict[str, str])
    """Labels of yours, and the agent that each chooses: a name in the operator's `agents`."""

    def name(self, stage: Stage) -> str | None:
        """Give the label of a stage; a resolved issue has none."""
        names = {
            Stage.READY: self.ready,
            Stage.RUNNING: self.running,
            Stage.REVIEW: self.review,
            Stage.HITL: self.hitl,
        }
        return names.get(stage)


class Check(Settings):
    """One verification command of the repository (SPEC 10)."""

    name: str = Field(min_length=1, max_length=100)
    """What the check is called in prompts and comments."""
    run: str = Field(min_length=1)
    """The shell line, run in the worktree."""
    kind: CheckKind = CheckKind.OTHER
    """test, lint, type, build, format or other."""
    required: bool = True
    """Whether its failure fails the attempt."""
    timeout: Duration = timedelta(minutes=10)
    """How long it may run."""
    network: bool = False
    """Whether it may use the network (kept to by the sandbox)."""
    report: str | None = None
    """A structured report that the command writes, relative to the worktree."""
    patterns: tuple[str, ...] = ()
    """Regular expressions that find failures in the output; see Verification."""

    @field_validator("report")
    @classmethod
    def _inside(cls, report: str | None) -> str | None:
        parts = PurePosixPath(report or "report").parts
        if report is not None and (not parts or parts[0] == "/" or ".." in parts):
            message = "write a path that lies in the worktree, relative to it"
            raise ValueError(message)
        return report

    @field_validator("patterns")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                message = f"{pattern!r} is no regular expression ({error}); mend it"
                raise ValueError(message) from error
        return patterns


class Reviewer(Settings):
    """A command that reads the task and the change, and gives a verdict (SPEC 10)."""

    run: str = Field(min_length=1)
    """The shell line; JSON goes in on standard input, and JSON comes out. See Verification."""
    timeout: Duration = timedelta(minutes=10)
    """How long it may run."""
    network: bool = True
    """Whether it may use the network (kept to by the sandbox)."""
    vetoes: int = Field(default=1, ge=0, le=10)
    """How many attempts of an epoch its HARD_FAIL may fail; beyond that it is advice."""


class Protected(StrEnum):
    """Files that steer more than the program; see Guards for what each kind holds."""

    WORKFLOWS = "workflows"
    INSTRUCTIONS = "instructions"
    POLICY = "policy"
    OWNERS = "owners"
    GIT = "git"


class Scope(Settings):
    """Which changes are allowed at all (SPEC A9); patterns are written as in .gitignore."""

    allow: tuple[str, ...] = ()
    """Paths that may change; empty means all."""
    deny: tuple[str, ...] = ()
    """Paths that must not change, whatever `allow` says."""
    protect: tuple[Protected, ...] = tuple(Protected)
    """Kinds of files that must not change, whatever `allow` says; leave out what may."""
    max_changed_files: int = Field(default=300, ge=1)
    """The most files one attempt may change."""
    max_file_bytes: int = Field(default=5 * 1024 * 1024, ge=1)
    """The largest that a file may be which an attempt adds or changes."""
    allow_deleted_tests: bool = False
    """Whether a change may leave fewer tests than there were."""
    allow_skipped_tests: bool = False
    """Whether tests that ran before may be skipped."""
    allow_secrets: tuple[str, ...] = ()
    """Paths that may hold what looks like a key or token, such as made-up ones in fixtures."""


class ContextLimits(Settings):
    """How much of the earlier attempts the next prompt holds (SPEC C7)."""

    max_prior_attempts: int = Field(default=3, ge=0)
    """How many attempts before the last one get a line."""
    max_diff_lines: int = Field(default=500, ge=0)
    """Lines of the last attempt's diff."""
    max_check_output_lines: int = Field(default=50, ge=1)
    """Lines of each failing check's digest."""
    max_digest_chars: int = Field(default=2000, ge=200)
    """Characters of each failing check's digest."""
    max_code_lines: int = Field(default=60, ge=0)
    """Lines of the code around the places that each failing check names."""
    max_verifier_feedback_chars: int = Field(default=2000, ge=0)
    """Characters of the reviewer's words."""
    max_context_tokens: int = Field(default=4000, ge=500)
    """The whole retry context; a token is 4 bytes of UTF-8."""
    include_prior_diffs: bool = True
    """Whether the last attempt's diff goes in."""
    include_check_output: bool = True
    """Whether digests go in beyond name, exit code and first finding."""
    include_verifier_feedback: bool = True
    """Whether the reviewer's words go in."""


class PullRequestSettings(Settings):
    """How the pull request is opened (SPEC P1)."""

    draft: bool = False
    """Open it as a draft."""
    reviewers: tuple[str, ...] = ()
    """Logins asked for a review; empty means the person who asked for the work."""
    team_reviewers: tuple[str, ...] = ()
    """Teams asked for a review."""
    labels: tuple[str, ...] = ()
    """Labels put on the pull request."""
    delete_branch: bool = True
    """Delete its branch once it was merged or closed, unless others have commits there."""


class ReviewSettings(Settings):
    """How reviews of the pull request are answered (SPEC P3)."""

    settle: Duration = timedelta(minutes=2)
    """How long nobody may have submitted a review, so that several are answered together."""
    rounds: int = Field(default=3, ge=0, le=20)
    """How many epochs reviews may open when no attempt is left; then a person is asked."""


class OnConflict(StrEnum):
    """What to do when the base branch has moved and the pull request does not merge any more."""

    IGNORE = "ignore"
    REBUILD = "rebuild"


def _as_mapping(value: object) -> object:
    return {"enabled": value} if isinstance(value, bool) else value


class WatchCi(Settings):
    """What comes of the checks that GitHub runs on the pull request (SPEC P4)."""

    enabled: bool = True
    """Whether they are read; `watch_ci: true` is short for this alone. Off by default."""
    max_attempts: int = Field(default=2, ge=1, le=10)
    """How many attempts of an epoch they may ask for when they fail; then a person is asked."""


class Escalation(Settings):
    """Whom an escalation reaches (SPEC H1)."""

    mention: tuple[str, ...] = ()
    """Logins or `org/team` names mentioned in the comment."""
    assignees: tuple[str, ...] = ()
    """Logins the issue is assigned to."""
    push_work: bool = False
    """Push the last attempt's work to refs/mulligan/attempts/N-K, where no workflow runs."""
    draft_pr: bool = False
    """Open the pull request as a draft, with the last attempt's work; workflows do run on it."""


class CommitSettings(Settings):
    """How Mulligan's commit looks (SPEC A7)."""

    name: str = "mulligan"
    """Author and committer."""
    email: str = "mulligan@bot.invalid"
    """Their address; the default belongs to nobody."""
    signoff: bool = False
    """Add a Signed-off-by line."""


class Policy(Settings):
    """All that a repository decides; an operator's `policy` replaces its top-level keys."""

    labels: Labels = Labels()
    """The labels that show the stage of an issue."""
    agent: str = ""
    """The agent that works here: a name in the operator's `agents`; default: the operator's own."""
    max_issue_attempts: int = Field(default=3, ge=1, le=10)
    """Attempts that count, per epoch; then a person is asked."""
    max_no_output_attempts: int | None = Field(default=None, ge=1, le=10)
    """Attempts in an epoch that may change nothing; default: max_issue_attempts."""
    setup: tuple[str, ...] = ()
    """Shell lines that install dependencies, run before the agent."""
    checks: tuple[Check, ...] = ()
    """What decides whether an attempt holds, in order."""
    baseline: bool = True
    """Whether what fails without the change as well fails no attempt; `off` lets it."""
    flaky_reruns: int = Field(default=1, ge=0, le=5)
    """How often a failing check of kind `test` runs again on the same tree."""
    max_fix_rounds: int = Field(default=0, ge=0, le=5)
    """How often the agent may run again on its own change within one attempt, given what failed."""
    reviewer: Reviewer | None = None
    """A command that has the last word on a change whose checks pass; none by default."""
    scope: Scope = Scope()
    """Which changes are allowed at all."""
    prompt: Annotated[str, AfterValidator(_prompt)] = ""
    """A Jinja2 template of the whole prompt; by default the built-in one. See The prompt."""
    context: ContextLimits = ContextLimits()
    """How much the next attempt is told."""
    pull_request: PullRequestSettings = PullRequestSettings()
    """How the pull request is opened."""
    review: ReviewSettings = ReviewSettings()
    """How reviews of the pull request are answered."""
    on_conflict: OnConflict = OnConflict.IGNORE
    """`rebuild` spends an attempt on a pull request that does not merge any more."""
    update_branch: bool = False
    """Merge the base branch into a pull request where GitHub wants that before it is merged."""
    watch_ci: Annotated[
        WatchCi, BeforeValidator(_as_mapping, json_schema_input_type=WatchCi | bool)
    ] = WatchCi(enabled=False)
    """`true`, or a mapping: the checks that GitHub runs on the pull request count too."""
    escalation: Escalation = Escalation()
    """Whom an escalation reaches."""
    commit: CommitSettings = CommitSettings()
    """How Mulligan's commit looks."""

    @field_validator("checks")
    @classmethod
    def _names_differ(cls, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        names = [check.name for check in checks]
        for name in names:
            if names.count(name) > 1:
                message = f"two checks are called {name!r}; give each its own name"
                raise ValueError(message)
        return checks
