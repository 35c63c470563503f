"""The plainest worktrees: a fresh clone for every attempt, thrown away, for agents that behave."""

import shutil
import subprocess
import tempfile
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import Change, CommitText
from mulligan.domain.errors import DeniedError, MisconfiguredError, UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.domain.result import FileChange
from mulligan.implement.ports import PullRequestBase
from world.repositories import branch_head, git, run_git


@dataclass(frozen=True)
class FreshClone:
    """One clone; it never has to be made anew, since it always is."""

    path: Path
    private: Path
    base_sha: str
    start_sha: str
    head_sha: str | None = None
    bases: tuple[str, ...] = ()
    is_answered: bool = False
    is_reviewed: bool = False
    recreated: bool = False
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()

    @property
    def pull_request_diff(self) -> bytes:
        if self.head_sha is None:
            return b""
        fork = git(self.path, "merge-base", self.head_sha, *self.bases)
        return f"{git(self.path, 'diff', '-M', fork, self.head_sha)}\n".encode()

    def capture(self, text: CommitText, settings: CommitSettings) -> Change:
        own = git(self.path, "rev-list", "--count", "HEAD", "--branches", "--not", self.start_sha)
        git(self.path, "add", "-A")
        tree = git(self.path, "write-tree")
        uncommitted = tree != git(self.path, "rev-parse", "HEAD^{tree}")
        commits = int(own) + uncommitted
        if tree == git(self.path, "rev-parse", f"{self.start_sha}^{{tree}}"):
            return Change(self.start_sha, None, commits)
        if self._is_proposed(tree):
            return Change(self.start_sha, None, commits, is_proposed=True)
        head = self._commit(tree, text, settings)
        listed, counted = (
            git(self.path, "diff", shape, "-M", self.start_sha, head).splitlines()
            for shape in ("--raw", "--numstat")
        )
        files = tuple(self._change(head, *lines) for lines in zip(listed, counted, strict=True))
        diff = git(self.path, "diff", "-M", self.start_sha, head)
        return Change(self.start_sha, head, commits, files, f"{diff}\n".encode())

    def _is_proposed(self, tree: str) -> bool:
        """Compare with the pull request as it is, and on a review as it were on this base."""
        if not self.is_answered:
            return False
        if tree == git(self.path, "rev-parse", f"{self.head_sha}^{{tree}}"):
            return True
        if not self.is_reviewed or self.start_sha != self.base_sha:
            return False
        merge = ("merge-tree", "--write-tree", self.base_sha, self.head_sha or "")
        return run_git(self.path, *merge).stdout.strip() == tree

    def check_out(self, head_sha: str) -> None:
        git(self.path, "checkout", "-q", "--force", "-B", "shown", head_sha)
        git(self.path, "clean", "-q", "-ffdx")

    @contextmanager
    def pristine_checkout(self) -> Generator[None]:
        aside = self.path.with_name(f"{self.path.name}-aside")
        self.path.rename(aside)
        shutil.copytree(aside / ".git", self.path / ".git")
        self.check_out(self.start_sha)
        yield
        shutil.rmtree(self.path)
        aside.rename(self.path)

    def _change(self, head: str, listed: str, counted: str) -> FileChange:
        about, *names = listed.split("\t")
        before, after, _, _, status = about[1:].split()
        plus, minus = (None if count == "-" else int(count) for count in counted.split("\t")[:2])
        change = FileChange(path=names[-1], status=status[0], insertions=plus, deletions=minus)
        if status == "D":
            return change.model_copy(update={"mode": before})
        size = int(git(self.path, "cat-file", "-s", f"{head}:{names[-1]}"))
        told = {"mode": after, "size": size, "old_path": names[0] if names[1:] else None}
        if after == "120000":
            told["link"] = git(self.path, "cat-file", "blob", f"{head}:{names[-1]}")
        return change.model_copy(update=told)

    def _commit(self, tree: str, text: CommitText, settings: CommitSettings) -> str:
        trailers = [text.body]
        if text.co_author:
            address = f"{text.co_author}@users.noreply.github.com"
            trailers.append(f"Co-authored-by: {text.co_author} <{address}>")
        if settings.signoff:
            trailers.append(f"Signed-off-by: {settings.name} <{settings.email}>")
        who = ("-c", f"user.name={settings.name}", "-c", f"user.email={settings.email}")
        words = ("-m", text.subject, "-m", "\n".join(trailers))
        made = ("commit-tree", tree, "-p", self.start_sha, *words)
        head = git(self.path, *who, *made, as_somebody=False)
        git(self.path, "update-ref", f"refs/made/{head}", head)
        return head


@dataclass(frozen=True)
class FreshClones:
    """Clones of one remote, and what was fetched of it last."""

    root: Path
    remote: Path
    branch: str = "main"

    def fetch_base(self, repository: str) -> None:
        """Fetch the base branch."""
        self._fetch()

    @contextmanager
    def open(self, ref: IssueRef, standing: PullRequestBase | None = None) -> Generator[FreshClone]:
        sha = self._fetch()
        head = self._head(ref) if standing else None
        bases = self._bases(sha, head or "", standing or PullRequestBase(frozenset()))
        start = head if head and standing and self._others(bases, head, standing.own) else sha
        place = Path(tempfile.mkdtemp(dir=self.root))
        made = ("-c", "remote.origin.fetch=+refs/made/*:refs/made/*")
        git(self.root, "clone", "-qn", *made, "--", str(self._kept), str(place / "tree"))
        git(place / "tree", "checkout", "-q", "-B", ref.branch, start)
        (place / "private").mkdir()
        about = standing if standing and head else PullRequestBase(frozenset())
        flags = (about.is_answered, about.is_reviewed)
        yield FreshClone(place / "tree", place / "private", sha, start, head, bases, *flags)
        if (place / "tree/.git/refs/made").exists():
            git(self._kept, "fetch", "-q", str(place / "tree"), "+refs/made/*:refs/made/*")
        shutil.rmtree(place)

    def base_file(self, repository: str, path: str, sha: str | None = None) -> bytes | None:
        if not self._kept.exists():
            return None
        return _content(self._kept, sha or self._held.read_text().strip(), path)

    def base_branch(self, repository: str) -> str:
        return self.branch

    def store_commit(self, ref: IssueRef, head_sha: str, place: Path) -> None:
        if not place.exists():
            git(self._kept, "update-ref", f"refs/made/{head_sha}", head_sha)
            wanted = (f"refs/made/{head_sha}", f"^{self.branch}")
            git(self._kept, "bundle", "create", "-q", str(place), *wanted)

    def ensure_commit(self, ref: IssueRef, head_sha: str, bundle: Path) -> bool:
        self._fetch()
        if not run_git(self._kept, "cat-file", "-e", head_sha).returncode:
            return True
        run_git(self._kept, "fetch", "-q", str(bundle), "+refs/made/*:refs/made/*")
        pushed = f"+refs/heads/{ref.branch}:refs/made/pushed"
        run_git(self._kept, "fetch", "-q", str(self.remote), pushed)
        return not run_git(self._kept, "cat-file", "-e", head_sha).returncode

    def base_sha(self, repository: str) -> str | None:
        return git(self._kept, "rev-parse", self.branch) if self._kept.exists() else None

    def conflicts(self, ref: IssueRef, base_sha: str, head_sha: str) -> tuple[str, ...]:
        merge = ("merge-tree", "--write-tree", "--name-only", "--no-messages")
        done = run_git(self._kept, *merge, base_sha, head_sha)
        return tuple(done.stdout.splitlines()[1:]) if done.returncode == 1 else ()

    def is_behind(self, ref: IssueRef, base_sha: str, head_sha: str) -> bool:
        self._fetch()
        self._head(ref)
        asked = ("merge-base", "--is-ancestor", base_sha, head_sha)
        return run_git(self._kept, *asked).returncode == 1

    def is_in_base(self, ref: IssueRef, start_sha: str, base_sha: str) -> bool:
        now = self._fetch()
        if run_git(self._kept, "cat-file", "-e", base_sha).returncode:
            return False
        shared = git(self._kept, "merge-base", "--all", start_sha, base_sha).split()
        asked = ("merge-base", "--is-ancestor")
        return not any(run_git(self._kept, *asked, sha, now).returncode for sha in shared)

    def merge(
        self, ref: IssueRef, base_sha: str, head_sha: str, settings: CommitSettings
    ) -> str | None:
        made = run_git(self._kept, "merge-tree", "--write-tree", base_sha, head_sha)
        if made.returncode:
            return None
        when = max(git(self._kept, "show", "-s", "--format=%ct", base_sha, head_sha).split())
        who = ("-c", f"user.name={settings.name}", "-c", f"user.email={settings.email}")
        tree = ("commit-tree", made.stdout.strip(), "-p", head_sha, "-p", base_sha, "-m", "Merge")
        dated = ("env", f"GIT_AUTHOR_DATE={when} +0000", f"GIT_COMMITTER_DATE={when} +0000", "git")
        done = subprocess.run(
            [*dated, "-C", str(self._kept), *who, *tree], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def remote_head(self, ref: IssueRef) -> str | None:
        return branch_head(self.remote, ref.branch)

    def delete_branch(self, ref: IssueRef, own: Collection[str]) -> bool:
        head = self._head(ref)
        if head is None or self._others((self._fetch(),), head, own):
            return False
        git(self.remote, "update-ref", "-d", f"refs/heads/{ref.branch}", head)
        return True

    def push(self, ref: IssueRef, head_sha: str, expected: str | None) -> None:
        if not self.remote.exists():
            message = f"{self.remote} is away; try again."
            raise UnavailableError(message)
        held = branch_head(self.remote, ref.branch)
        if held not in {None, expected, head_sha}:
            message = f"The branch {ref.branch} holds commits of somebody else; delete it."
            raise DeniedError(message)
        target = f"+{head_sha}:refs/heads/{ref.branch}"
        if run_git(self._kept, "push", "-q", str(self.remote), target).returncode:
            message = "The push was declined; change the rule."
            raise DeniedError(message)

    def push_attempt(self, ref: IssueRef, head_sha: str, number: int) -> str:
        name = f"refs/mulligan/attempts/{ref.number}-{number}"
        if run_git(self._kept, "push", "-q", str(self.remote), f"+{head_sha}:{name}").returncode:
            message = f"The commit {head_sha} is gone."
            raise DeniedError(message)
        return name

    def exists(self, ref: IssueRef) -> bool:
        """Say that no clone outlives its attempt."""
        return False

    def discard(self, ref: IssueRef) -> None:
        """Leave it at that: nothing is there to be removed."""

    def _head(self, ref: IssueRef) -> str | None:
        head = branch_head(self.remote, ref.branch)
        if head:
            pushed = f"+refs/heads/{ref.branch}:refs/made/{head}"
            git(self._kept, "fetch", "-q", str(self.remote), pushed)
        return head

    def _bases(self, base: str, head: str, standing: PullRequestBase) -> tuple[str, ...]:
        """List what the base branch is, and was where Mulligan's own head was made on it."""
        had = sorted(standing.bases) if head in standing.own else []
        here = (sha for sha in had if not run_git(self._kept, "cat-file", "-e", sha).returncode)
        return (base, *here)

    def _others(self, bases: Collection[str], head: str, own: Collection[str]) -> set[str]:
        below = (f"^{sha}" for sha in bases)
        return {*git(self._kept, "rev-list", head, *below).split()} - {*own}

    @property
    def _kept(self) -> Path:
        return self.root / "kept.git"

    @property
    def _held(self) -> Path:
        """The file in which git has the commit of the base branch."""
        return self._kept / "refs" / "heads" / self.branch

    def _fetch(self) -> str:
        if not self.remote.exists():
            message = f"{self.remote} is away; try again."
            raise UnavailableError(message)
        sha = branch_head(self.remote, self.branch)
        if sha is None:
            message = f"There is no branch {self.branch}; push one."
            raise MisconfiguredError(message)
        if not self._kept.exists():
            self._kept.mkdir(parents=True)
            git(self._kept, "init", "-q", "--bare", f"--initial-branch={self.branch}")
        if not self._held.exists() or self._held.read_text().strip() != sha:
            refspec = f"+{self.branch}:{self.branch}"
            git(self._kept, "fetch", "-q", "--update-head-ok", str(self.remote), refspec)
        return sha


@cache
def _content(kept: Path, sha: str, path: str) -> bytes | None:
    """Read a file of a commit, which cannot change; every step asks for the policy."""
    found = run_git(kept, "cat-file", "blob", f"{sha}:{path}")
    return None if found.returncode else found.stdout.encode()
