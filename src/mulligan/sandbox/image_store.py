"""Keep the files of images, unpacked once for each digest (IMAGE-1), and build some (IMAGE-2).

An entry appears by one rename and never changes. An attempt that uses it holds a lock on its
directory, so that no other process deletes it meanwhile.
"""

import fcntl
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict

from mulligan.domain.errors import MisconfiguredError, MulliganError, UnavailableError
from mulligan.domain.host import MIB
from mulligan.domain.image import BuildFiles, Image, ImageBuild
from mulligan.domain.result import CheckKind, CheckResult
from mulligan.domain.set_up import SetUpError
from mulligan.sandbox.cancellation import meanwhile, sleep_until_cancelled
from mulligan.sandbox.home import clear, do
from mulligan.sandbox.image_files import TooLargeError, Unpacking, UnreadableImageError
from mulligan.sandbox.image_tools import (
    LOCAL,
    FoundImage,
    build_command,
    directory_of,
    export_command,
    find_program,
    inspect_command,
    pull_command,
    pull_error,
    read_image,
    remove_command,
    shown_command,
    tag_of,
    variables_for,
)
from mulligan.sandbox.process import Command, Finished, run
from mulligan.sandbox.set_up_cache import TRASH, hold, move_away
from mulligan.text.escape import last_lines
from mulligan.text.redact import Redactor

log = structlog.get_logger()

PULL_TIMEOUT = timedelta(minutes=30)
BUILD_TIMEOUT = timedelta(hours=1)
TIMEOUT = timedelta(minutes=2)

ROOT, DESCRIPTION = "root", "image.json"
"""The parts of an entry: the files, and what the image says of itself."""

MADE = "pulled-"
"""Begins the name of a file that says of which day a tag is, and from which files it was built."""

UNPACKING = "unpacking-"

ARCHITECTURES = {"x86_64": ("amd64", "386"), "aarch64": ("arm64",)}
"""What a machine runs, by `uname -m`, in the words of images."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of an image that sets none, as in Docker."""

POLL_SECONDS = 0.2


class Description(BaseModel):
    """What is kept of an image beside its files."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
    digest: str
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class ImageStore:
    """Images below `root`, of at most `max_bytes` each; `environment` is Mulligan's own.

    `allowed` are patterns of references, and `granted` is the one that the operator gave a
    repository. Images are built for the repositories that `builds` matches; `watch` may return the
    error that ends a build, and its output is redacted. `free_bytes` of the disk stay free.
    `unusable` says why no image can be used here.
    """

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    now: Callable[[], datetime]
    allowed: tuple[str, ...] = ()
    granted: Mapping[str, str] = field(default_factory=dict[str, str])
    max_bytes: int = 8192 * MIB
    free_bytes: int = 512 * MIB
    unusable: str = ""
    builds: tuple[str, ...] = ()
    redactor: Redactor | None = field(default=None, repr=False)
    watch: Callable[[], MulliganError | None] | None = None

    def refusal(self, repository: str, reference: str) -> str:
        """Return why a repository may not use an image; empty if it may."""
        if self.unusable:
            return f"The policy names the image {reference}. {self.unusable}"
        patterns = (*self.allowed, self.granted.get(repository, ""))
        if any(fnmatchcase(reference, pattern) for pattern in patterns):
            return ""
        return (
            f"The policy names the image {reference}, which is not allowed here; the operator can"
            " add it to `sandbox.images` in mulligan.yml, or remove `image` from the policy."
        )

    def problem(self, repository: str, reference: str) -> str:
        """Return why an image cannot be used, without pulling it; empty if it may be there."""
        if refused := self.refusal(repository, reference):
            return refused
        try:
            program = find_program(self.environment)
            if not reference.startswith(LOCAL):
                return ""
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._known(program, reference)
            if found:
                self._require_platform(reference, found)
        except MisconfiguredError as error:
            return str(error)
        return ""

    def open(self, repository: str, reference: str, uses: ExitStack) -> Image:
        """Return an image that stays until `uses` is closed; pull and unpack it if needed.

        MisconfiguredError if the image is not allowed, does not exist or cannot be used here;
        UnavailableError if its registry is away.
        """
        if refused := self.refusal(repository, reference):
            raise MisconfiguredError(refused)
        program = find_program(self.environment)
        known = partial(self._known, program, reference)
        return self._image(program, reference, known, partial(self._pull, program, reference), uses)

    def build_problem(self, repository: str) -> str:
        """Return why no image is built for a repository here; empty if one may be."""
        if self.unusable:
            return f"The policy names a devcontainer. {self.unusable}"
        if not any(fnmatchcase(repository, pattern) for pattern in self.builds):
            return (
                "The devcontainer.json names a Dockerfile, and no image may be built for"
                f" {repository}; the operator can add it to `sandbox.builds` in mulligan.yml, or"
                " name an image in `image` of the policy."
            )
        try:
            find_program(self.environment)
        except MisconfiguredError as error:
            return str(error)
        return ""

    def build(
        self, repository: str, build: ImageBuild, files: BuildFiles, log: Path, uses: ExitStack
    ) -> Image:
        """Return an image from a Dockerfile, as `open` does; build it if needed.

        It is built again on another day, or if its files change. MisconfiguredError if that is not
        allowed, SetUpError if it fails; the `log` has the output.
        """
        if problem := self.build_problem(repository):
            raise MisconfiguredError(problem)
        program, tag = find_program(self.environment), tag_of(self.root, repository)
        made = f"{self._today} {hashlib.sha256(repr((build, files.content)).encode()).hexdigest()}"

        def known() -> FoundImage | None:
            return self._inspect(program, tag) if self._note(tag) == made else None

        def make() -> FoundImage:
            before = self._inspect(program, tag)
            self._build(program, tag, build, files, log)
            found = self._found(program, tag)
            self._note_file(tag).write_text(made)
            if before and before.identity != found.identity:
                self._run(remove_command(program, before.identity), TIMEOUT)
            return found

        return replace(self._image(program, tag, known, make, uses), reference=build.file)

    def _build(
        self, program: str, tag: str, build: ImageBuild, files: BuildFiles, log: Path
    ) -> None:
        place = Path(tempfile.mkdtemp(dir=self.root, prefix=UNPACKING))
        try:
            argv = build_command(program, tag, build, files.write(place), place)
            command = self._command(argv, BUILD_TIMEOUT, log)
            ended = run(replace(command, redactor=self.redactor, watch=self.watch))
        finally:
            clear(place, self.environment)
        if ended.exit_code or ended.stopped_by:
            shown = shown_command(program, build)
            failed = CheckResult(
                name="image",
                kind=CheckKind.OTHER,
                command=shown,
                passed=False,
                is_set_up=True,
                exit_code=ended.exit_code,
                timed_out=ended.stopped_by is not None,
                duration_ms=round(ended.duration.total_seconds() * 1000),
                digest=last_lines(ended.text),
            )
            raise SetUpError(f"{shown} failed.", failed)

    def _image(
        self,
        program: str,
        reference: str,
        known: Callable[[], FoundImage | None],
        make: Callable[[], FoundImage],
        uses: ExitStack,
    ) -> Image:
        """Return an image that is `known`, or else is made; unpack it if needed."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = known()
        entry = hold(directory_of(self.root, found.digest), uses) if found else None
        if entry is None:
            with self._locked():
                found = known() or make()
                self._require_platform(reference, found)
                entry = hold(directory_of(self.root, found.digest), uses) or self._unpack(
                    program, reference, found, uses
                )
        kept = Description.model_validate_json((entry / DESCRIPTION).read_bytes())
        variables = {"PATH": DEFAULT_PATH, **kept.environment}
        return Image(reference, kept.digest, entry / ROOT, variables)

    def prune(self, before: datetime) -> None:
        """Delete the images that nobody used since a time, and what a kill left."""
        if not self.root.exists():
            return
        oldest = before.timestamp()
        with self._locked():
            for entry in self.root.glob("sha256-*"):
                if entry.stat().st_mtime < oldest and move_away(entry):
                    log.info("image_removed", image=entry.name)
            for left in self.root.glob(f"{MADE}*"):
                if left.stat().st_mtime < oldest:
                    left.unlink()
            self._clear_left()

    def _clear_left(self) -> None:
        for pattern in (UNPACKING, TRASH):
            for left in self.root.glob(f"{pattern}*"):
                clear(left, self.environment)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Wait until no other thread or process pulls, unpacks or deletes."""
        with (self.root / "lock").open("ab") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    sleep_until_cancelled(POLL_SECONDS)
            yield

    def _known(self, program: str, reference: str) -> FoundImage | None:
        """Return what the program has under a reference; None if it must be pulled first."""
        found = self._inspect(program, reference)
        if reference.startswith(LOCAL):
            if found is None:
                raise MisconfiguredError(
                    f"The image {reference} is not on Mulligan's machine; build it there as"
                    f" Mulligan's user with {program}, or change `image`."
                )
            return found
        # A digest never changes, a tag may.
        return found if "@" in reference or self._note(reference) == self._today else None

    def _pull(self, program: str, reference: str) -> FoundImage:
        ended = self._run(pull_command(program, reference), PULL_TIMEOUT)
        if ended.exit_code or ended.stopped_by:
            raise pull_error(reference, ended.text)
        found = self._found(program, reference)
        self._note_file(reference).write_text(self._today)
        return found

    @property
    def _today(self) -> str:
        return f"{self.now():%Y%m%d}"

    def _note_file(self, reference: str) -> Path:
        return self.root / f"{MADE}{hashlib.sha256(reference.encode()).hexdigest()}"

    def _note(self, reference: str) -> str:
        try:
            return self._note_file(reference).read_text()
        except OSError:
            return ""

    def _found(self, program: str, reference: str) -> FoundImage:
        found = self._inspect(program, reference)
        if found is None:
            raise UnavailableError(f"{program} has made {reference}, and does not find it.")
        return found

    def _inspect(self, program: str, reference: str) -> FoundImage | None:
        with tempfile.TemporaryDirectory(prefix="mulligan-") as place:
            output = Path(place, "inspect")
            ended = self._run(inspect_command(program, reference), TIMEOUT, output)
            return None if ended.exit_code else read_image(program, output.read_bytes())

    def _require_platform(self, reference: str, found: FoundImage) -> None:
        machine = platform.machine()
        fits = ARCHITECTURES.get(machine, (machine,))
        if found.system != "linux" or found.architecture not in fits:
            raise MisconfiguredError(
                f"The image {reference} is for {found.system}/{found.architecture}, and Mulligan's"
                f" machine runs linux/{fits[0]}; name an image for that."
            )

    def _unpack(self, program: str, reference: str, found: FoundImage, uses: ExitStack) -> Path:
        entry = directory_of(self.root, found.digest)
        self._clear_left()
        place = Path(tempfile.mkdtemp(dir=self.root, prefix=UNPACKING))
        try:
            self._export(program, reference, place / ROOT)
            kept = Description(digest=found.digest, environment=dict(found.environment))
            (place / DESCRIPTION).write_text(kept.model_dump_json())
            # A power cut must not leave an entry whose files are empty.
            do(("sync", "-f", str(place)), self.root, self.environment)
            place.chmod(0o755)
            place.rename(entry)
        finally:
            clear(place, self.environment)
        log.info("image_unpacked", image=reference, digest=found.digest)
        if held := hold(entry, uses):
            return held
        raise UnavailableError(f"The files of the image {reference} were deleted meanwhile.")

    def _export(self, program: str, reference: str, place: Path) -> None:
        """Unpack what the program writes, while it writes."""
        free = _free(self.root) - self.free_bytes
        read, write = os.pipe()
        try:
            unpacking = Unpacking(place, min(self.max_bytes, free))

            def unpack() -> None:
                with open(read, "rb") as archive:  # noqa: PTH123 - a descriptor
                    unpacking.unpack(archive)

            with meanwhile(unpack) as unpacked:
                name = f"mulligan-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]}"
                argv = export_command(program, reference, name, write)
                try:
                    ended = self._run(argv, PULL_TIMEOUT, pass_fds=(write,))
                finally:
                    os.close(write)
                if ended.exit_code or ended.stopped_by:
                    raise self._not_exported(program, reference, ended, unpacked)
                unpacked()
        except TooLargeError as error:
            raise self._too_large(reference, free) from error
        except UnreadableImageError as error:
            raise MisconfiguredError(f"The image {reference} cannot be used. {error}") from error
        except OSError as error:
            raise UnavailableError(
                f"The image {reference} cannot be unpacked: {error.strerror}; check that disk."
            ) from error

    @staticmethod
    def _not_exported(
        program: str, reference: str, ended: Finished, unpacked: Callable[[], None]
    ) -> UnavailableError:
        """Return the error of the program; raise that of the unpacking if it came first."""
        with suppress(UnreadableImageError):
            unpacked()
        last = ended.last_line
        return UnavailableError(f"{program} cannot export the image {reference}: {last}.")

    def _too_large(self, reference: str, free: int) -> MisconfiguredError | UnavailableError:
        if free < self.max_bytes:
            return UnavailableError(
                f"The image {reference} does not fit on the disk, which has {max(free, 0) // MIB}"
                " MiB for it; free some space."
            )
        return MisconfiguredError(
            f"The image {reference} has more than {self.max_bytes // MIB} MiB of files; raise"
            " `sandbox.image_mib` in mulligan.yml, or name a smaller image."
        )

    def _run(
        self,
        argv: tuple[str, ...],
        timeout: timedelta,
        output: Path | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> Finished:
        return run(self._command(argv, timeout, output, pass_fds))

    def _command(
        self,
        argv: tuple[str, ...],
        timeout: timedelta,
        output: Path | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> Command:
        environment = variables_for(self.environment)
        return Command(argv, self.root, environment, timeout, log=output, pass_fds=pass_fds)


def _free(place: Path) -> int:
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize
