"""What root can do anyway is tried again as a user who is not root."""

import os
import re
from pathlib import Path

import pytest

from world.other_user import run_as_another_user

CHOSEN = {
    "tests/attacks/test_containment.py": "from_a_plain_process",
    "tests/attacks/test_shared_counters.py": "leaves_others",
    "tests/git/test_clean_start.py": "next_worktree and (closed or read_only)",
    "tests/sandbox/test_home.py": "set_up_closed or rights or 500",
    "tests/sandbox/test_image_root.py": "command or hostile or variable",
    "tests/sandbox/test_image_store.py": "rights or outside or etc_and_var",
    "tests/sandbox/test_layers.py": "lower or next_one or agents_writes or report or git",
    "tests/sandbox/test_links_of_the_path.py": "path_starts and (pipx or current or mise)",
}
"""Which tests of a file, by a part of their names."""


@pytest.mark.deep
@pytest.mark.skipif(os.getuid() != 0, reason="is not root, so all of these ran as a user already")
@pytest.mark.timeout(300)
def test_it_holds_for_a_user_who_is_not_root() -> None:
    chosen = " or ".join(f"({Path(file).name} and ({words}))" for file, words in CHOSEN.items())
    # bubblewrap has overlays from 0.11 on.
    said = run_as_another_user(tuple(CHOSEN), chosen)
    assert re.search(r"\n(58 passed, 22 skipped|80 passed)", said), said
