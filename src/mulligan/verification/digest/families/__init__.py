"""The families of tools that are known. A new one is one small file and its line here. Pure."""

from mulligan.verification.digest.families.pytest import PYTEST
from mulligan.verification.digest.families.unittest import UNITTEST

FAMILIES = (PYTEST, UNITTEST)
"""In the order in which their findings are told."""
