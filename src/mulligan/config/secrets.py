"""List the secrets of a configuration, for redaction. Pure."""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, SecretStr

from mulligan.config.operator import Operator
from mulligan.text.secret_shapes import is_secret, passwords_in


def secrets_of(operator: Operator, environment: Mapping[str, str]) -> tuple[str, ...]:
    """List every secret value: those in the file, and in variables that commands may get."""
    names = (*operator.agent.env, *operator.sandbox.env)
    given = [(name, environment.get(name, "")) for name in names]
    passed_on = [value for name, value in given if is_secret(name, value)]
    passed_on += [each for _, value in given for each in passwords_in(value)]
    return tuple(dict.fromkeys((*_written(operator), *_passwords(operator), *passed_on)))


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
