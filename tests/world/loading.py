"""Load all of Mulligan before the first fork, so that a command costs what it does."""

import gc
import importlib
import pkgutil
from collections.abc import Iterator

import mulligan
from mulligan.domain.events import EVENTS
from mulligan.domain.outcome import Record

LATE = ("alembic.command", "alembic.config", "git.cmd", "structlog", "typer._adapters")
"""The modules that Mulligan imports on first use."""


def load_everything() -> None:
    """Import every module, build every record's schema, and keep all of it out of collections."""
    for module in pkgutil.walk_packages(mulligan.__path__, "mulligan."):
        if not module.name.endswith("__main__") and ".migrations." not in module.name:
            importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
    for record in below(Record):
        record.model_rebuild()
    EVENTS.rebuild()
    # A collection after a fork would copy every page that it looks at.
    gc.collect()
    gc.freeze()


def below(kind: type[Record]) -> Iterator[type[Record]]:
    """Return the kinds of records, the ones without subclasses last."""
    for each in kind.__subclasses__():
        yield each
        yield from below(each)
