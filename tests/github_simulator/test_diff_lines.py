"""A patch of git is read into files and numbered lines."""

import pytest

from github_simulator.pages.diff import FileDiff, Line, read_diff

pytestmark = pytest.mark.pure

PATCH = """\
diff --git a/one.py b/one.py
index 111..222 100644
--- a/one.py
+++ b/one.py
@@ -3,3 +3,3 @@ def one():
 same
--- old
+diff --git x
\\ No newline at end of file
@@ -20 +20,0 @@
-last
diff --git "a/t\\303\\251.png" "b/t\\303\\251.png"
new file mode 100644
Binary files /dev/null and "b/t\\303\\251.png" differ
diff --git a/run b/run
old mode 100644
new mode 100755
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x\x0cy
"""


def test_a_patch_is_read() -> None:
    one, picture, run, gone = read_diff(["one.py", "té.png", "run", "gone"], PATCH)
    assert (one.path, one.change) == ("one.py", "changed")
    assert one.lines == (
        Line("hunk", "def one():"),
        Line("same", "same", 3, 3),
        Line("deleted", "-- old", 4, None),
        Line("added", "diff --git x", None, 4),
        Line("hunk", ""),
        Line("deleted", "last", 20, None),
    )
    assert (one.count("added"), one.count("deleted")) == (1, 2)
    assert picture == FileDiff("té.png", "binary", ())
    assert run == FileDiff("run", "changed", ())
    assert gone == FileDiff("gone", "deleted", (Line("hunk", ""), Line("deleted", "x\x0cy", 1)))


def test_an_empty_patch_has_no_files() -> None:
    assert read_diff([], "") == []
