"""From label to pull request with setup commands and checks in a repository's own image."""

import os
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
import yaml
from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from world.confined import sandbox
from world.fake_podman import FakePodman, archive_at, fake_podman
from world.images import PATH, assemble
from world.place import BIN, NAME, MulliganInstallation, mulligan_installation
from world.repositories import git

IMAGE = "localhost/tools:1"
DIGEST = "sha256:" + "a" * 64
CHECK = """
read -r id < /etc/os-release && test "$id" = ID=assembled && test "$GREETING" = hello || exit 1
read -r made < made/by-set-up && test "$made" = ID=assembled || exit 2
read -r at_home < ~/at-home && test "$at_home" = kept || exit 3
test ! -e /usr/bin/env && test ! -e /etc/machine-id || exit 4
cat fixed
"""
SETUP = "mkdir -p made && cat /etc/os-release > made/by-set-up && echo kept > ~/at-home"
POLICY: dict[str, JsonValue] = {
    "image": IMAGE,
    "setup": [SETUP],
    "checks": [{"name": "look", "run": CHECK, "kind": "test"}],
}
FILES = {
    "notes.txt": "one\n",
    ".gitignore": "made/\n",
    ".github/mulligan.yml": yaml.safe_dump(POLICY),
}


@pytest.fixture
def podman(tmp_path: Path) -> FakePodman:
    made = fake_podman(tmp_path / "bin", f"PATH={PATH}", "GREETING=hello")
    made.has(archive_at(assemble(tmp_path / "assembled").root))
    return made


@pytest.fixture
def here(tmp_path: Path, podman: FakePodman) -> Generator[MulliganInstallation]:
    sandbox()
    with mulligan_installation(tmp_path, FILES) as made:
        override(made, {})
        made.environment["PATH"] = f"{podman.place}:{BIN}:{os.environ['PATH']}"
        made.agent("pathlib.Path('fixed').write_text('yes')")
        yield made


def override(here: MulliganInstallation, policy: dict[str, JsonValue]) -> None:
    """Give the operator's policy."""
    url = str(here.bare)
    here.configure(repositories=[{"name": NAME, "clone_url": url, "policy": policy}])


def allow(here: MulliganInstallation, *patterns: str) -> None:
    listed: list[JsonValue] = [*patterns]
    here.configure(sandbox={"mode": "required", "network": "none", "images": listed})


def test_setup_and_checks_run_in_the_image_which_the_pull_request_names(
    here: MulliganInstallation, podman: FakePodman
) -> None:
    allow(here, "localhost/*")
    refs = [here.issue(), here.issue("Another")]
    assert here.run("once").returncode == 0
    for ref in refs:
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED, meta.failure_reason
        assert meta.image == f"{IMAGE}@{DIGEST}"
        assert "checks run in a container image" in here.prompt(ref, 1)
    for pull in here.world.pulls_of(NAME):
        assert f"checks: `{IMAGE}@{DIGEST}`" in (pull.body or "")
    assert f"image: {IMAGE}@{DIGEST}" in here.run("inspect", str(refs[0])).stdout
    assert podman.calls("export") == 1


def test_an_image_that_is_not_allowed_stops_before_the_agent(
    here: MulliganInstallation, podman: FakePodman
) -> None:
    ref = here.issue()
    here.configure(sandbox={"mode": "required", "network": "none"})
    here.run("once")
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.MISCONFIGURED
    assert "`sandbox.images`" in meta.failure_reason
    assert meta.agent is None
    assert podman.calls("") == 0
    assert "not allowed here" in here.run("doctor").stdout


def test_a_registry_that_is_away_costs_no_attempt(
    here: MulliganInstallation, podman: FakePodman
) -> None:
    policy: dict[str, JsonValue] = {**POLICY, "image": "registry.example/tools:1"}
    override(here, policy)
    podman.only_in_registry()
    podman.fails_to_pull("Error: pinging container registry: connection refused\n")
    ref = here.issue()
    here.run("once")
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.INFRASTRUCTURE
    assert "connection refused" in meta.failure_reason
    podman.fails_to_pull("")
    here.run("retry", str(ref))
    here.run("once")
    assert here.attempts(ref)[-1].outcome is Outcome.SUCCEEDED


def test_a_new_digest_runs_the_setup_commands_again(
    here: MulliganInstallation, podman: FakePodman, tmp_path: Path
) -> None:
    allow(here, "localhost/*")
    here.issue()
    here.run("once")
    second = here.issue("Second")
    podman.has((podman.place / "image.tar").read_bytes(), "b")
    here.run("once")
    (meta,) = here.attempts(second)
    assert meta.image.endswith("b" * 64)
    assert meta.times is not None
    assert not meta.times.set_up_reused
    assert len(list((tmp_path / "work" / ".images").glob("sha256-*"))) == 2


def test_check_and_rehearse_use_the_image(here: MulliganInstallation, tmp_path: Path) -> None:
    allow(here, "localhost/*")
    git(tmp_path, "clone", "-q", str(here.bare), "clone")
    clone = tmp_path / "clone"
    checked = here.run("check", str(clone))
    assert "cat: fixed: No such file" in checked.stdout + checked.stderr
    (tmp_path / "issue.md").write_text("# Fix it\n\nPlease.\n")
    rehearsed = here.run("rehearse", "issue.md", str(clone))
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr


DEVCONTAINER = """{
    // The image of the editors, too.
    "image": "localhost/tools:1", /* not "image": "x" */
    "features": {"ghcr.io/devcontainers/features/node:1": {}},
}
"""


def test_the_image_of_a_devcontainer_is_used(here: MulliganInstallation) -> None:
    allow(here, "localhost/*")
    policy: dict[str, JsonValue] = {**POLICY, "image": "devcontainer"}
    override(here, policy)
    first = here.issue()
    here.run("once")
    (meta,) = here.attempts(first)
    assert meta.outcome is Outcome.MISCONFIGURED
    assert "has no .devcontainer/devcontainer.json" in meta.failure_reason
    commit_files(here, {".devcontainer/devcontainer.json": DEVCONTAINER})
    here.run("retry", str(first))
    here.run("once")
    assert here.attempts(first)[-1].image == f"{IMAGE}@{DIGEST}"
    said = here.run("doctor").stdout
    assert "ignores `features` of .devcontainer/devcontainer.json" in said


def commit_files(here: MulliganInstallation, files: Mapping[str, str]) -> None:
    clone = here.directory / "pushing"
    git(here.directory, "clone", "-q", str(here.bare), str(clone))
    for path, text in files.items():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text(text)
    git(clone, "add", "-A")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "Add")
    git(clone, "push", "-q", "origin", "HEAD")


DOCKERFILE = {
    ".devcontainer/devcontainer.json": '{"build": {"dockerfile": "Dockerfile", "context": ".."}}',
    ".devcontainer/Dockerfile": "FROM localhost/base:1\nCOPY notes.txt /\n",
    ".github/mulligan.yml": yaml.safe_dump({**POLICY, "image": "devcontainer"}),
}


@pytest.fixture
def with_dockerfile(here: MulliganInstallation, podman: FakePodman) -> MulliganInstallation:
    podman.only_in_registry()
    commit_files(here, DOCKERFILE)
    return here


def allow_builds(here: MulliganInstallation, *repositories: str) -> None:
    listed: list[JsonValue] = [*repositories]
    here.configure(sandbox={"mode": "required", "network": "none", "builds": listed})


def test_the_dockerfile_of_a_devcontainer_is_built_from_the_base_branch(
    with_dockerfile: MulliganInstallation, podman: FakePodman
) -> None:
    here = with_dockerfile
    allow_builds(here, NAME)
    refs = [here.issue(), here.issue("Another")]
    here.run("once")
    for ref in refs:
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED, meta.failure_reason
        assert meta.image == f".devcontainer/Dockerfile@{DIGEST}"
    for pull in here.world.pulls_of(NAME):
        assert f"checks: `.devcontainer/Dockerfile@{DIGEST}`" in (pull.body or "")
    assert podman.calls("build") == 1
    assert (podman.context / "notes.txt").read_text() == "one\n"
    assert "run in an image built from .devcontainer/Dockerfile" in here.run("doctor").stdout


def test_a_build_that_is_not_allowed_stops_before_the_agent(
    with_dockerfile: MulliganInstallation, podman: FakePodman
) -> None:
    here = with_dockerfile
    ref = here.issue()
    here.run("once")
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.MISCONFIGURED
    assert "`sandbox.builds`" in meta.failure_reason
    assert meta.agent is None
    assert podman.calls("") == 0
    assert "`sandbox.builds`" in here.run("doctor").stdout


def test_a_build_that_fails_costs_no_attempt_and_shows_why(
    with_dockerfile: MulliganInstallation, podman: FakePodman
) -> None:
    here = with_dockerfile
    allow_builds(here, NAME)
    podman.fails_to_pull("STEP 2/2: RUN apt-get install cowsay\nE: Unable to locate package\n")
    ref = here.issue()
    here.run("once")
    (meta,) = here.attempts(ref)
    assert meta.outcome is Outcome.INFRASTRUCTURE
    assert "podman build --file .devcontainer/Dockerfile ." in meta.failure_reason
    assert "Unable to locate package" in here.run("inspect", str(ref), "--log", "setup").stdout
    podman.fails_to_pull("")
    here.run("retry", str(ref))
    here.run("once")
    assert here.attempts(ref)[-1].outcome is Outcome.SUCCEEDED


def test_check_builds_a_clones_image_if_that_is_allowed(
    with_dockerfile: MulliganInstallation, podman: FakePodman, tmp_path: Path
) -> None:
    here = with_dockerfile
    git(tmp_path, "clone", "-q", str(here.bare), "clone")
    refused = here.run("check", str(tmp_path / "clone"))
    assert "may be built for local/clone" in refused.stderr
    allow_builds(here, "local/clone")
    podman.fails_to_pull("E: Unable to locate package\n")
    failed = here.run("check", str(tmp_path / "clone"))
    assert "failed with exit code 125.\nE: Unable to locate package\n" in failed.stderr
    podman.fails_to_pull("")
    checked = here.run("check", str(tmp_path / "clone"))
    assert f"In the image .devcontainer/Dockerfile@{DIGEST}." in checked.stdout
    assert "cat: fixed: No such file" in checked.stdout + checked.stderr
