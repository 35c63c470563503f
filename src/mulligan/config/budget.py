"""What may be spent, and what models cost."""

from pydantic import Field

from mulligan.config.settings import Settings
from mulligan.domain.spending import Allowance


class AllowanceSettings(Settings):
    """What may be spent; what is not given is not limited."""

    usd: float | None = Field(default=None, gt=0)
    """US dollars."""
    tokens: int | None = Field(default=None, gt=0)
    """Input and output tokens together."""

    @property
    def allowance(self) -> Allowance:
        """Give it as the domain knows it."""
        return Allowance(self.usd, self.tokens)


class Budget(Settings):
    """What agents may spend."""

    attempt: AllowanceSettings = AllowanceSettings()
    """In one attempt; beyond it the agent is stopped, as at its time-out."""
    issue: AllowanceSettings = AllowanceSettings()
    """On one issue in all; beyond it a person is asked."""
    repository_day: AllowanceSettings = AllowanceSettings()
    """On the issues of one repository, by the day in UTC; beyond it they wait for the next day."""
    day: AllowanceSettings = AllowanceSettings()
    """On everything, by the day in UTC; beyond it all issues wait for the next day."""


class Price(Settings):
    """What a model costs, in USD per million tokens."""

    input: float = Field(ge=0)
    """Of input."""
    cached: float | None = Field(default=None, ge=0)
    """Of input from the cache; default: as other input."""
    output: float = Field(ge=0)
    """Of output."""
