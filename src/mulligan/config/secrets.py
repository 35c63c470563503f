"""List the secrets of a configuration, for redaction. Pure."""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

from mulligan.config.operator import Operator

SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?(?:_|$)|PWD$|CREDENTIAL|AUTH(?!OR)|COOKIE|PRIVATE|_PAT$|DSN",
    re.IGNORECASE,
)
"""Matches the names of variables that hold secrets."""

RANDOM = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_.+/=-]{24,}")
"""Matches generated values, such as tokens; a path has more than one slash."""


def secrets_of(operator: Operator, environment: Mapping[str, str]) -> tuple[str, ...]:
    """List every secret value: those in the file, and in variables that commands may get."""
    names = (*operator.agent.env, *operator.sandbox.env)
    given = [(name, environment.get(name, "")) for name in names]
    passed_on = [value for name, value in given if is_secret(name, value)]
    passed_on += [each for _, value in given for each in passwords_in(value)]
    return tuple(dict.fromkeys((*_written(operator), *_passwords(operator), *passed_on)))


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, by its name or the shape of its value."""
    return bool(SECRET_NAME.search(name)) or (
        value.count("/") < 2 and RANDOM.fullmatch(value) is not None  # noqa: PLR2004
    )


def _written(value: object) -> Iterator[str]:
    """Yield every value that the models declare as a secret."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case BaseModel():
            for _, each in value:
                yield from _written(each)
        case tuple():
            for each in value:  # pyright: ignore[reportUnknownVariableType] - of any type
                yield from _written(each)  # pyright: ignore[reportUnknownArgumentType] - as above
        case _:
            return


def _passwords(operator: Operator) -> Iterator[str]:
    """Yield the passwords in URLs."""
    for url in (operator.state.url, *(each.clone_url or "" for each in operator.repositories)):
        yield from passwords_in(url)


def passwords_in(url: str) -> frozenset[str]:
    """Return the password in a URL, as it is written and decoded; nothing for another text."""
    try:
        parts = urlsplit(url)
        found = {parts.password or "", *map(_password_in, parts.query.split("&"))}
    except ValueError:
        return frozenset()
    return frozenset((found | set(map(unquote, found))) - {""})


def _password_in(setting: str) -> str:
    """Return the value of an address parameter, as in libpq, if it is a password."""
    name, _, value = setting.partition("=")
    return value if name in {"password", "sslpassword"} else ""
