"""An issue whose picture has what the text lacks is solved by an agent that looks at it."""

from collections.abc import Generator
from pathlib import Path

import pytest

from mulligan.domain.outcome import Outcome
from world.pictures import READER, picture_of
from world.place import MulliganInstallation, mulligan_installation
from world.repositories import read_branch

ID = "880fbe21-506b-458b-8be6-71ac826d92f5"
CHECK = {"name": "tests", "run": "grep -q 4711 answer.txt"}

LOOKS = f"""
{READER}
import re
place = os.environ["MULLIGAN_ATTACHMENTS"]
name = re.search(r"The answer: \\[image: (.+)\\]", prompt)[1]
log = re.search(r"\\[file: (.+)\\]", prompt)[1]
number = read_number(pathlib.Path(place, name).read_bytes())
try:
    pathlib.Path(place, name).write_text("overwritten")
except OSError:
    pass
hint = pathlib.Path(place, log).read_text()
if os.environ["MULLIGAN_ATTEMPT"] == "1":
    number = "0"
pathlib.Path("answer.txt").write_text(number + hint)
print("I looked at it.")
"""


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"answer.txt": "?\n"}, [CHECK]) as made:
        made.agent(LOOKS)
        yield made


def test_a_picture_solves_an_issue_and_a_retry_has_it_too(here: MulliganInstallation) -> None:
    here.world.uploads |= {ID: picture_of("4711"), "7/a.log": b"a \x1b[1mlog\x1b[0m\n"}
    at = f"{here.url}/user-attachments"
    body = f"The answer: ![a picture]({at}/assets/{ID})\n\nThe log: [a.log]({at}/files/7/a.log)"
    ref = here.issue(body=body)
    for _ in range(2):
        assert here.run("once").returncode == 0
    first, second = here.attempts(ref)
    assert (first.outcome, second.outcome) == (Outcome.CHECKS_FAILED, Outcome.SUCCEEDED)
    assert read_branch(here.bare, ref.branch, "answer.txt") == "4711a log"
    fetched = [one.path for one in here.world.requests if "/files/" in one.path]
    assert fetched == [f"/storage/user/1/files/{ID}", "/user-attachments/files/7/a.log"]
    verified = here.run("inspect", str(ref), "--verify")
    assert verified.returncode == 0, verified.stdout
