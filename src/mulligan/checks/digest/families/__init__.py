"""The families of tools that are known. A new one is one small file and its line here. Pure."""

from mulligan.checks.digest.families.go import GO
from mulligan.checks.digest.families.pytest import PYTEST
from mulligan.checks.digest.families.unittest import UNITTEST

FAMILIES = (PYTEST, UNITTEST, GO)
"""In the order in which their findings are told."""
