"""One file for each test framework whose output is read. Pure."""

from mulligan.checks.digest.families.go import GO
from mulligan.checks.digest.families.pytest import PYTEST
from mulligan.checks.digest.families.unittest import UNITTEST

FAMILIES = (PYTEST, UNITTEST, GO)
"""In the order in which their findings are shown."""
