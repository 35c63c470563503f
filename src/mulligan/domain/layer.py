"""A layer of directories for one command; the sandbox's supervisor imports this alone. Pure."""

from typing import NamedTuple


class Layer(NamedTuple):
    """Directories as one at `target`: the first of `lower` that has a file wins.

    Writes go to `upper`, on the same file system as `work`. Both are the command's own. Nothing in
    `lower` changes. The paths are text, since the supervisor's messages are JSON.
    """

    lower: tuple[str, ...]
    upper: str
    work: str
    target: str
