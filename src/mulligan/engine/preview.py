"""Write the prompt that an issue would be worked on with now; nothing is recorded or changed."""

from dataclasses import replace

from mulligan.brief import tell
from mulligan.domain.attempt import NO_TEXT
from mulligan.domain.case import Case
from mulligan.domain.eligibility import SETTLED, Facts, opens_epoch
from mulligan.domain.events import Authorised
from mulligan.domain.fold import advance
from mulligan.domain.issue import IssueRef
from mulligan.errors import ConfigError, UsageError
from mulligan.retry.compose import Told
from mulligan.retry.sight import is_blank
from mulligan.survey import gather, look
from mulligan.tools import Tools


def preview(ref: IssueRef, tools: Tools) -> Told:
    """Write the prompt of the next attempt, whether or not anybody asks for one now.

    Where only a new request could lead to it, the prompt is that of such a request. GoneError
    where there is no such issue; ConfigError where the repository's policy does not hold.
    """
    tools.worktrees.refresh(ref.repository)
    if fault := tools.policies.fault(ref.repository):
        message = f"The prompt cannot be written, since the policy is invalid: {fault}"
        raise ConfigError(message)
    facts = gather(ref, tools)
    if facts.issue.is_pull_request:
        message = f"{ref} is a pull request; name an issue."
        raise UsageError(message)
    if is_blank(facts.issue):
        message = f"No agent would be started for {ref}. {NO_TEXT.reason}"
        raise UsageError(message)
    case = _as_requested(look(facts.issue, tools), facts)
    return tell(case, tools.policies.current(ref.repository), tools)


def _as_requested(case: Case, facts: Facts) -> Case:
    """Open the epoch in which the next attempt would be made, where that is a new one."""
    if facts.act and opens_epoch(facts):
        act = Authorised.of(facts.act)
    elif case.status.stage in SETTLED:
        act = Authorised(act="operator", actor="", act_at=facts.now)
    else:
        return case
    return replace(case, status=advance(case.status, act, facts.now), counted=0)
