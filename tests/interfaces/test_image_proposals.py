"""`init` names the container image that a repository has, and writes none (IMAGE-1)."""

import pytest
import yaml

from mulligan.interfaces.onboarding.images import find_image, image_lines
from mulligan.interfaces.onboarding.plans import plan
from mulligan.interfaces.onboarding.proposal import policy_text
from mulligan.interfaces.onboarding.tree import Machine, RepositoryFiles

pytestmark = pytest.mark.pure

DEVCONTAINER = ".devcontainer/devcontainer.json"
WORKFLOW = ".github/workflows/ci.yml"
JOB = """
on: pull_request
jobs:
  test:
    runs-on: ubuntu-latest
    strategy: {matrix: {version: ["3.12"]}}
    container: %s
    steps: [{run: make test}]
"""


def named(files: dict[str, str]) -> list[str]:
    """Give the lines of the policy that name an image, without their mark."""
    tree = RepositoryFiles(frozenset(files), files)
    text = policy_text(plan(tree, Machine()).proposal)
    assert "image" not in (yaml.safe_load(text) or {})
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    return [line for line in lines if line.startswith(("image:", "sandbox:"))]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        (
            {DEVCONTAINER: '{"image": "python:3.12"}'},
            ['sandbox: {images: ["docker.io/library/python:3.12"]}', "image: devcontainer"],
        ),
        (
            {".devcontainer.json": '{"build": {"dockerfile": "Dockerfile"}}'},
            ["sandbox: {builds: [OWNER/NAME]}", "image: devcontainer"],
        ),
        (
            {WORKFLOW: JOB % "python:3.12"},
            [
                'sandbox: {images: ["docker.io/library/python:3.12"]}',
                "image: docker.io/library/python:3.12",
            ],
        ),
        (
            {WORKFLOW: JOB % "{image: 'ghcr.io/octocat/tools:${{ matrix.version }}'}"},
            [
                'sandbox: {images: ["ghcr.io/octocat/tools:3.12"]}',
                "image: ghcr.io/octocat/tools:3.12",
            ],
        ),
        ({WORKFLOW: JOB % "'${{ vars.IMAGE }}'"}, []),
        ({DEVCONTAINER: "{"}, []),
        (
            {DEVCONTAINER: '{"dockerComposeFile": "a.yml"}', WORKFLOW: JOB % "node:22"},
            [
                'sandbox: {images: ["docker.io/library/node:22"]}',
                "image: docker.io/library/node:22",
            ],
        ),
    ],
)
def test_the_image_of_a_repository_is_named_in_a_comment(
    files: dict[str, str], expected: list[str]
) -> None:
    assert named(files) == expected


def test_where_the_image_was_found_is_said() -> None:
    files = {DEVCONTAINER: '{"image": "python:3.12"}'}
    lines = image_lines(find_image(RepositoryFiles(frozenset(files), files), ()))
    assert lines[0] == f"# The commands can run in the image that {DEVCONTAINER} names."
    assert image_lines(None) == []
