"""The file system in which commands run, instead of this machine's (IMAGE-1). Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Image:
    """An image whose files are in the directory `root` of this machine.

    `reference` is what the policy names, or the Dockerfile from which it was built, and `digest`
    its content: `sha256:` and 64 digits.
    `environment` has the variables that the image sets, among them a PATH.
    """

    reference: str
    digest: str
    root: Path
    environment: Mapping[str, str] = field(hash=False)

    @property
    def name(self) -> str:
        """Return the reference with the digest."""
        return self.reference if "@" in self.reference else f"{self.reference}@{self.digest}"


@dataclass(frozen=True, slots=True)
class ImageBuild:
    """A Dockerfile of the base branch, from which an image is built (IMAGE-2).

    `file` and the directory `context` are paths in the repository, "." for its root. `target` is
    the stage to build, by default the last one, and `arguments` are build arguments.
    """

    file: str
    context: str
    target: str = ""
    arguments: tuple[tuple[str, str], ...] = ()


CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class BuildFiles:
    """The files of an ImageBuild; `content` is the same for the same files.

    `write` puts the context into the directory CONTEXT of an empty one, and returns the path of
    the Dockerfile, which may lie elsewhere.
    """

    content: str
    write: Callable[[Path], Path]
