"""The programs that pull and read images: podman, or buildah. Mulligan has no client of its own."""

import hashlib
import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.image import CONTEXT, ImageBuild

LOCAL = "localhost/"
"""How references begin that no registry has: what is built on this machine."""

PODMAN, BUILDAH = "podman", "buildah"
PROGRAMS = (PODMAN, BUILDAH)

EXPORT_WITH_PODMAN = """
podman create --quiet --replace --name "$2" "$1" none >&2 || exit
podman export "$2" > "/proc/self/fd/$0"; code=$?
podman rm --force "$2" >&2; exit $code
"""
"""`$1` is the image, `$2` the name of the container, and `$0` the descriptor for the archive. Some
shells take only one digit after `>&`."""

EXPORT_WITH_BUILDAH = """
buildah rm "$2" >/dev/null 2>&1
buildah from --pull-never --name "$2" "$1" >&2 || exit
mounted=$(buildah mount "$2") && tar --create --one-file-system --directory "$mounted" . \
    > "/proc/self/fd/$0"
code=$?; buildah rm "$2" >&2; exit $code
"""

PASSED_VARIABLES = re.compile(
    r"PATH|HOME|TMPDIR|LANG|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|(?i:(?:https?|all|no)_proxy)"
    r"|SSL_CERT_(?:FILE|DIR)|REGISTRY_AUTH_FILE|(?:CONTAINERS|STORAGE|BUILDAH|PODMAN)_\w+"
)
"""Variables of Mulligan's environment that they need: storage, credentials, proxy."""

NOT_FOUND = re.compile(
    r"manifest unknown|name unknown|not known|no such image|access to the resource is denied"
    r"|unauthorized|authentication required|invalid reference|repository .* not found"
    r"|status(?: ?code:?)? 40[0-4]|: not found",
    re.IGNORECASE,
)
"""How they say that a person must act: no such image, or no permission for it."""


def _or_none(value: object) -> object:
    return value or []


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    variables: Annotated[tuple[str, ...], BeforeValidator(_or_none)] = Field(
        default=(), alias="Env"
    )


_NO_CONFIG = _Config.model_validate({})


class _Podman(BaseModel):
    """What `podman image inspect` prints of an image."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    digest: str = Field(alias="Digest")
    identity: str = Field("", alias="Id")
    architecture: str = Field(alias="Architecture")
    system: str = Field(alias="Os")
    config: _Config = Field(_NO_CONFIG, alias="Config")


class _Inner(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    architecture: str
    os: str
    config: _Config = _NO_CONFIG


class _Buildah(BaseModel):
    """What `buildah inspect` prints of an image."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    digest: str = Field(alias="FromImageDigest")
    image: _Inner = Field(alias="OCIv1")
    identity: str = Field("", alias="FromImageID")


DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image that a program has: its digest, its `identity` there, platform and variables."""

    digest: str
    identity: str
    architecture: str
    system: str
    environment: Mapping[str, str]


def find_program(environment: Mapping[str, str]) -> str:
    """Return the program to use; MisconfiguredError if none is installed."""
    path = environment.get("PATH", os.defpath)
    found = next((name for name in PROGRAMS if shutil.which(name, path=path)), None)
    if found is None:
        raise MisconfiguredError(
            "The policy names an image, but podman or buildah is not installed on Mulligan's"
            " machine; install one of them, or remove `image` from the policy."
        )
    return found


def variables_for(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the program gets of Mulligan's."""
    return {
        "PATH": os.defpath,
        **{name: value for name, value in environment.items() if PASSED_VARIABLES.fullmatch(name)},
    }


def inspect_command(program: str, reference: str) -> tuple[str, ...]:
    """Return the command that prints what an image is, as JSON."""
    if program == PODMAN:
        return (PODMAN, "image", "inspect", reference)
    return (BUILDAH, "inspect", "--type", "image", reference)


def pull_command(program: str, reference: str) -> tuple[str, ...]:
    """Return the command that pulls an image."""
    return (program, "pull", "--quiet", reference)


def tag_of(root: Path, repository: str) -> str:
    """Return the tag of the image that is built for a repository, below a store's root."""
    about = hashlib.sha256(os.fsencode(root / repository)).hexdigest()[:12]
    name = re.sub(r"[^a-z0-9]+", "-", repository.lower()).strip("-")
    return f"{LOCAL}mulligan/{name}-{about}:devcontainer"


def build_command(
    program: str, tag: str, build: ImageBuild, file: Path, place: Path
) -> tuple[str, ...]:
    """Return the command that builds an image from a `file` and the context in a place.

    A newer base image is pulled. An unchanged line is not run again. The network is that of setup
    commands: the one that rootless programs make needs more of the system.
    """
    arguments = chain.from_iterable(
        ("--build-arg", f"{name}={value}") for name, value in build.arguments
    )
    target = ("--target", build.target) if build.target else ()
    how = ("--layers", "--pull=newer", "--network", "host")
    what = ("--tag", tag, "--file", str(file), *target, *arguments)
    return (program, "build", *how, *what, str(place / CONTEXT))


def shown_command(program: str, build: ImageBuild) -> str:
    """Return the command by which a person can try a build in a clone."""
    target = ("--target", build.target) if build.target else ()
    return shlex.join((program, "build", "--file", build.file, *target, build.context))


def remove_command(program: str, identity: str) -> tuple[str, ...]:
    """Return the command that removes an image without a tag, and what only that needs."""
    return (program, "rmi", identity)


def export_command(program: str, reference: str, container: str, fd: int) -> tuple[str, ...]:
    """Return the command that writes the files of an image to a descriptor, as a tar archive."""
    if program == PODMAN:
        return ("/bin/sh", "-c", EXPORT_WITH_PODMAN, str(fd), reference, container)
    shell = ("/bin/sh", "-c", EXPORT_WITH_BUILDAH, str(fd), reference, container)
    # An ordinary user mounts in a user namespace only.
    return shell if os.geteuid() == 0 else (BUILDAH, "unshare", *shell)


def read_image(program: str, output: bytes) -> FoundImage | None:
    """Read what the program printed; None if it is no image."""
    text = output.decode(errors="replace")
    start = re.search(r"^[\[{]", text, re.MULTILINE)
    try:
        found = json.JSONDecoder().raw_decode(text, start.start())[0] if start else None
        if program == PODMAN:
            first = _Podman.model_validate(found[0] if isinstance(found, list) and found else None)
            parts = first.digest, first.identity, first.architecture, first.system, first.config
        else:
            image = _Buildah.model_validate(found)
            inner = image.image
            parts = image.digest, image.identity, inner.architecture, inner.os, inner.config
    except ValueError:
        return None
    digest, identity, architecture, system, config = parts
    if not DIGEST.fullmatch(digest):
        return None
    pairs = (each.partition("=") for each in config.variables)
    variables = {name: value for name, _, value in pairs if name}
    return FoundImage(digest, identity, architecture, system, variables)


def pull_error(reference: str, output: str) -> MisconfiguredError | UnavailableError:
    """Return why an image could not be pulled: it does not exist, or the registry is away."""
    last = output.strip().rpartition("\n")[2].removeprefix("Error: ")
    if NOT_FOUND.search(last):
        return MisconfiguredError(
            f"The image {reference} cannot be pulled: {last}; check the reference, or log in with"
            " `podman login` as Mulligan's user."
        )
    return UnavailableError(f"The image {reference} cannot be pulled now: {last}.")


def directory_of(root: Path, digest: str) -> Path:
    """Return where the files of an image are kept."""
    return root / digest.replace(":", "-")
