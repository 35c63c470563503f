"""Keep the names of the tests that ran as a file, since a check may run 100,000."""

import gzip

from pydantic import ValidationError

from mulligan.domain.errors import UnavailableError
from mulligan.domain.result import RanTests
from mulligan.implement.ports import Artifacts, AttemptContext


def keep_tests(tests: RanTests | None, name: str, at: AttemptContext) -> str:
    """Write the tests of the check with this `name`; return the artifact, empty without tests."""
    if tests is None:
        return ""
    ref, number = at.case.issue.ref, at.case.status.number
    packed = gzip.compress(tests.model_dump_json().encode())
    return at.context.artifacts.write(ref, number, f"{name}-tests.json.gz", packed)


def read_tests(artifact: str, artifacts: Artifacts) -> RanTests | None:
    """Read the tests back; None if the file is lost or damaged."""
    try:
        return RanTests.model_validate_json(gzip.decompress(artifacts.read(artifact)))
    except (UnavailableError, OSError, EOFError, ValidationError):
        return None
