"""Images are unpacked once, whole and without what could do harm (IMAGE-1)."""

import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mulligan.domain.errors import MisconfiguredError, UnavailableError
from mulligan.domain.image import CONTEXT, BuildFiles, Image, ImageBuild
from mulligan.domain.set_up import SetUpError
from mulligan.sandbox.image_store import ImageStore
from mulligan.sandbox.image_tools import pull_error, read_image
from mulligan.sandbox.process import Command
from mulligan.sandbox.sandbox import CommandAccess
from world.confined import sandbox
from world.fake_podman import (
    FakePodman,
    Members,
    archive_at,
    archive_of,
    directory,
    fake_podman,
    file,
    link,
    special,
)
from world.images import assemble

LOCAL, REMOTE = "localhost/own:1", "registry.example/own:1"
PINNED = f"registry.example/own@sha256:{'a' * 64}"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def podman(tmp_path: Path) -> FakePodman:
    made = fake_podman(tmp_path / "bin", "PATH=/opt/bin:/bin", "GREETING=hello")
    made.has(archive_of([file("./etc/os-release", b"ID=own\n"), file("./bin/tool", b"x", 0o755)]))
    return made


@pytest.fixture
def store(podman: FakePodman, tmp_path: Path) -> ImageStore:
    path = f"{podman.place}:{os.environ['PATH']}"
    return ImageStore(tmp_path / "images", {"PATH": path}, lambda: NOW, allowed=("*",))


def opened(store: ImageStore, reference: str = LOCAL) -> Image:
    with ExitStack() as uses:
        return store.open("o/r", reference, uses)


# What is unpacked


def unpacked(members: Members, store: ImageStore, podman: FakePodman) -> Path:
    podman.has(archive_of(members))
    return opened(store).root


def test_an_image_has_its_files_and_variables(store: ImageStore) -> None:
    image = opened(store)
    assert (image.root / "etc" / "os-release").read_text() == "ID=own\n"
    assert os.access(image.root / "bin" / "tool", os.X_OK)
    assert image.environment == {"PATH": "/opt/bin:/bin", "GREETING": "hello"}
    assert image.name == f"{LOCAL}@sha256:{'a' * 64}"


def test_rights_and_owners_are_not_those_of_the_archive(
    store: ImageStore, podman: FakePodman
) -> None:
    members = [
        file("program", b"x", 0o6711),
        file("secret", b"x", 0o600),
        file("open", b"x", 0o666),
        directory("closed", 0o000),
        file("closed/inner", b"x", 0o000),
    ]
    root = unpacked(members, store, podman)
    found = {each.name: each.lstat() for each in root.rglob("*")}
    modes = {name: oct(found[name].st_mode & 0o7777) for name in ("program", "secret", "open")}
    assert modes == {"program": "0o755", "secret": "0o644", "open": "0o644"}
    assert oct(found["closed"].st_mode & 0o7777) == "0o755"
    assert {each.st_uid for each in found.values()} == {os.getuid()}


def test_devices_are_not_made_and_own_entries_not_taken(
    store: ImageStore, podman: FakePodman
) -> None:
    members = [
        special("dev/null", tarfile.CHRTYPE),
        special("disk", tarfile.BLKTYPE),
        special("opt/pipe", tarfile.FIFOTYPE),
        file("proc"),
        file("mulligan/worktree/evil"),
        link("tmp", "../.."),
        link("run", "/"),
    ]
    root = unpacked(members, store, podman)
    assert sorted(each.name for each in root.iterdir()) == ["etc", "opt", "var"]
    assert [*(root / "opt").iterdir()] == []


@pytest.mark.parametrize(
    "name", ["link", "link above", "absolute name", "dots", "hard link", "etc", "passwd"]
)
def test_nothing_is_written_outside(
    name: str, store: ImageStore, podman: FakePodman, tmp_path: Path
) -> None:
    (victim := tmp_path / "victim").mkdir()
    (victim / "passwd").write_text("kept\n")
    members = {
        "link": [link("out", str(victim)), file("out/made", b"x")],
        "link above": [link("out", f"../../../{victim.name}"), directory("out/made")],
        "absolute name": [file(f"{victim}/made", b"x")],
        "dots": [file(f"../../../{victim.name}/made", b"x")],
        "hard link": [
            link("out", str(victim / "passwd")),
            link("again", "out", hard=True),
            link("third", f"../../../{victim.name}/passwd", hard=True),
            link("fourth", str(victim / "passwd"), hard=True),
            file("again", b"x"),
            file("third", b"x"),
            file("fourth", b"x"),
        ],
        "etc": [link("etc", str(victim)), file("etc/made", b"x")],
        "passwd": [directory("etc"), link("etc/passwd", str(victim / "passwd"))],
    }[name]
    root = unpacked(members, store, podman)
    assert [each.name for each in victim.iterdir()] == ["passwd"]
    assert (victim / "passwd").read_text() == "kept\n"
    assert (victim / "passwd").stat().st_nlink == 1
    assert root.is_relative_to(tmp_path / "images")


def test_links_and_hard_links_inside_are_kept(store: ImageStore, podman: FakePodman) -> None:
    members = [
        file("lib/one", b"x"),
        link("lib/two", "lib/one", hard=True),
        link("lib/three", "one"),
        link("absolute", "/lib/one"),
    ]
    root = unpacked(members, store, podman)
    assert (root / "lib" / "two").samefile(root / "lib" / "one")
    assert (root / "lib" / "three").read_text() == "x"
    assert str((root / "absolute").readlink()) == "/lib/one"


def test_a_sandbox_binds_etc_and_var_of_an_image_as_a_whole(
    store: ImageStore, podman: FakePodman, tmp_path: Path
) -> None:
    podman.has(archive_at(assemble(tmp_path / "assembled").root))
    image = opened(store)
    assert str((image.root / "var" / "tmp").readlink()) == "../tmp"
    (tree := tmp_path / "tree").mkdir()
    line = "cat /etc/os-release; cat /proc/self/mountinfo"
    command = Command(("/bin/sh", "-c", line), tree, {"PATH": "/image/bin"}, timedelta(seconds=9))
    said = sandbox().run(command, CommandAccess(worktree=tree, image=image)).text
    assert said.startswith("ID=assembled\n")
    assert " /etc " in said
    assert " /var " in said


def test_the_umask_closes_nothing(store: ImageStore, podman: FakePodman, tmp_path: Path) -> None:
    podman.has(archive_at(assemble(tmp_path / "assembled").root))
    before = os.umask(0o077)
    try:
        image = opened(store)
    finally:
        os.umask(before)
    (tree := tmp_path / "tree").mkdir()
    given = Command(("cat", "/etc/os-release"), tree, image.environment, timedelta(seconds=9))
    given = replace(given, environment={"PATH": "/image/bin"})
    said = sandbox().run(given, CommandAccess(worktree=tree, image=image))
    assert said.text == "ID=assembled\n"


def test_an_image_that_is_too_large_is_refused_and_leaves_nothing(
    store: ImageStore, podman: FakePodman
) -> None:
    podman.has(archive_of([file("huge", b"\0" * 5_000_000)]))
    small = replace(store, max_bytes=4_000_000)
    with pytest.raises(MisconfiguredError, match=r"more than 3 MiB .* `sandbox\.image_mib`"):
        opened(small)
    assert left_in(store) == []
    podman.has(archive_of(file(f"{number}") for number in range(1000)))
    with pytest.raises(MisconfiguredError, match="more than 3 MiB"):
        opened(small)


def test_an_image_that_does_not_fit_on_the_disk_is_an_outage(store: ImageStore) -> None:
    with pytest.raises(UnavailableError, match="does not fit on the disk"):
        opened(replace(store, free_bytes=10**18))
    assert left_in(store) == []


@pytest.mark.parametrize("archive", [b"", b"no archive" * 1000])
def test_a_broken_archive_is_refused(archive: bytes, store: ImageStore, podman: FakePodman) -> None:
    podman.has(archive)
    with pytest.raises((MisconfiguredError, UnavailableError), match="The image localhost/own:1"):
        opened(store)
    assert left_in(store) == []


def test_a_program_that_cannot_export_is_an_outage(store: ImageStore, podman: FakePodman) -> None:
    (podman.place / "broken").write_text("Error: no container with that name\n")
    with pytest.raises(UnavailableError, match=r"cannot export .*: Error: no container"):
        opened(store)
    assert left_in(store) == []


def test_a_file_in_place_of_a_directory_is_refused(store: ImageStore, podman: FakePodman) -> None:
    with pytest.raises(MisconfiguredError, match="in place of the directory opt"):
        unpacked([file("opt/x"), file("opt")], store, podman)


def left_in(store: ImageStore) -> list[str]:
    return [each.name for each in store.root.iterdir() if each.name != "lock"]


# Once


def test_an_image_is_exported_once_and_used_again(store: ImageStore, podman: FakePodman) -> None:
    assert opened(store) == opened(store)
    assert podman.calls("export") == 1
    podman.has(archive_of([file("new")]), "b")
    assert (opened(store).root / "new").exists()
    assert podman.calls("export") == 2


def test_attempts_at_once_export_it_once(store: ImageStore, podman: FakePodman) -> None:
    (podman.place / "slow").write_text("0.5")
    found = list[Image]()
    threads = [threading.Thread(target=lambda: found.append(opened(store))) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 3
    assert podman.calls("export") == 1


CHILD = """
import os, sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from mulligan.sandbox.image_store import ImageStore
now = lambda: datetime.now(UTC)
with ExitStack() as uses:
    ImageStore(Path(sys.argv[1]), os.environ, now, allowed=("*",)).open("o/r", sys.argv[2], uses)
"""


def test_a_kill_leaves_nothing_that_is_used(store: ImageStore, podman: FakePodman) -> None:
    (podman.place / "slow").write_text("30")
    argv: Sequence[str] = (sys.executable, "-c", CHILD, str(store.root), LOCAL)
    environment = {**os.environ, **store.environment}
    with subprocess.Popen(argv, env=environment) as child:
        until = time.monotonic() + 20
        while not podman.calls("export") and time.monotonic() < until:
            time.sleep(0.05)
        child.kill()
    assert not list(store.root.glob("sha256-*"))
    assert list(store.root.glob("unpacking-*"))
    (podman.place / "slow").unlink()
    assert (opened(store).root / "bin" / "tool").exists()
    assert not list(store.root.glob("unpacking-*"))


def test_what_nobody_uses_is_deleted_and_what_is_in_use_stays(
    store: ImageStore, podman: FakePodman
) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    with ExitStack() as uses:
        image = store.open("o/r", LOCAL, uses)
        store.prune(later)
        assert image.root.exists()
    store.prune(datetime.now(UTC) - timedelta(days=1))
    assert image.root.exists()
    store.prune(later)
    assert left_in(store) == []
    assert opened(store).root.exists()
    assert podman.calls("export") == 2


# References


def test_only_allowed_images_are_used(store: ImageStore, podman: FakePodman) -> None:
    closed = replace(store, allowed=())
    with pytest.raises(MisconfiguredError, match=r"not allowed here.* `sandbox\.images`"):
        opened(closed)
    assert podman.calls("") == 0
    assert opened(replace(closed, allowed=("localhost/*",)))
    assert opened(replace(closed, granted={"o/r": LOCAL}))
    with pytest.raises(MisconfiguredError, match="not allowed"):
        opened(replace(closed, granted={"o/other": LOCAL}))


def test_where_no_image_can_be_used_the_reason_comes_first(
    store: ImageStore, podman: FakePodman
) -> None:
    with pytest.raises(MisconfiguredError, match=r"localhost/own:1\. It needs the sandbox"):
        opened(replace(store, unusable="It needs the sandbox; remove `sandbox: off`."))
    assert podman.calls("") == 0


def test_a_problem_is_found_without_unpacking(store: ImageStore, podman: FakePodman) -> None:
    assert store.problem("o/r", LOCAL) == store.problem("o/r", REMOTE) == ""
    assert "not allowed" in replace(store, allowed=()).problem("o/r", LOCAL)
    podman.has(b"", architecture="s390x")
    assert "is for linux/s390x" in store.problem("o/r", LOCAL)
    podman.only_in_registry()
    assert "is not on Mulligan's machine" in store.problem("o/r", LOCAL)
    assert store.problem("o/r", REMOTE) == ""
    assert podman.calls("export") == podman.calls("pull") == 0


def test_a_tag_is_pulled_once_a_day_and_a_digest_never_again(
    store: ImageStore, podman: FakePodman
) -> None:
    for _ in range(2):
        opened(store, REMOTE)
        opened(store, PINNED)
    assert podman.calls("pull") == 1
    opened(replace(store, now=lambda: NOW + timedelta(days=1)), REMOTE)
    assert podman.calls("pull") == 2
    podman.only_in_registry()
    opened(store, PINNED)
    assert podman.calls("pull") == 3


def test_a_registry_that_is_away_is_an_outage(store: ImageStore, podman: FakePodman) -> None:
    podman.only_in_registry()
    podman.fails_to_pull("Error: pinging container registry: connect: connection refused\n")
    with pytest.raises(UnavailableError, match=r"cannot be pulled now: .*refused\."):
        opened(store, REMOTE)
    podman.fails_to_pull("Error: reading manifest 1 in registry.example/own: manifest unknown\n")
    with pytest.raises(MisconfiguredError, match="manifest unknown; check the reference"):
        opened(store, REMOTE)
    podman.fails_to_pull("")
    assert opened(store, REMOTE)


@pytest.mark.parametrize(
    ("message", "is_outage"),
    [
        ("dial tcp: lookup registry.example: no such host", True),
        ("received unexpected HTTP status: 503 Service Unavailable", True),
        ("toomanyrequests: You have reached your pull rate limit", True),
        ("net/http: TLS handshake timeout", True),
        ("requested access to the resource is denied", False),
        ("unauthorized: authentication required", False),
        ("reading manifest x in registry.example/y: name unknown: repository not found", False),
    ],
)
def test_what_passes_by_itself_is_an_outage(message: str, *, is_outage: bool) -> None:
    error = pull_error(REMOTE, f"time=1 level=warning\nError: {message}\n")
    assert isinstance(error, UnavailableError if is_outage else MisconfiguredError)
    assert message in str(error)


def test_an_image_that_was_never_built_is_named(store: ImageStore, podman: FakePodman) -> None:
    podman.only_in_registry()
    with pytest.raises(MisconfiguredError, match="localhost/own:1 is not on Mulligan's machine"):
        opened(store)
    assert podman.calls("pull") == 0


def test_an_image_for_another_architecture_is_refused(
    store: ImageStore, podman: FakePodman
) -> None:
    podman.has(archive_of([file("x")]), architecture="s390x")
    with pytest.raises(MisconfiguredError, match="is for linux/s390x, and Mulligan's machine runs"):
        opened(store)


def test_without_a_program_for_images_the_cure_is_named(store: ImageStore) -> None:
    bare = replace(store, environment={"PATH": "/nowhere"})
    with pytest.raises(MisconfiguredError, match="podman or buildah is not installed"):
        opened(bare)


def test_buildah_says_the_same_in_other_words() -> None:
    digest = f"sha256:{'c' * 64}"
    said = (
        f'{{"FromImageDigest": "{digest}", "OCIv1": {{"architecture": "amd64", "os": "linux",'
        ' "config": {"Env": ["A=b=c"]}}}'
    )
    found = read_image("buildah", said.encode())
    assert found is not None
    assert (found.digest, found.environment) == (digest, {"A": "b=c"})
    assert read_image("buildah", b"Error: no such image") is None
    assert read_image("podman", b"[]") is None
    assert read_image("podman", b'[{"Digest": "../..", "Architecture": "a", "Os": "b"}]') is None


# Builds


BUILD = ImageBuild(".devcontainer/Dockerfile", ".", "dev", (("VARIANT", "3"),))


def built(store: ImageStore, content: str = "1", repository: str = "o/r") -> Image:
    def write(place: Path) -> Path:
        (place / CONTEXT).mkdir()
        (place / CONTEXT / "notes.txt").write_text(content)
        (place / "Dockerfile").write_text("FROM a\n")
        return place / "Dockerfile"

    log = store.root.parent / "build.log"
    with ExitStack() as uses:
        return store.build(repository, BUILD, BuildFiles(content, write), log, uses)


@pytest.fixture
def builder(store: ImageStore, podman: FakePodman) -> ImageStore:
    podman.only_in_registry()
    return replace(store, allowed=(), builds=("o/*",))


def test_an_image_is_built_once_a_day_and_for_other_files(
    builder: ImageStore, podman: FakePodman
) -> None:
    image = built(builder)
    assert image.name == f".devcontainer/Dockerfile@sha256:{'a' * 64}"
    assert (image.root / "etc" / "os-release").read_text() == "ID=own\n"
    assert (podman.context / "notes.txt").read_text() == "1"
    built(builder)
    assert podman.calls("build") == 1
    podman.has((podman.place / "image.tar").read_bytes(), "b")
    assert built(builder, "2").digest == f"sha256:{'b' * 64}"
    assert podman.calls("build") == 2
    built(replace(builder, now=lambda: NOW + timedelta(days=1)), "2")
    assert podman.calls("build") == 3
    assert not list(builder.root.glob("unpacking-*"))


def test_a_build_gets_its_stage_and_arguments(builder: ImageStore, podman: FakePodman) -> None:
    built(builder)
    (line,) = [each for each in podman.lines() if each.startswith("build ")]
    assert "--target dev --build-arg VARIANT=3" in line
    assert "--pull=newer --network host --tag localhost/mulligan/o-r-" in line


def test_the_image_that_a_new_one_replaces_is_removed(
    builder: ImageStore, podman: FakePodman
) -> None:
    built(builder)
    built(builder, "2")
    assert podman.calls("rmi") == 0
    (podman.place / "remote.json").write_text(
        (podman.place / "remote.json").read_text().replace("a" * 64, "b" * 64)
    )
    built(builder, "3")
    assert f"rmi {'a' * 64}" in podman.lines()


def test_repositories_have_images_of_their_own(builder: ImageStore, podman: FakePodman) -> None:
    built(builder)
    built(builder, "1", "o/R")
    tags = [line.split("--tag ")[1].split()[0] for line in podman.lines() if "--tag" in line]
    assert len(set(tags)) == 2


def test_a_build_that_fails_shows_its_last_lines_and_is_tried_again(
    builder: ImageStore, podman: FakePodman
) -> None:
    podman.fails_to_pull("STEP 1/2\n\nE: Unable to locate package cowsay\n")
    with pytest.raises(SetUpError, match="podman build --file") as raised:
        built(builder)
    failed = raised.value.failed
    assert failed.command == "podman build --file .devcontainer/Dockerfile --target dev ."
    assert failed.exit_code == 125
    assert failed.digest == "STEP 1/2\nE: Unable to locate package cowsay"
    assert "cowsay" in (builder.root.parent / "build.log").read_text()
    assert not list(builder.root.glob("unpacking-*"))
    podman.fails_to_pull("")
    assert built(builder).root.exists()


def test_only_for_allowed_repositories_an_image_is_built(
    builder: ImageStore, podman: FakePodman
) -> None:
    with pytest.raises(MisconfiguredError, match=r"built for other/r; .*`sandbox\.builds`"):
        built(builder, "1", "other/r")
    assert podman.calls("") == 0
    assert builder.build_problem("o/r") == ""
    closed = replace(builder, unusable="It needs the sandbox.")
    assert closed.build_problem("o/r") == "The policy names a devcontainer. It needs the sandbox."
    assert "podman or buildah is not installed" in replace(
        builder, environment={"PATH": "/nowhere"}
    ).build_problem("o/r")


def test_a_full_disk_ends_a_build(builder: ImageStore, podman: FakePodman) -> None:
    full = UnavailableError("The disk ran full.")
    (podman.place / "slow").write_text("20")
    with pytest.raises(UnavailableError, match="ran full"):
        built(replace(builder, watch=lambda: full))
