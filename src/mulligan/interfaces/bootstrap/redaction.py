"""Build the redactor that removes the configuration's secrets from every text."""

from collections.abc import Mapping
from contextlib import suppress

from mulligan.agents.invocation import adapter_of, secrets_given
from mulligan.config.operator import Operator
from mulligan.config.secrets import secrets_of
from mulligan.domain.errors import ConfigError
from mulligan.text.redact import Redactor


def redactor_of(operator: Operator, environment: Mapping[str, str]) -> Redactor:
    """Build the redactor; an unreadable token file is reported where the token is needed."""
    values, place = secrets_of(operator, environment), operator.github.token_file
    with suppress(ConfigError):
        adapter = adapter_of(operator.agent, operator.adapters)
        values = (*values, *secrets_given(adapter, environment))
    if place:
        with suppress(OSError, UnicodeError):
            values = (*values, place.read_text(encoding="utf-8").strip())
    return Redactor(values)
