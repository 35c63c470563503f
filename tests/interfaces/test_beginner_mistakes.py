"""What a beginner types wrong: each gets one clear answer, and nothing is lost."""

import os
import re
import shutil
import socket
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from mulligan.domain.host import AS_ROOT
from mulligan.domain.issue import IssueRef
from world.fork_server import run_forked
from world.place import BIN, MAINTAINER, NAME, MulliganInstallation, mulligan_installation
from world.processes import wait_until
from world.repositories import git

UNKNOWN = IssueRef(NAME, 99)
WRITE = "pathlib.Path('notes.txt').write_text('two')\n"
POLICY = ".github/mulligan.yml"
ONCE = ("once", "--config", "mulligan.yml")
PROGRAMS = ("git", "sh", "env")
"""The programs of a machine without a sandbox."""


@dataclass
class Beginner:
    """Somebody with a configuration, a clone of the repository, and an issue without a label."""

    here: MulliganInstallation
    issue: IssueRef
    environment: dict[str, str]
    port: int

    @property
    def clone(self) -> Path:
        return self.here.directory / "clone"

    def edit(self, old: str, new: str) -> None:
        """Replace text in the configuration."""
        text = self.here.config.read_text()
        assert old in text
        self.here.config.write_text(text.replace(old, new, 1))

    def write_policy(self, text: str) -> None:
        """Write the policy into the clone, without a commit."""
        (self.clone / ".github").mkdir()
        (self.clone / POLICY).write_text(text)

    def commit_policy(self, text: str) -> None:
        """Commit a policy, without a push."""
        self.write_policy(text)
        git(self.clone, "add", POLICY)
        git(self.clone, "commit", "--quiet", "--message", "Add a policy")

    def without_sandbox(self) -> None:
        """Leave only the programs on the PATH that Mulligan needs besides bubblewrap."""
        self.environment["PATH"] = str(self.here.directory / "few")
        (self.here.directory / "few").mkdir()
        for name in PROGRAMS:
            (self.here.directory / "few" / name).symlink_to(shutil.which(name) or "")
        del self.here.settings["sandbox"]
        self.here.configure()

    def kept(self, *, is_noted: bool = False) -> object:
        """Return what a mistake must leave as it is: on GitHub, in the clone and the ledger."""
        world, bare = self.here.world, self.here.bare
        seen = [(issue.number, issue.title) for issue in world.repositories[NAME].visible()]
        files = {
            path: path.read_bytes()
            for path in (*self.clone.rglob("*"), self.here.config, self.here.directory / "issue.md")
            if path.is_file() and ".git" not in path.parts
        }
        comments = [comment.body for comment in world.comments_of(self.issue)]
        place = self.here.directory
        asked = ("status", "--json", "--config", "good.yml")
        known = run_forked(asked, place, {"PATH": os.environ["PATH"], "HOME": str(place)})
        assert known.returncode == 0
        notes = None if is_noted else (comments, known.stdout)
        history = git(bare, "show-ref"), git(self.clone, "log")
        return seen, world.labels_of(self.issue), notes, files, history


@pytest.fixture
def beginner(tmp_path: Path) -> Generator[Beginner]:
    with (
        mulligan_installation(tmp_path, {"notes.txt": "one\n", "src/a.txt": "a\n"}) as here,
        socket.create_server(("127.0.0.1", 0)) as taken,
    ):
        here.agent(WRITE)
        number = here.world.open_issue(NAME, "Mend it", "Please mend it.", "zoe").number
        git(tmp_path, "clone", "--quiet", str(here.bare), "clone")
        (tmp_path / "plain").mkdir()
        shutil.copy(here.config, tmp_path / "good.yml")
        (tmp_path / "issue.md").write_text("Please mend it.\n")
        path = {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path)}
        environment = path | here.environment
        yield Beginner(here, IssueRef(NAME, number), environment, taken.getsockname()[1])


def nothing(_: Beginner) -> None:
    """Set up nothing: the command itself is the mistake."""


@dataclass(frozen=True)
class Mistake:
    """A command, where it is typed, what is wrong, and the answer.

    The answer is all that the command says on standard error. With `is_shown`, it is a part of what
    the command shows on standard output. With `is_noted`, the issue says why it waits.
    """

    typed: tuple[str, ...]
    answer: str
    code: int = 2
    wrong: Callable[[Beginner], object] = nothing
    place: str = "."
    is_shown: bool = False
    is_noted: bool = False


def unset_token(who: Beginner) -> None:
    del who.environment["GITHUB_TOKEN"]


def name_missing_agent(who: Beginner) -> None:
    who.here.world.label(who.issue, "mulligan", MAINTAINER)
    who.here.configure(agent={"kind": "command", "command": ["coder"]})


MISTAKES = {
    "a misspelled command": Mistake(
        ("stauts",), "No such command 'stauts'. Did you mean 'stats', 'status', 'state'?"
    ),
    "a misspelled option": Mistake(
        ("once", "--confg", "x"), "No such option: --confg (Possible options: --config)"
    ),
    "no configuration": Mistake(
        ("once",),
        "No configuration at mulligan.yml. Run `mulligan init` to write one, or name another file"
        " with --config FILE.",
        place="/",
    ),
    "the wrong directory": Mistake(
        ("once",),
        "No configuration at mulligan.yml. There is one above: add --config ../../mulligan.yml.",
        place="clone/src",
    ),
    "no token": Mistake(
        ONCE,
        "mulligan.yml, line 9: github.token needs the environment variable GITHUB_TOKEN, which is"
        " not set; run `export GITHUB_TOKEN=…`.",
        wrong=unset_token,
    ),
    "a wrong token": Mistake(
        ONCE,
        f"{NAME}: GitHub refused the token (Bad credentials). Replace the one that github.token or"
        " github.token_file names, such as $GITHUB_TOKEN.",
        code=1,
        wrong=lambda who: who.environment.update(GITHUB_TOKEN="ghp_wrong"),
    ),
    "no such directory": Mistake(
        ("init", "helo"), "{here}/helo is not a directory. Name the directory of a clone."
    ),
    "not a clone": Mistake(
        ("rehearse", "issue.md", "plain"),
        "{here}/plain is not the top directory of a git repository. Name the directory of a clone.",
        wrong=lambda who: (who.here.directory / "issue.md").write_text("# Mend it\n"),
    ),
    "no policy": Mistake(
        ("check", "clone"),
        "{here}/clone has no .github/mulligan.yml, so Mulligan would publish every change without"
        " verification. Run `mulligan init` to propose one, or name a policy file with --policy"
        " FILE.",
    ),
    "a policy that is not pushed": Mistake(
        ("doctor", "--config", "mulligan.yml"),
        "The base branch has no .github/mulligan.yml, so Mulligan publishes changes without"
        " verification. → Commit the file and push it; `mulligan init` proposes one.",
        code=0,
        wrong=lambda who: who.commit_policy("checks: [{name: tests, run: make test}]\n"),
        is_shown=True,
    ),
    "a misspelled key": Mistake(
        ONCE,
        "mulligan.yml, line 1: agnet is an unknown key; did you mean agent?",
        wrong=lambda who: who.edit("agent:", "agnet:"),
    ),
    "a misspelled key of the policy": Mistake(
        ("check", "clone"),
        "{here}/clone/.github/mulligan.yml, line 1: chekcs is an unknown key; did you mean checks?",
        wrong=lambda who: who.write_policy("chekcs: []\n"),
    ),
    "a misspelled label": Mistake(
        ("explain", "1", "--config", "mulligan.yml"),
        "It will not be worked on: The label 'mulligan' is not on it; it has 'mulligna'. Add"
        " 'mulligan' instead.",
        code=0,
        wrong=lambda who: who.here.world.label(who.issue, "mulligna", MAINTAINER),
        is_shown=True,
    ),
    **{
        f"the number of no issue, for {verb}": Mistake(
            (*verb.split(), str(UNKNOWN), "--config", "mulligan.yml"),
            f"Issue {UNKNOWN} not found on GitHub. Check its number; it may have been deleted or"
            " transferred.",
            code=1,
        )
        for verb in ("work", "work --dry-run", "explain", "retry", "skip")
    },
    "the number of no known issue": Mistake(
        ("inspect", "99", "--config", "mulligan.yml"),
        f"{UNKNOWN} is not in the ledger. To list known issues, run `mulligan status`.",
    ),
    "text instead of an issue": Mistake(
        ("work", "fix the login", "--config", "mulligan.yml"),
        "'fix the login' does not name an issue; write OWNER/NAME#NUMBER.",
    ),
    "text instead of a file": Mistake(
        ("rehearse", "Fix the login", "clone"),
        "No file 'Fix the login'. Write the issue into a Markdown file, with the title as its first"
        " line (# Title), and name that file.",
    ),
    "an issue without a title": Mistake(
        ("rehearse", "issue.md", "clone"),
        "issue.md has no heading. Add one as the first line; it becomes the title: # Title",
    ),
    "a repository that is not configured": Mistake(
        ("work", "acme/tool#1", "--config", "mulligan.yml"),
        "acme/tool is not in the configuration. Add it to `repositories` in mulligan.yml.",
    ),
    "an agent that is not installed": Mistake(
        ONCE,
        "Mulligan starts no attempt until this is fixed: The agent's program 'coder' was not found."
        " Install it on the PATH of this process, or fix agent.command.",
        code=1,
        wrong=name_missing_agent,
        is_noted=True,
    ),
    "a check that is not installed": Mistake(
        ("check", "clone"),
        "'mkae' not found. It is the program of the check 'tests'; install it in a setup command,"
        " or change the check's command.",
        wrong=lambda who: who.write_policy("checks: [{name: tests, run: mkae test}]\n"),
    ),
    "no sandbox": Mistake(
        ONCE,
        "No sandbox works here: bubblewrap is not installed. Install it, on Debian and Ubuntu with:"
        " apt-get install bubblewrap. Or write `sandbox: off` in mulligan.yml: agents, setup"
        " commands and checks then have all rights of Mulligan's user.",
        wrong=Beginner.without_sandbox,
    ),
    "a port in use": Mistake(
        ("simulate", "--directory", "practice", "--port", "{port}"),
        "The simulator cannot listen on port {port}: Address already in use. Choose another port:"
        " --port {next}",
        code=1,
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_answer_is_clear_and_nothing_is_lost(name: str, beginner: Beginner) -> None:
    mistake = MISTAKES[name]
    mistake.wrong(beginner)
    before = beginner.kept(is_noted=mistake.is_noted)
    done = typed(mistake, beginner)
    assert "Traceback" not in done.stdout + done.stderr
    answer = expected(mistake, beginner)
    if mistake.is_shown:
        assert answer in plain(done.stdout)
    else:
        assert plain(done.stderr) == answer
    assert done.returncode == mistake.code
    assert beginner.kept(is_noted=mistake.is_noted) == before


@pytest.mark.parametrize("name", MISTAKES)
def test_an_answer_has_two_sentences_at_most(name: str) -> None:
    """A third one is an alternative, and begins with `Or`."""
    answer = MISTAKES[name].answer
    assert len(re.findall(r"[.?](?= (?!Or )|$)", answer)) <= 2
    assert len(answer.split()) <= 40


def test_a_second_worker_is_refused_and_the_first_continues(beginner: Beginner) -> None:
    """The port of the first one's dashboard is in use, too: it works without."""
    here = beginner.here
    here.agent(WRITE)
    here.configure(dashboard={"listen": f"127.0.0.1:{beginner.port}"}, poll={"interval": "300ms"})
    first = here.start("run")
    try:
        assert first.stderr
        closed = next(line for line in first.stderr if "event=dashboard_closed" in line)
        assert (
            f"The dashboard cannot listen on 127.0.0.1:{beginner.port} (Address already in use)."
            " Free the port, or name another in dashboard.listen."
        ) in closed
        for command in (("run",), ("once",), ("work", "1")):
            second = here.run(*command)
            assert re.fullmatch(
                rf"mulligan: `mulligan run` \(process {first.pid}, since \S+ \S+ UTC\) already uses"
                rf" {here.directory}; wait for it or stop it\.\n",
                second.stderr,
            )
            assert (second.returncode, second.stdout) == (2, "")
        here.world.label(beginner.issue, "mulligan", MAINTAINER)
        wait_until(lambda: here.world.labels_of(beginner.issue) == ["mulligan:review"])
    finally:
        first.kill()
        first.communicate()


def typed(mistake: Mistake, who: Beginner) -> CompletedProcess[str]:
    """Type the command."""
    arguments = [each.replace("{port}", str(who.port)) for each in mistake.typed]
    return run_forked(arguments, who.here.directory / mistake.place, who.environment)


def expected(mistake: Mistake, who: Beginner) -> str:
    """Return the answer with the places and ports of this test."""
    values = {"here": who.here.directory, "port": who.port, "next": who.port + 1}
    return re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), mistake.answer)


def plain(said: str) -> str:
    """Return what was said without its frame, name and wrapping, and the warning for root."""
    lines = [line for line in said.splitlines() if AS_ROOT not in line and line[:1] not in "╭╰"]
    text = " ".join(" ".join(line.strip("│ ") for line in lines).split())
    return re.sub(r"^(mulligan: |Usage: .* for help\. )", "", text)
