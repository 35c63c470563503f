"""Images that buildah builds and podman or buildah pulls and unpacks, up to a pull request.

`make test-deep` runs this. As root, it installs both programs if they are missing.
"""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from pydantic import JsonValue

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.image import CONTEXT, BuildFiles, Image, ImageBuild
from mulligan.domain.outcome import Outcome
from mulligan.git.worktrees.naming import image_directory
from mulligan.sandbox.image_store import ImageStore
from mulligan.sandbox.image_tools import PROGRAMS, tag_of
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess
from world.confined import sandbox
from world.images import PATH, assemble
from world.oci_registry import serve_images
from world.place import BIN, NAME, mulligan_installation

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]
TAG = f"localhost/mulligan-test-{os.getpid()}:1"
NEEDED = ("sh", "tar", "rm", "sync", "runc", "newuidmap", "newgidmap")
DOCKERFILE = f"""\
FROM scratch
ADD root.tar /
ENV PATH=/opt/own:{PATH} GREETING=hello
RUN mkdir -p /opt/own && echo '#!/bin/sh' > /opt/own/tool && echo 'echo own tool' >> /opt/own/tool
COPY --chmod=755 tool /opt/own/tool
COPY --chmod=4755 tool /opt/own/setuid
RUN echo secret > /etc/shadow && echo 'root:x:0:0::/:/bin/sh' > /etc/passwd
"""


@cache
def missing_tools() -> str:
    """Install the programs; say why they are missing."""
    if all(map(shutil.which, PROGRAMS)):
        return ""
    if os.getuid() != 0 or not shutil.which("apt-get"):
        return "podman and buildah are not installed, and only root of Debian can install them"
    install = ("apt-get", "install", "--yes", "--no-install-recommends", *PROGRAMS, "runc")
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"apt-get failed: {done.stderr[-300:]}"


def call(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Built:
    """An image in the store of the programs, and the same in the OCI layout."""

    name: str
    layout: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Generator[Built]:
    if why := missing_tools():
        pytest.skip(why)
    place = tmp_path_factory.mktemp("image")
    root = assemble(place / "root").root
    with tarfile.open(place / "root.tar", "w") as archive:
        archive.add(root, ".")
    (place / "tool").write_text("#!/bin/sh\necho own tool\n")
    (place / "Dockerfile").write_text(DOCKERFILE)
    call("buildah", "bud", "--isolation", "chroot", "--tag", TAG, place)
    call("buildah", "push", "--quiet", TAG, f"oci:{place}/layout:1")
    yield Built(TAG, place / "layout")
    call("buildah", "rmi", "--force", TAG)


@pytest.fixture(params=PROGRAMS)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, str]:
    """Give a PATH with one of the programs."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in (request.param, *NEEDED):
        if found := shutil.which(name):
            (place / name).symlink_to(found)
    return {"PATH": str(place), "HOME": os.environ.get("HOME", "/")}


def store_in(place: Path, environment: Mapping[str, str]) -> ImageStore:
    return ImageStore(place, environment, lambda: datetime.now(UTC), ("*",), builds=("*",))


def test_either_program_gives_the_files_and_variables(
    built: Built, environment: Mapping[str, str], tmp_path: Path
) -> None:
    with ExitStack() as uses:
        image = store_in(tmp_path / "images", environment).open("o/r", built.name, uses)
        assert image.environment["GREETING"] == "hello"
        assert (image.root / "opt/own/setuid").stat().st_mode & 0o7777 == 0o755
        assert look(image, tmp_path) == "own tool\nID=assembled\nsecret\n"
    assert "mulligan-" not in call("podman", "ps", "--all", "--format", "{{.Names}}")


def look(image: Image, place: Path) -> str:
    (tree := place / "tree").mkdir()
    line = "tool; cat /etc/os-release /etc/shadow"
    given = Command(("/bin/sh", "-c", line), tree, image.environment, timedelta(seconds=20))
    return sandbox().run(given, CommandAccess(worktree=tree, image=image)).text


def test_an_image_is_pulled_from_a_registry(
    built: Built, environment: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "registries.conf").write_text("")
    with serve_images(built.layout) as port, ExitStack() as uses:
        host = f"localhost:{port}"
        (tmp_path / "registries.conf").write_text(
            f'[[registry]]\nlocation = "{host}"\ninsecure = true\n'
        )
        given = {**environment, "CONTAINERS_REGISTRIES_CONF": str(tmp_path / "registries.conf")}
        store = store_in(tmp_path / "images", given)
        image = store.open("o/r", f"{host}/tools:1", uses)
        assert (image.root / "opt/own/tool").exists()
        pinned = store.open("o/r", f"{host}/tools@{image.digest}", uses)
        assert pinned.root == image.root
        with pytest.raises(MisconfiguredError, match="manifest unknown"):
            store.open("o/r", f"{host}/tools:2", uses)
        call("buildah", "rmi", "--force", f"{host}/tools:1")
    with pytest.raises(UnavailableError, match="cannot be pulled now"), ExitStack() as uses:
        store.open("o/r", f"{host}/tools:3", uses)


def test_a_repository_in_its_own_image_gets_a_pull_request(built: Built, tmp_path: Path) -> None:
    check: dict[str, JsonValue] = {
        "name": "own",
        "run": 'test "$(tool)" = "own tool" && test ! -e /usr/share/doc && cat fixed',
        "kind": "test",
    }
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}, [check], image=built.name) as here:
        here.configure(sandbox={"mode": "required", "network": "none"})
        here.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
        here.agent("pathlib.Path('fixed').write_text('yes')")
        ref = here.issue()
        assert here.run("once").returncode == 0
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED, meta.failure_reason
        (pull,) = here.world.pulls_of(NAME)
        assert f"checks: `{built.name}@sha256:" in (pull.body or "")


OWN_DOCKERFILE = f"""\
ARG BASE={TAG}
FROM ${{BASE}} AS dev
ARG WORD
COPY notes.txt /opt/notes.txt
RUN echo "echo $WORD" > /opt/own/word
COPY --chmod=755 .devcontainer/built /opt/own/built
FROM dev AS more
RUN false
"""
DEVCONTAINER = """{
    "build": {
        "dockerfile": "Dockerfile", "context": "..", "target": "dev", "args": {"WORD": "hello"},
    },
}"""


def test_a_repository_with_a_dockerfile_of_its_own_gets_a_pull_request(
    built: Built, environment: Mapping[str, str], tmp_path: Path
) -> None:
    check: dict[str, JsonValue] = {
        "name": "own",
        "run": 'test "$(built)" = hello && test "$(cat /opt/notes.txt)" = one && cat fixed',
        "kind": "test",
    }
    files = {
        "notes.txt": "one\n",
        ".devcontainer/Dockerfile": OWN_DOCKERFILE,
        ".devcontainer/built": "#!/bin/sh\n. /opt/own/word\n",
        ".devcontainer/devcontainer.json": DEVCONTAINER,
    }
    with mulligan_installation(tmp_path, files, [check], image="devcontainer") as here:
        here.configure(sandbox={"mode": "required", "network": "none", "builds": [NAME]})
        here.environment["PATH"] = f"{BIN}:{environment['PATH']}:{os.environ['PATH']}"
        here.agent("pathlib.Path('fixed').write_text('yes')")
        ref = here.issue()
        assert here.run("once").returncode == 0
        (meta,) = here.attempts(ref)
        assert meta.outcome is Outcome.SUCCEEDED, meta.failure_reason
        (pull,) = here.world.pulls_of(NAME)
        assert "checks: `.devcontainer/Dockerfile@sha256:" in (pull.body or "")
    root = image_directory(tmp_path / "work")
    call("buildah", "rmi", "--force", tag_of(root, NAME))


def test_a_build_that_is_stopped_leaves_no_process(
    built: Built, environment: Mapping[str, str], tmp_path: Path
) -> None:
    def write(place: Path) -> Path:
        (place / CONTEXT).mkdir()
        dockerfile = place / "Dockerfile"
        dockerfile.write_text(
            f"FROM {built.name}\nRUN /bin/sh -c 'while :; do :; done' {tmp_path}\n"
        )
        return dockerfile

    def watch() -> UnavailableError | None:
        return UnavailableError("The disk ran full.") if processes() else None

    def processes() -> list[bytes]:
        listed = (each / "cmdline" for each in Path("/proc").glob("[0-9]*"))
        texts = [each.read_bytes() for each in listed if each.exists()]
        return [text for text in texts if text.startswith(b"/bin/sh") and marker in text]

    marker = os.fsencode(f"{tmp_path}\0")
    store = replace(store_in(tmp_path / "images", environment), watch=watch)
    files = BuildFiles("1", write)
    with pytest.raises(UnavailableError, match="ran full"), ExitStack() as uses:
        store.build("o/r", ImageBuild("Dockerfile", "."), files, tmp_path / "log", uses)
    assert processes() == []
    assert not list(store.root.glob("unpacking-*"))
