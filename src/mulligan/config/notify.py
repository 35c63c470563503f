"""`notify` of `mulligan.yml`: who hears of what, besides GitHub."""

from enum import StrEnum

from pydantic import SecretStr, field_validator

from mulligan.config.settings import Settings


class Occasion(StrEnum):
    """What can be told."""

    ESCALATED = "escalated"
    PAUSED = "paused"
    BUDGET = "budget"


class Notify(Settings):
    """A web address that hears when a person is needed, or work rests."""

    url: SecretStr | None = None
    """Where to send it, given as $NAME: a Slack webhook, or anything that takes JSON."""
    events: tuple[Occasion, ...] = (Occasion.ESCALATED, Occasion.PAUSED, Occasion.BUDGET)
    """What is told: that a person is asked, that one paused an issue, that a budget is used up."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: SecretStr | None) -> SecretStr | None:
        if url and not url.get_secret_value().startswith(("https://", "http://")):
            message = "write an address that begins with https://, or the variable that holds it"
            raise ValueError(message)
        return url
