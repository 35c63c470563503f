"""What happens to a pull request after it was opened: reviews, other people's commits, the end."""

from collections.abc import Generator
from pathlib import Path

import pytest

from github_simulator.pulls import LineComment
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import branch_head, commit_to, git, read_branch

FILES = {"a.txt": "one\n", "b.txt": "one\n"}
CHECK = {"name": "there", "run": "test -s a.txt"}
DOES_WHAT_IS_ASKED = """
for number in range(1, 9):
    if f'write line {number}' in prompt:
        wanted = number
        break
else:
    wanted = 0
previous = os.environ.get('MULLIGAN_PREVIOUS_DIFF')
if previous and 'git apply' in prompt:
    subprocess.run(['git', 'apply', previous], check=True)
with open('a.txt', 'a') as file:
    file.write(f'line {wanted}\\n')
print(f'Wrote line {wanted}')
"""


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, FILES, [CHECK], review={"settle": "0s"}) as made:
        made.agent(DOES_WHAT_IS_ASKED)
        yield made


def pull_of(here: MulliganInstallation) -> IssueRef:
    (pull,) = here.world.pulls_of(NAME)
    return IssueRef(NAME, pull.number)


def commits(here: MulliganInstallation, ref: IssueRef) -> list[str]:
    return git(here.bare, "rev-list", f"main..{ref.branch}").split()


def test_a_review_is_answered_by_an_attempt_that_has_read_it(here: MulliganInstallation) -> None:
    ref = here.issue()
    assert here.run("once").returncode == 0
    first, pull = branch_head(here.bare, ref.branch), pull_of(here)
    note = LineComment("a.txt", 2, "This should say more: write line 3")
    here.world.review(pull, "wes", "REQUEST_CHANGES", "Nearly.", [note])
    done = here.run("once")
    assert (done.returncode, done.stderr) == (0, "")
    one, two = here.attempts(ref)
    assert (one.outcome, two.outcome) == (Outcome.SUCCEEDED, Outcome.SUCCEEDED)
    assert (two.epoch, two.attempt) == (1, 2)
    told = here.prompt(ref, 2)
    for words in ("wes on a.txt:2", "write line 3", "Nearly.", "line 0", "stand in the pull"):
        assert words in told
    assert read_branch(here.bare, ref.branch, "a.txt") == "one\nline 0\nline 3"
    # Only Mulligan's commits were there, so it was made again from the base branch.
    assert commits(here, ref) == [two.head_sha]
    assert two.head_sha != first
    assert here.world.labels_of(ref) == ["mulligan:review"]
    found = here.world.issue_of(pull).pull
    assert found
    answers = [one for one in found.notes if one.in_reply_to]
    assert [one.author.login for one in answers] == ["mulligan-bot"]
    assert two.head_sha
    changed = f"Changed in {two.head_sha[:10]}.\nLine 3 is now `line 3`."
    assert answers[0].body.endswith(changed)


@pytest.mark.deep
def test_nobodys_commit_is_lost_in_three_rounds_of_review(here: MulliganInstallation) -> None:
    """An open pull request that a person also commits to survives three rounds of review."""
    ref = here.issue()
    here.run("once")
    pull, theirs = pull_of(here), list[str]()
    for number in (1, 2, 3):
        theirs.append(commit_to(here.bare, {"b.txt": f"{number}\n"}, ref.branch, "By hand"))
        here.world.review(pull, "wes", "REQUEST_CHANGES", f"Please write line {number}")
        before = set(commits(here, ref))
        assert here.run("once").returncode == 0
        last = here.attempts(ref)[-1]
        assert last.outcome is Outcome.SUCCEEDED
        assert last.start_sha == theirs[-1]
        assert before < set(commits(here, ref))
    assert set(theirs) < set(commits(here, ref))
    assert read_branch(here.bare, ref.branch, "a.txt") == "one\nline 0\nline 1\nline 2\nline 3"
    assert read_branch(here.bare, ref.branch, "b.txt") == "3"
    assert [meta.epoch for meta in here.attempts(ref)] == [1, 1, 1, 2]
    assert here.world.issue_of(pull).state == "open"
    assert here.world.labels_of(ref) == ["mulligan:review"]
