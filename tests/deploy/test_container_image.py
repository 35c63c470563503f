"""The container image is made of what is pinned, holds no secret, and is not run by root."""

import re
import subprocess
from fnmatch import fnmatchcase
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from world.deployment import DEPLOY, ROOT, flags_exist, judge

IMAGE = DEPLOY / "docker" / "Dockerfile"
WITH_AGENT = DEPLOY / "compose" / "image" / "Dockerfile"


def instructions(path: Path) -> list[tuple[str, str]]:
    """Give each instruction and what it says, without comments and line ends."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    parts = (line.partition(" ") for line in whole.splitlines() if line)
    return [(name, rest) for name, _, rest in parts]


def last(name: str, path: Path = IMAGE) -> str:
    return [rest for found, rest in instructions(path) if found == name][-1]


@pytest.mark.parametrize("path", [IMAGE, WITH_AGENT], ids=["image", "with agent"])
def test_hadolint_finds_nothing_wrong(path: Path) -> None:
    judge("hadolint", "--failure-threshold", "style", path)


@pytest.mark.parametrize("path", [IMAGE, WITH_AGENT], ids=["image", "with agent"])
def test_a_user_of_its_own_runs_it(path: Path) -> None:
    assert last("USER", path) == "10001:10001"
    assert "useradd --uid 10001" in IMAGE.read_text()


def test_what_it_starts_is_a_command() -> None:
    assert last("ENTRYPOINT") == '["tini", "--", "mulligan"]'
    command = re.findall(r'"([^"]+)"', last("CMD"))
    flags_exist(" ".join(command))


def test_only_what_it_needs_is_sent_to_the_build() -> None:
    ignored = (IMAGE.with_name("Dockerfile.dockerignore")).read_text().splitlines()
    assert "*" in ignored
    sent = {line[1:] for line in ignored if line.startswith("!")}
    copied = [
        source
        for name, rest in instructions(IMAGE)
        if name == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert {line.partition("/")[0] for line in sent} == set(copied)
    for secret in (".git/config", "deploy/compose/github-token", "deploy/compose/agent.env"):
        assert not [pattern for pattern in sent if fnmatchcase(secret, f"{pattern}*")]


def test_every_package_in_it_is_known_by_its_hash() -> None:
    text = (ROOT / "requirements" / "fleet.txt").read_text()
    packages = re.split(r"(?<!\\)\n", text.rstrip("\n"))
    assert len(packages) > 30
    assert [line for line in packages if "==" not in line or "--hash=sha256:" not in line] == []


def test_the_build_backend_is_known_by_its_hash_with_all_that_it_needs() -> None:
    text = (ROOT / "requirements" / "build.txt").read_text()
    pinned = set(re.findall(r"^([\w-]+)==", text, re.MULTILINE))
    assert pinned == needed("hatchling") | needed("editables")
    assert len(re.findall(r"--hash=sha256:", text)) >= len(pinned)


def needed(name: str) -> set[str]:
    """Give a package and all that it needs on this machine, as installed."""
    found = {name}
    for line in requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found |= needed(requirement.name)
    return found


def test_a_release_names_every_base_image_by_its_digest(tmp_path: Path) -> None:
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    (step,) = [
        step["run"]
        for step in release["jobs"]["build"]["steps"]
        if "base-images.txt" in step.get("run", "")
    ]
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho sha256:$(echo $4 | sha256sum | cut -c 1-64)\n")
    docker.chmod(0o755)
    (tmp_path / "dist").mkdir()
    (tmp_path / "deploy").symlink_to(DEPLOY)
    subprocess.run(
        ["bash", "-ec", step],
        cwd=tmp_path,
        check=True,
        env={"PATH": f"{docker.parent}:/usr/bin:/bin"},
    )
    images = [
        line.partition("@")[0]
        for line in (tmp_path / "dist/base-images.txt").read_text().splitlines()
    ]
    assert [image.partition(":")[0] for image in images] == [
        "python",
        "prom/prometheus",
        "postgres",
    ]
    assert f"BASE={images[0]}" in IMAGE.read_text()
    assert "dist/base-images.txt" in str(release["jobs"]["publish"]["steps"])
