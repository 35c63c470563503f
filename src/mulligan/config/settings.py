"""Parts of both configuration files: strict models, durations, sizes."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticKnownError

from mulligan.domain.spending import Allowance

DURATION = re.compile(r"(\d+)(ms|s|m|h|d)")

UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}

Written = Annotated[str, Field(pattern=rf"^(?:{DURATION.pattern})+$")]

WHOLE_NUMBERS: tuple[object, ...] = (int, int | None)


def parse_duration(value: object) -> timedelta:
    """Parse `30s`, `10m`, `1h`, `1h30m`; ValueError explains the format."""
    if isinstance(value, timedelta):
        return value
    text = value if isinstance(value, str) else ""
    if not re.fullmatch(rf"(?:{DURATION.pattern})+", text):
        raise ValueError("write it like 30s, 10m or 1h")
    return sum((int(count) * UNITS[unit] for count, unit in DURATION.findall(text)), timedelta())


def format_duration(value: timedelta) -> str:
    """Format a duration as the configuration does: `1h30m`, `45s`, `0s`."""
    left, parts = value, list[str]()
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration, json_schema_input_type=Written),
    PlainSerializer(format_duration, return_type=str),
]
"""A time span, written `30s`, `10m`, `1h`."""


def _expand(value: object) -> object:
    try:
        return Path(value).expanduser() if isinstance(value, str | Path) else value
    except RuntimeError as error:
        raise ValueError(
            "there is no home directory of that name on this machine; write the whole path"
        ) from error


LocalPath = Annotated[Path, BeforeValidator(_expand)]
"""A path of this machine; `~` is the home directory."""


HOST = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
"""A name or an address, and a port."""


def matching(pattern: re.Pattern[str], advice: str) -> AfterValidator:
    """Return a validator of text that a pattern matches completely; `advice` is for other text."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(advice)
        return text

    return AfterValidator(check)


HostName = Annotated[str, matching(HOST, "write a host as NAME or NAME:PORT, without https://")]


def short_form(key: str, *kinds: type) -> Callable[[object], object]:
    """Return a validator that reads a value of these kinds as that of a key of the settings."""
    return lambda value: {key: value} if isinstance(value, kinds) else value


class Settings(BaseModel):
    """Frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _yes_is_no_number(cls, value: object, about: ValidationInfo) -> object:
        """Refuse `true` as a number, which pydantic would accept as 1."""
        kind = cls.model_fields[about.field_name or ""].annotation
        if isinstance(value, bool) and kind in WHOLE_NUMBERS:
            raise PydanticKnownError("int_type")
        return value


class AllowanceSettings(Settings):
    """A spending limit; omit a value for no limit."""

    usd: float | None = Field(default=None, gt=0)
    """The maximum in US dollars.

    Example: 2.50
    """
    tokens: int | None = Field(default=None, gt=0)
    """The maximum number of input and output tokens together."""

    @property
    def allowance(self) -> Allowance:
        """Return it as the domain's Allowance."""
        return Allowance(self.usd, self.tokens)


class Budget(Settings):
    """The limits on what agents may spend."""

    attempt: AllowanceSettings = AllowanceSettings()
    """The limit for one attempt. Beyond it, Mulligan stops the agent as after a timeout."""
    issue: AllowanceSettings = AllowanceSettings()
    """The limit for one issue in total. Beyond it, the issue needs human review."""
    repository_day: AllowanceSettings = AllowanceSettings()
    """The limit for the issues of one repository per day (UTC). Beyond it, they wait for the
    next day."""
    day: AllowanceSettings = AllowanceSettings()
    """The limit for everything per day (UTC). Beyond it, all issues wait for the next day."""


class Price(Settings):
    """The price of a model, in USD per million tokens."""

    input: float = Field(ge=0)
    """The price of a million input tokens, in US dollars.

    Example: 3.00
    """
    cached: float | None = Field(default=None, ge=0)
    """The price of a million cached input tokens, in US dollars. Default: the price of input.

    Example: 0.30
    """
    output: float = Field(ge=0)
    """The price of a million output tokens, in US dollars.

    Example: 15.00
    """
