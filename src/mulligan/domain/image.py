"""The file system in which commands run, instead of this machine's (IMAGE-1). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Image:
    """An image whose files are in the directory `root` of this machine.

    `reference` is what the policy names, and `digest` its content: `sha256:` and 64 digits.
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
