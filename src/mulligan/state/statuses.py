"""Statuses as they are stored, JSON that leaves out what is as it always begins, and back. Pure."""

from collections.abc import Iterable
from dataclasses import MISSING, fields
from functools import cache

from pydantic import TypeAdapter, ValidationError

from mulligan.domain.status import IssueStatus
from mulligan.errors import ConfigError

BEGINNINGS = {
    each.name: each.default for each in fields(IssueStatus) if each.default is not MISSING
}
"""What each field is before anything happens, a third of what 10,000 statuses would be.

Who changes one adds a migration, after which all statuses are folded anew.
"""


def written(status: IssueStatus) -> str:
    """Write a status as JSON."""
    as_ever = {name for name, first in BEGINNINGS.items() if getattr(status, name) == first}
    return _one().dump_json(status, exclude=as_ever).decode()


def statuses_of(stored: Iterable[str]) -> list[IssueStatus]:
    """Read statuses as they are stored, all in one go: 10,000 take about 0.1 s."""
    try:
        return _many().validate_json(f"[{','.join(stored)}]")
    except ValidationError as error:
        message = "The ledger holds a status that this Mulligan cannot read; use a newer version."
        raise ConfigError(message) from error


@cache
def _one() -> TypeAdapter[IssueStatus]:
    return TypeAdapter(IssueStatus)


@cache
def _many() -> TypeAdapter[list[IssueStatus]]:
    return TypeAdapter(list[IssueStatus])
