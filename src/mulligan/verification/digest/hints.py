"""What kind of mishap a message speaks of, where mending it has a usual way. Pure."""

import re

HINTS = (
    (
        "missing module",
        re.compile(
            r"No module named|ModuleNotFoundError|Cannot find (?:module|package)|Module not found"
            r"|cannot find package|package \S+ is not in (?:std|GOROOT)|no required module provides"
            r"|unresolved import|can't find crate|Could not resolve \"|Failed to resolve import"
            r"|package \S+ does not exist|cannot load such file|Can't locate \S+\.pm"
            r"|ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|there is no package called"
        ),
    ),
    (
        "missing file",
        re.compile(
            r"No such file or directory|FileNotFoundError|ENOENT|file not found|cannot open file"
            r"|file or directory not found|no input files|NoSuchFileException",
            re.IGNORECASE,
        ),
    ),
    (
        "snapshot",
        re.compile(r"\bsnapshots?\b.*(?:match|differ|obsolete|fail|written|mismatch)"
                   r"|toMatch\w*Snapshot|assert_snapshot|insta::", re.IGNORECASE),
    ),
    (
        "formatting",
        re.compile(
            r"would (?:be )?reformat|not (?:properly |correctly )?formatted|code style issues"
            r"|incorrectly (?:sorted|formatted)|run (?:the )?(?:formatter|prettier|black|gofmt)"
            r"|^Diff in |--check.*format|formatting (?:issue|error|difference)|prettier/prettier",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
)  # fmt: skip
"""By the first that matches."""


def hint_for(text: str) -> str | None:
    """Name the kind of mishap: missing module, missing file, snapshot or formatting."""
    return next((name for name, speaks in HINTS if speaks.search(text)), None)
