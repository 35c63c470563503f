"""The issue that a command is about, named as `gh` takes it."""

import re
from pathlib import Path

from mulligan.config.operator import Operator
from mulligan.domain.errors import GoneError, UsageError
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.bootstrap.clone import git_config
from mulligan.interfaces.cli.setup import repository_as_configured
from mulligan.interfaces.onboarding.proposal import origin_of

ISSUE_URL = re.compile(
    r"https?://[^/]+/(?P<name>[\w.-]+/[\w.-]+)/(?:issues|pull)/"
    r"(?P<number>[1-9][0-9]{0,9})(?:[/?#].*)?"
)
ISSUE_NUMBER = re.compile(r"#?(?P<number>[1-9][0-9]{0,9})")


def issue_of(text: str, operator: Operator) -> IssueRef:
    """Read an issue as `gh` takes it: OWNER/NAME#12, its address, or 12 in a clone.

    Outside a clone, a number belongs to the one repository of the configuration. The repository
    is spelled as there, if it is in it. UsageError explains any other text.
    """
    if number := ISSUE_NUMBER.fullmatch(text):
        return IssueRef(_repository_here(text, operator), int(number["number"]))
    url = ISSUE_URL.fullmatch(text)
    ref = IssueRef.parse(f"{url['name']}#{url['number']}" if url else text)
    named = {each.name.lower(): each.name for each in operator.repositories}
    return IssueRef(named.get(ref.repository.lower(), ref.repository), ref.number)


def not_found(ref: IssueRef) -> GoneError:
    """Return the error for an issue that GitHub does not have, such as a mistyped number."""
    return GoneError(
        f"Issue {ref} not found on GitHub. Check its number; it may have been deleted or"
        " transferred."
    )


def _repository_here(text: str, operator: Operator) -> str:
    """Return the repository of the clone that this directory is in, else the configured one."""
    names = [each.name for each in operator.repositories]
    here = Path.cwd()
    clone = next((place for place in (here, *here.parents) if (place / ".git").is_dir()), None)
    found = origin_of(git_config(clone)) if clone else None
    if found:
        return repository_as_configured(found.name, operator)
    if len(names) == 1:
        return names[0]
    number = text.removeprefix("#")
    raise UsageError(f"{number} may be of {len(names)} repositories; write OWNER/NAME#{number}.")
