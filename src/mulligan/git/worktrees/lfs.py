"""Find files that belong in Git LFS and whose content is not an LFS pointer."""

import os
from collections.abc import Collection, Mapping

from mulligan.domain.lfs import MAX_POINTER_BYTES, POINTER
from mulligan.git.repository import Repository
from mulligan.git.worktrees.left_out import paths_of
from mulligan.git.worktrees.reset import IssueWorktree


def raw_lfs_files(
    site: IssueWorktree, start_sha: str, written: Mapping[str, tuple[str, int]]
) -> list[str]:
    """List the written files whose raw content is where the start commit wants a pointer.

    `written` maps paths to blobs and their sizes. The pointer of an empty file is empty.
    """
    large = [path for path in in_lfs(site, start_sha, written) if written[path][1]]
    small = {written[path][0] for path in large if written[path][1] <= MAX_POINTER_BYTES}
    pointers = {blob for blob, text in small_blobs(site, small).items() if POINTER.fullmatch(text)}
    return [path for path in large if written[path][0] not in pointers]


def in_lfs(site: IssueWorktree, start_sha: str, paths: Mapping[str, object]) -> list[str]:
    """Return the paths with `filter=lfs`, by the attributes of the start commit."""
    if not paths:
        return []
    # The mirror switches all filters off, so its own git directory cannot tell.
    place = site.paths.git_dir / "attributes"
    for part in ("objects", "refs"):
        (place / part).mkdir(parents=True, exist_ok=True)
    (place / "HEAD").write_text("ref: refs/heads/none\n")
    git = Repository(
        site.mirror.name,
        place,
        site.mirror.outer,
        alternates=(site.mirror.paths.mirror / "objects",),
        is_limited=True,
    )
    git.read("read-tree", start_sha)
    listed = git.read(
        *("check-attr", "--cached", "--stdin", "-z", "filter"),
        stdin=b"\0".join(map(os.fsencode, paths)),
    )
    fields = paths_of(listed)
    return [path for path, _, value in zip(*[iter(fields)] * 3, strict=True) if value == "lfs"]


def small_blobs(site: IssueWorktree, blobs: Collection[str]) -> dict[str, bytes]:
    """Read small blobs, with one command."""
    if not blobs:
        return {}
    wanted = sorted(blobs)
    rest = site.git.read("cat-file", "--batch", stdin="".join(f"{b}\n" for b in wanted).encode())
    contents = dict[str, bytes]()
    for blob in wanted:
        about, _, rest = rest.partition(b"\n")
        size = int(about.split()[2])
        contents[blob], rest = rest[:size], rest[size + 1 :]
    return contents
