"""Which images a policy may name, and what is read of a devcontainer.json (IMAGE-1)."""

import pytest

from mulligan.config.devcontainer import (
    devcontainer_file,
    ignored_keys,
    source_of_devcontainer,
    whole_reference,
)
from mulligan.config.load import load_policy
from mulligan.domain.errors import ConfigError, MisconfiguredError
from mulligan.domain.image import ImageBuild

pytestmark = pytest.mark.pure
DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    "image",
    [
        "docker.io/library/python:3.12",
        f"docker.io/library/python:3.12@{DIGEST}",
        f"ghcr.io/octocat/tools@{DIGEST}",
        "mcr.microsoft.com/devcontainers/python:3",
        "registry:5000/a/b",
        "localhost/tools:1",
        "localhost:5000/tools",
        "devcontainer",
        "",
    ],
)
def test_a_whole_reference_is_an_image(image: str) -> None:
    assert load_policy(None, {"image": image}, "here").image == image


@pytest.mark.parametrize(
    "image",
    [
        "python:3.12",
        "library/python",
        "docker-archive:/etc/shadow",
        "dir:/etc",
        "oci:/srv/x",
        "docker.io/../x",
        "--help",
        "localhost/x --privileged",
        "localhost/x\n",
        "localhost/$HOME",
        "docker.io/library/python@sha256:short",
        "/srv/image",
        "Docker.io/x",
    ],
)
def test_only_whole_references_are_images(image: str) -> None:
    with pytest.raises(ConfigError, match=r"write the whole reference, such as docker\.io"):
        load_policy(None, {"image": image}, "here")


def read(text: str, name: str = ".devcontainer.json") -> str | ImageBuild:
    return source_of_devcontainer(name, text.encode())


def test_comments_and_trailing_commas_are_no_part_of_a_devcontainer() -> None:
    text = """
    // "image": "a.example/no"
    {
      /* "image": "b.example/no" */
      "name": "a // b /* c */ \\" , }", // more
      "image": "ghcr.io/octocat/tools:1", // the last
    }
    """
    assert read(text) == "ghcr.io/octocat/tools:1"


@pytest.mark.parametrize(
    ("image", "whole"),
    [
        ("python:3.12", "docker.io/library/python:3.12"),
        ("octocat/tools", "docker.io/octocat/tools"),
        ("ghcr.io/a/b", "ghcr.io/a/b"),
        ("localhost/a", "localhost/a"),
        ("localhost:5000/a", "localhost:5000/a"),
    ],
)
def test_a_short_name_is_one_of_docker_hub(image: str, whole: str) -> None:
    assert whole_reference(image) == whole
    assert read(f'{{"image": "{image}"}}') == whole


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not valid JSON"),
        ('{"image": 3}', "not valid JSON"),
        ("{}", "names no image and no Dockerfile"),
        ('{"dockerComposeFile": "compose.yml"}', "names no image and no Dockerfile"),
        ('{"build": 1}', "not valid JSON"),
        ('{"build": {"dockerfile": "${localEnv:FILE}"}}', "has the variable"),
        ('{"build": {"dockerfile": "D", "args": {"A": "${localEnv:A}"}}}', "has the variable"),
        ('{"build": {"dockerfile": "/etc/Dockerfile"}}', "not in the repository"),
        ('{"build": {"dockerfile": "../Dockerfile"}}', "not in the repository"),
        ('{"build": {"dockerfile": "D", "context": ".."}}', "not in the repository"),
        ('{"image": "${localEnv:IMAGE}"}', "no reference of an image"),
        ('{"image": "devcontainer"}', ""),
    ],
)
def test_a_devcontainer_without_a_usable_image_is_a_mistake(text: str, why: str) -> None:
    if not why:
        assert read(text) == "docker.io/library/devcontainer"
        return
    with pytest.raises(MisconfiguredError, match=why):
        read(text)


@pytest.mark.parametrize(
    ("name", "text", "build"),
    [
        (".devcontainer.json", '{"build": {"dockerfile": "D"}}', ImageBuild("D", ".")),
        (
            ".devcontainer/devcontainer.json",
            """{"image": "x", "build": {"dockerfile": "Dockerfile", "context": "..",
                "target": "dev", "args": {"VARIANT": "3"}}}""",
            ImageBuild(".devcontainer/Dockerfile", ".", "dev", (("VARIANT", "3"),)),
        ),
        (
            ".devcontainer/devcontainer.json",
            '{"dockerFile": "../docker/Dockerfile", "context": "../docker"}',
            ImageBuild("docker/Dockerfile", "docker"),
        ),
        (
            ".devcontainer/devcontainer.json",
            '{"build": {"dockerfile": "Dockerfile"}}',
            ImageBuild(".devcontainer/Dockerfile", ".devcontainer"),
        ),
    ],
)
def test_paths_of_a_build_are_relative_to_the_file(name: str, text: str, build: ImageBuild) -> None:
    assert read(text, name) == build


def test_the_first_file_counts_and_ignored_keys_are_named() -> None:
    files = {
        ".devcontainer.json": b'{"image": "b", "features": {}, "mounts": [],'
        b' "build": {"options": [], "dockerfile": "D"}}'
    }
    path, text = devcontainer_file(files.get)
    assert path == ".devcontainer.json"
    assert ignored_keys(text) == ("features", "mounts", "build.options")
    files[".devcontainer/devcontainer.json"] = b"{}"
    assert devcontainer_file(files.get)[1] == b"{}"
    with pytest.raises(MisconfiguredError, match=r"has no \.devcontainer/devcontainer\.json"):
        devcontainer_file(lambda _: None)
