"""Ask an agent's program which version it is: in its sandbox, without a network, once."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import structlog

from mulligan.errors import WorldError
from mulligan.process import Command
from mulligan.sandbox.confinement import Network
from mulligan.sandbox.sandbox import Reach, Sandbox

PATIENCE = timedelta(seconds=15)
MOST_BYTES = 64 * 1024
VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]{0,40}")

log = structlog.get_logger()


def ask_version(
    argv: Sequence[str], environment: Mapping[str, str], sandbox: Sandbox
) -> str | None:
    """Give the first thing in its answer that reads as a version; None where there is none."""
    try:
        with tempfile.TemporaryDirectory(prefix="mulligan-version-") as home:
            place = Path(home)
            command = Command(
                argv=argv,
                directory=place,
                environment={**environment, "HOME": home},
                timeout=PATIENCE,
                max_log_bytes=MOST_BYTES,
            )
            said = sandbox.run(command, Reach(write=(place,), network=Network.NONE)).text
    except (WorldError, OSError) as error:
        log.info("version_not_known", program=argv[0], reason=str(error))
        return None
    found = VERSION.search(said)
    return found[0] if found else None
