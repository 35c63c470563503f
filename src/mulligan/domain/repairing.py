"""Commands that repair files, and the form of them that only checks. Pure."""

import re

REPAIRS = re.compile(r"\s--?(?:fix|write|apply|unsafe-fixes|w)(?=\s|$)|\s--fix-only\b")

CHECKING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:^|[\s/])black(?=\s|$)(?!.*--check)"), "--check"),
    (re.compile(r"(?:^|[\s/])isort(?=\s|$)(?!.*--check)"), "--check-only"),
    (re.compile(r"(?:^|[\s/])ruff format(?=\s|$)(?!.*--(?:check|diff))"), "--check"),
    (re.compile(r"(?:^|[\s/])prettier(?=\s|$)(?!.*(?:--check|-[cl]\b|--list-diff))"), "--check"),
    (re.compile(r"(?:^|[\s/])cargo fmt(?=\s|$)(?!.*--check)"), "--check"),
)  # fmt: skip


def repairs_by_default(pyproject: str, ruff: str) -> bool:
    """Return whether `ruff check` repairs: `fix = true` in pyproject.toml, or in a ruff.toml."""
    return bool(
        re.search(r"^\[tool\.ruff\]\n(?:(?!\[).*\n)*fix\s*=\s*true\b", pyproject, re.MULTILINE)
        or re.search(r"\A(?:(?!\[).*\n)*fix\s*=\s*true\b", ruff)
    )


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
