"""What the ledger says an attempt was told is what its process read, to the byte."""

import json
from pathlib import Path

from world.place import mulligan_installation

CHECK = {"name": "two", "run": "grep -qx two notes.txt || { echo a.py:1: not $((1 + 1)); exit 1; }"}
AGENT = """
import hashlib
print('read', hashlib.sha256(prompt.encode()).hexdigest(), '\\x1b[2J')
pathlib.Path('notes.txt').write_text('two' if 'not 2' in prompt else 'half \u2603')
"""


def test_the_recorded_hash_is_of_what_the_agent_read(tmp_path: Path) -> None:
    with mulligan_installation(tmp_path, {"notes.txt": "two\n"}, [CHECK]) as here:
        here.agent(AGENT)
        ref = here.issue("Mend \u2603 it", "With `$(date)`, \U0001f426 and\r\ntwo line ends.")
        assert here.run("once").returncode == 0
        for number in (1, 2):
            told = here.run("inspect", str(ref), "--attempt", str(number), "--manifest").stdout
            read = here.run("inspect", str(ref), "--attempt", str(number), "--log").stdout
            assert f"read {json.loads(told)['delivered_hash']}" in read
            assert "\x1b" not in read
        raw = here.run("inspect", str(ref), "--log", "--raw").stdout
        assert "\x1b[2J" in raw
        proved = here.run("inspect", str(ref), "--verify")
        assert (proved.returncode, proved.stdout.count("as recorded")) == (0, 2)
        (prompt,) = (tmp_path / "work" / "artifacts").rglob("2/prompt.md")
        prompt.write_text("Do something else.")
        proved = here.run("inspect", str(ref), "--verify")
        assert proved.returncode == 1
        assert "attempt 2: prompt.md was changed" in proved.stdout
        nothing = here.run("inspect", str(ref), "--attempt", "9")
        assert (nothing.returncode, nothing.stdout) == (2, "")
        assert f"{ref} has no attempt 9" in nothing.stderr
