"""An error becomes a finding: what is wrong, and apart from that what to do."""

import pytest

from mulligan.domain.errors import ConfigError, DeniedError, MulliganError
from mulligan.domain.host import Level, failed

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("error", "said", "fix"),
    [
        (
            DeniedError("GitHub refused the token (Bad credentials); give Mulligan a valid one."),
            "GitHub refused the token (Bad credentials).",
            "Give Mulligan a valid one.",
        ),
        (
            DeniedError("git fetch failed: no such path; not readable; mend clone_url."),
            "git fetch failed: no such path; not readable.",
            "Mend clone_url.",
        ),
        (
            ConfigError("agent is missing. Add it."),
            "agent is missing.",
            "Add it.",
        ),
        (
            ConfigError("mulligan.yml cannot be read (no; never)."),
            "mulligan.yml cannot be read (no; never).",
            "Mend.",
        ),
    ],
)
def test_an_errors_advice_is_the_fix(error: MulliganError, said: str, fix: str) -> None:
    found = failed("area", error, "Mend.")
    assert (found.area, found.level, found.message, found.fix) == ("area", Level.FAULT, said, fix)
