"""Read the image of a devcontainer.json (containers.dev/implementors/json_reference). Pure."""

import json
import re
from collections.abc import Callable
from posixpath import dirname, join, normpath

from pydantic import BaseModel, ConfigDict, Field

from mulligan.config.policy import DEVCONTAINER, IMAGE
from mulligan.domain.errors import MisconfiguredError
from mulligan.domain.image import ImageBuild

DEVCONTAINER_FILES = (".devcontainer/devcontainer.json", ".devcontainer.json")
"""Where the file may be; the first one counts."""

STRING = r'"(?:[^"\\]|\\.)*"'
COMMENT = re.compile(rf"({STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
TRAILING_COMMA = re.compile(rf"({STRING})|,(?=\s*[}}\]])", re.DOTALL)

DOCKER_HUB = "docker.io"

IGNORED = (
    *("features", "dockerComposeFile", "onCreateCommand"),
    *("updateContentCommand", "postCreateCommand", "containerEnv", "remoteEnv"),
    *("mounts", "runArgs", "build.options", "build.cacheFrom"),
)
"""Keys that a reader may expect to have an effect on checks."""

VARIABLE = "${"


class _Build(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    dockerfile: str = ""
    context: str = "."
    target: str = ""
    args: dict[str, str] = Field(default_factory=dict[str, str])


class Devcontainer(BaseModel):
    """The keys of the file that matter; all others are ignored.

    `dockerFile` and `context` are older names of two keys of `build`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)
    image: str = ""
    build: _Build = _Build()
    older_file: str = Field("", alias="dockerFile")
    older_context: str = Field("", alias="context")


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


def source_of_devcontainer(name: str, text: bytes) -> str | ImageBuild:
    """Return the whole reference of a file's image, or its Dockerfile; MisconfiguredError if none.

    `name` is the path of the file, which its own paths are relative to.
    """
    try:
        found = Devcontainer.model_validate(_content(text))
    except ValueError as error:
        raise MisconfiguredError(
            f"{name} of the base branch is not valid JSON with comments; fix it."
        ) from error
    if file := found.build.dockerfile or found.older_file:
        return _build(name, file, found)
    if found.image:
        return _reference(name, found.image)
    raise MisconfiguredError(
        f"{name} of the base branch names no image and no Dockerfile; name an image in `image` of"
        " the policy."
    )


def _build(name: str, file: str, found: Devcontainer) -> ImageBuild:
    build = found.build
    arguments = tuple(build.args.items())
    context = found.older_context or build.context
    for text in (file, context, build.target, *(value for _, value in arguments)):
        if VARIABLE in text:
            raise MisconfiguredError(
                f"{name} of the base branch has the variable {text!r} in `build`, which Mulligan"
                " does not know; write the value."
            )
    place = dirname(name)
    return ImageBuild(
        _inside(name, place, file), _inside(name, place, context), build.target, arguments
    )


def _inside(name: str, place: str, path: str) -> str:
    """Return a path that is relative to a directory of the repository, relative to its root."""
    whole = normpath(join(place, path))
    if whole.startswith(("/", "../")) or whole == "..":
        raise MisconfiguredError(
            f"{name} of the base branch names {path!r}, which is not in the repository; name a"
            " path in it."
        )
    return whole


def _reference(name: str, image: str) -> str:
    reference = whole_reference(image)
    if reference == DEVCONTAINER or not IMAGE.fullmatch(reference):
        raise MisconfiguredError(
            f"{name} of the base branch names the image {image!r}, which is no reference of an"
            " image; name one without variables."
        )
    return reference


def ignored_keys(text: bytes) -> tuple[str, ...]:
    """List the keys of a valid file that have no effect here."""
    found = Devcontainer.model_validate(_content(text))
    keys = (*(found.model_extra or ()), *(f"build.{key}" for key in found.build.model_extra or ()))
    return tuple(key for key in IGNORED if key in keys)


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
