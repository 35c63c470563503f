"""Raw content is found where the base branch wants a pointer of Git LFS, as git itself tells."""

from pathlib import Path

import pytest

from mulligan.config.policy import CommitSettings
from mulligan.domain.attempt import Change
from world.checkouts import REF, TEXT, run_in_worktree, worktrees_of
from world.repositories import make_remote

VERSION = "version https://git-lfs.github.com/spec/v1"
POINTER = f"{VERSION}\noid sha256:{'a' * 64}\nsize 12345\n"
FILES = {
    ".gitattributes": "[attr]big filter=lfs diff=lfs\n*.png filter=lfs -text\n*.bin big\n",
    "art/.gitattributes": "plain.png -filter\n*.psd filter=lfs\n",
    "logo.png": POINTER,
    "art/plain.png": "raw\n",
    "README.md": "Adds.\n",
}


def after(tmp_path: Path, files: dict[str, str], *lines: str) -> Change:
    remote = make_remote(tmp_path / "remote.git", files)
    with worktrees_of(tmp_path / "work", remote).open(REF) as tree:
        run_in_worktree(tree, *lines)
        return tree.capture(TEXT, CommitSettings())


@pytest.mark.parametrize(
    ("lines", "raw"),
    [
        ("printf '\\x89PNG' > logo.png; echo x > new.png", ("logo.png", "new.png")),
        ("head -c 5000 /dev/urandom > deep.png; mkdir -p a/b; echo x > a/b/c.bin", None),
        ("echo x > art/a.psd; echo x > a.psd; echo x > art/plain.png", ("art/a.psd",)),
        ("echo x > $'odd\\n\\xff.png'", ("odd\n\ufffd.png",)),
        ("echo x >> logo.png", ("logo.png",)),
        ("echo '*.png -filter' > .gitattributes; echo x > new.png", ("new.png",)),
        ("git rm -q logo.png; echo x > README.md", ()),
        ("mkdir moved; git mv logo.png moved/renamed.png", ()),
        ("cp logo.png copy.png; chmod +x logo.png; : > empty.png; ln -s x link.png", ()),
        ("sed -i s/12345/1/ logo.png", ()),
        ("sed -i '1a ext-0-foo sha256:bb' logo.png", ()),
        ("echo '*.md filter=lfs' >> .gitattributes; echo x > README.md", ()),
    ],
)
def test_raw_content_is_named_and_a_pointer_is_fine(
    tmp_path: Path, lines: str, raw: tuple[str, ...] | None
) -> None:
    expected = ("a/b/c.bin", "deep.png") if raw is None else raw
    assert after(tmp_path, FILES, lines).raw_lfs_files == expected


def test_without_attributes_nothing_belongs_in_lfs(tmp_path: Path) -> None:
    change = after(
        tmp_path, {"README.md": "x\n"}, "echo '*.png filter=lfs' > .gitattributes; > a.png"
    )
    assert change.raw_lfs_files == ()


def test_very_many_pointers_are_read_at_once(tmp_path: Path) -> None:
    lines = "for n in {1..1200}; do sed s/12345/$n/ logo.png > $n.png; done; echo x > 700.png"
    assert after(tmp_path, FILES, lines).raw_lfs_files == ("700.png",)
