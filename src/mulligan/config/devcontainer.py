"""Read the image of a devcontainer.json (containers.dev/implementors/json_reference). Pure."""

import json
import re
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from mulligan.config.policy import DEVCONTAINER, IMAGE
from mulligan.domain.errors import MisconfiguredError

DEVCONTAINER_FILES = (".devcontainer/devcontainer.json", ".devcontainer.json")
"""Where the file may be; the first one counts."""

STRING = r'"(?:[^"\\]|\\.)*"'
COMMENT = re.compile(rf"({STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
TRAILING_COMMA = re.compile(rf"({STRING})|,(?=\s*[}}\]])", re.DOTALL)

DOCKER_HUB = "docker.io"

IGNORED = (
    *("features", "build", "dockerFile", "dockerComposeFile", "onCreateCommand"),
    *("updateContentCommand", "postCreateCommand", "containerEnv", "remoteEnv"),
    *("mounts", "runArgs"),
)
"""Keys that a reader may expect to have an effect on checks."""


class Devcontainer(BaseModel):
    """The keys of the file that matter; all others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    image: str = ""


def devcontainer_file(read: Callable[[str], bytes | None]) -> tuple[str, bytes]:
    """Return the path and the text of the file that counts; MisconfiguredError if there is none."""
    for path in DEVCONTAINER_FILES:
        text = read(path)
        if text is not None:
            return path, text
    raise MisconfiguredError(
        f"The policy has `image: {DEVCONTAINER}`, and the base branch has no"
        f" {DEVCONTAINER_FILES[0]}; add the file, or name the image itself."
    )


def image_of_devcontainer(name: str, text: bytes) -> str:
    """Return the whole reference of the image that a file names; MisconfiguredError if none."""
    try:
        image = Devcontainer.model_validate(_content(text)).image
    except ValueError as error:
        raise MisconfiguredError(
            f"{name} of the base branch is not valid JSON with comments; fix it."
        ) from error
    if not image:
        raise MisconfiguredError(
            f"{name} of the base branch names no `image`, and Mulligan builds none; build it, and"
            " name the image in `image` of the policy."
        )
    reference = whole_reference(image)
    if reference == DEVCONTAINER or not IMAGE.fullmatch(reference):
        raise MisconfiguredError(
            f"{name} of the base branch names the image {image!r}, which is no reference of an"
            " image; name one without variables."
        )
    return reference


def ignored_keys(text: bytes) -> tuple[str, ...]:
    """List the keys of a valid file that have no effect here."""
    content = _content(text)
    return tuple(key for key in IGNORED if isinstance(content, dict) and key in content)


def whole_reference(image: str) -> str:
    """Add the registry to the short name of an image, as Docker does."""
    host, slash, _ = image.partition("/")
    if slash and (host == "localhost" or set(host) & {".", ":"}):
        return image
    return f"{DOCKER_HUB}/{image}" if slash else f"{DOCKER_HUB}/library/{image}"


def _content(text: bytes) -> object:
    """Parse a file; ValueError if it is invalid."""
    try:
        return json.loads(_without_comments(text.decode("utf-8-sig")))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _without_comments(text: str) -> str:
    for pattern in (COMMENT, TRAILING_COMMA):
        text = pattern.sub(lambda found: found[1] or "", text)
    return text
