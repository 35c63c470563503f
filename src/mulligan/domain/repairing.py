"""Commands that repair files, and the form of them that only checks. Pure."""

import re
import tomllib
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

Settings = TypeVar("Settings", bound=BaseModel)

REPAIRS = re.compile(r"\s--?(?:fix|write|apply|unsafe-fixes|w)(?=\s|$)|\s--fix-only\b")

CHECKING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:^|[\s/])black(?=\s|$)(?!.*--check)"), "--check"),
    (re.compile(r"(?:^|[\s/])isort(?=\s|$)(?!.*--check)"), "--check-only"),
    (re.compile(r"(?:^|[\s/])ruff format(?=\s|$)(?!.*--(?:check|diff))"), "--check"),
    (re.compile(r"(?:^|[\s/])prettier(?=\s|$)(?!.*(?:--check|-[cl]\b|--list-diff))"), "--check"),
    (re.compile(r"(?:^|[\s/])cargo fmt(?=\s|$)(?!.*--check)"), "--check"),
)  # fmt: skip


class _Ruff(BaseModel):
    """The settings of ruff: a ruff.toml."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    fix: bool = False


class _Tools(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    ruff: _Ruff = _Ruff()


class _Project(BaseModel):
    """What a pyproject.toml has for ruff."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    tool: _Tools = _Tools()


def repairs_by_default(pyproject: str, ruff: str) -> bool:
    """Return whether `ruff check` repairs: `fix = true` in pyproject.toml, or in a ruff.toml."""
    return _read(_Project, pyproject).tool.ruff.fix or _read(_Ruff, ruff).fix


def _read(model: type[Settings], text: str) -> Settings:
    """Read a TOML file; the defaults if it is invalid, since ruff itself will say so."""
    try:
        return model.model_validate(tomllib.loads(text))
    except ValueError:
        return model()


def checking_form(command: str, *, ruff_repairs: bool = False) -> str:
    """Return a command so that it reports and changes no file: without `--fix`, with `--check`."""
    if re.search(r"[|<>`]|\$\(", command):
        return command
    return " && ".join(_checking(part, ruff_repairs=ruff_repairs) for part in command.split(" && "))


def _checking(part: str, *, ruff_repairs: bool) -> str:
    repaired = REPAIRS.sub("", part)
    if ruff_repairs and re.search(r"\bruff check(?=\s|$)(?!.*--no-fix)", repaired):
        repaired = re.sub(r"\bruff check\b", "ruff check --no-fix", repaired, count=1)
    for pattern, flag in CHECKING:
        if found := pattern.search(repaired):
            end = found.end()
            return f"{repaired[:end]} {flag}{repaired[end:]}"
    return repaired
