"""Write the prompt of a fix round: the task again, and the checks that fail on the change. Pure."""

from collections.abc import Sequence

from mulligan.config.policy import ContextLimits
from mulligan.domain.result import CheckResult
from mulligan.implement.prompt.context_sections import code_of, window_of
from mulligan.implement.prompt.feedback import check_block

BANNER = "Fix round {round} of {most}: read *Failing checks* before you start."
OPENING = """\
The worktree holds your change so far, as the commit `HEAD` of Mulligan's; keep what is good of \
it. It was verified, and these checks fail on it. Mend them; what you leave is verified again."""


def failing_checks(failed: Sequence[CheckResult], limits: ContextLimits) -> str:
    """Tell of the checks that fail on the change."""
    blocks = [
        check_block(check, window_of(check, limits), code_of(check, limits)) for check in failed
    ]
    return "\n\n".join(["# Failing checks", OPENING, *blocks])


def render_fix_prompt(prompt: str, position: tuple[int, int], told: str) -> str:
    """Write the whole prompt; `position` is (this round, most rounds), `prompt` the first one."""
    number, most = position
    banner = BANNER.format(round=number, most=most)
    return f"{banner}\n\n{prompt.rstrip()}\n\n{told}\n"
