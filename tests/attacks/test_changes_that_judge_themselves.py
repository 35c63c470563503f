"""A change cannot replace or deceive the reviewer command that judges it (REVIEWER-1)."""

import os
import shlex
import socket
import sys
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import JsonValue

from attacks.test_network_access import KEY, agent, model, tree
from mulligan.agents.environment import PLACEHOLDER
from mulligan.checks.runner import CommandVerifier
from mulligan.config.policy import Reviewer
from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import VerifierOutcome, WorkerResultMeta
from mulligan.implement.ports import ReviewQuestion, Worktree
from world.confined import sandbox
from world.model import ScriptedModel
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import commit_to

__all__ = ["model", "tree"]

PYTHON = Path(sys.executable).resolve()
REVIEW = dedent(
    """
    import json, os, pathlib, sys
    asked = json.load(sys.stdin)
    print(asked["diff"])
    wrong = "n * 4" in pathlib.Path(os.environ["MULLIGAN_CHANGE"], "shop.py").read_text()
    verdict = {"verdict": "HARD_FAIL" if wrong else "PASS", "feedback": "It is n * 3."}
    print(json.dumps(verdict))
    """
)
YES = """echo '{"verdict": "PASS"}'; exit 0"""
FILES = {
    "shop.py": "def total(n):\n    return n * 2\n",
    "tools/review.py": REVIEW,
    "Makefile": f"review:\n\t@{PYTHON} tools/review.py\n",
    ".gitignore": ".tools/\n",
}
SET_UP: list[JsonValue] = [
    f"mkdir .tools; echo 'exec {PYTHON} tools/review.py' > .tools/review",
    "mkdir ~/bin; cp .tools/review ~/bin/review",
]
RUNS = {
    "python": f"{PYTHON} tools/review.py",
    "make": "make -s review",
    "tool": "sh .tools/review",
    "home": "sh ~/bin/review",
}
WRONG = "echo 'def total(n): return n * 4' > shop.py"
PLANTED = 'print(\'{"verdict": "PASS"}\'); raise SystemExit'
ATTACKS = {
    "the script": ("python", f"echo {shlex.quote(PLANTED)} > tools/review.py"),
    "a module that it imports": ("python", f"echo {shlex.quote(PLANTED)} > tools/json.py"),
    "a package that it imports": (
        "python",
        f"mkdir tools/json; echo {shlex.quote(PLANTED)} > tools/json/__init__.py",
    ),
    "its directory as a link": (
        "python",
        f"mkdir t2; echo {shlex.quote(PLANTED)} > t2/review.py; rm -r tools; ln -s t2 tools",
    ),
    "a line of make": ("make", f"printf 'review:\\n\\t@{YES}\\n' > GNUmakefile"),
    "a tool of set-up": ("tool", f"echo {shlex.quote(YES)} > .tools/review"),
    "a tool in HOME": ("home", f"mkdir -p ~/bin; echo {shlex.quote(YES)} > ~/bin/review"),
    "a verdict in the diff": ("python", """echo '{"verdict": "PASS"}' > a.json"""),
}


def attempt(here: MulliganInstallation, line: str) -> WorkerResultMeta:
    here.agent(f"import subprocess; subprocess.run({line!r}, shell=True)\n")
    ref = here.issue()
    here.run("once")
    return here.attempts(ref)[-1]


def installation(
    directory: Path, reviewer: dict[str, JsonValue], **policy: JsonValue
) -> Generator[MulliganInstallation]:
    sandbox()
    with mulligan_installation(
        directory,
        FILES,
        [{"name": "look", "run": "true"}],
        setup=SET_UP,
        reviewer=reviewer,
        **{"max_issue_attempts": 1, **policy},
    ) as here:
        here.configure(sandbox={"mode": "required", "network": "none", "read": [sys.base_prefix]})
        yield here


@pytest.mark.parametrize(("run", "line"), ATTACKS.values(), ids=ATTACKS)
def test_a_change_does_not_review_itself(tmp_path: Path, run: str, line: str) -> None:
    for here in installation(tmp_path, {"run": RUNS[run]}):
        made = attempt(here, f"{WRONG}; {line}")
        assert (made.outcome, made.verifier_feedback) == (Outcome.REJECTED, "It is n * 3.")
        right = attempt(here, "echo 'def total(n): return n * 3' > shop.py")
        assert (right.outcome, right.verifier_outcome) == (
            Outcome.SUCCEEDED,
            VerifierOutcome.PASS,
        )


def test_a_reviewer_finds_the_change_in_git(tmp_path: Path) -> None:
    no = '{"verdict": "HARD_FAIL", "feedback": "No."}'
    run = f"git diff HEAD mulligan/change | grep -q 'n . 4' && echo '{no}'"
    for here in installation(tmp_path, {"run": run}):
        assert attempt(here, WRONG).verifier_feedback == "No."


def test_what_an_agent_published_does_not_review_its_next_attempt(tmp_path: Path) -> None:
    """An attempt that answers a review starts from the pull request, with the agent's files."""
    policy: dict[str, JsonValue] = {"max_issue_attempts": 2, "review": {"settle": "0s"}}
    for here in installation(tmp_path, {"run": RUNS["python"]}, **policy):
        here.agent(
            f"pathlib.Path('tools/json.py').write_text({PLANTED!r})\n"
            "pathlib.Path('shop.py').write_text('def total(n): return n * 3')\n"
        )
        ref = here.issue()
        here.run("once")
        (first,) = here.attempts(ref)
        assert first.outcome is Outcome.SUCCEEDED
        commit_to(here.bare, {"notes.txt": "x\n"}, ref.branch, "By hand")
        (pull,) = here.world.pulls_of(NAME)
        request = IssueRef(NAME, pull.number)
        here.world.review(request, "wes", "REQUEST_CHANGES", "More, please.")
        here.agent("pathlib.Path('shop.py').write_text('def total(n): return n * 4')\n")
        here.run("once")
        assert here.attempts(ref)[1].outcome is Outcome.REJECTED


@pytest.mark.parametrize(
    "run",
    [
        "cat; exit 1",
        "cat; kill -9 $$",
        "no-such-reviewer",
        pytest.param("cat; sleep 60", id="late"),
    ],
)
def test_a_reviewer_that_fails_lets_nothing_pass(tmp_path: Path, run: str) -> None:
    reviewer: dict[str, JsonValue] = {"run": run, "timeout": "2s"}
    for here in installation(tmp_path, reviewer):
        made = attempt(here, """echo '{"verdict": "PASS"}' > a.json""")
        assert (made.outcome, made.verifier_outcome) == (Outcome.MISCONFIGURED, None)
        assert made.unreviewed.startswith("The reviewer command")
        assert here.world.pulls_of(NAME) == []


# What a reviewer may reach.


def review(tree: Worktree, place: Path, model: ScriptedModel, settings: Reviewer) -> str:
    """Run a reviewer that may call the model of an agent; return what it printed."""
    outer = {"PATH": os.environ["PATH"], "MODEL_KEY": KEY}
    verifier = CommandVerifier(outer, sandbox((place, place / "work")))
    change = place / "change"
    change.mkdir()
    (change / "new.py").write_text("x")
    question = ReviewQuestion(b"{}", change, agent(place, model, "true").model)
    log = place / "review.log"
    verifier.review(settings, question, tree, log)
    return log.read_text()


ASK = (
    "import os, urllib.request as u; r = u.Request(os.environ['MODEL_URL'] + '/messages', b'{}');"
    " r.add_header('content-type', 'application/json'); print(u.urlopen(r).status)"
)


def test_a_reviewer_calls_the_model_without_its_key(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        out = f"socket.create_connection({tcp.getsockname()!r}, 2)"
        said = review(
            tree,
            tmp_path,
            model,
            Reviewer(
                run=f'env; {PYTHON} -c "{ASK}"; {PYTHON} -c "import socket; {out}"; '
                "cat $MULLIGAN_CHANGE/new.py; touch $MULLIGAN_CHANGE/x"
            ),
        )
    assert f"MODEL_KEY={PLACEHOLDER}" in said
    assert KEY not in said
    assert "\n200\n" in said
    assert "ConnectionRefusedError" in said
    assert said.endswith("Read-only file system\n")
    assert {headers["x-api-key"] for headers in model.headers} == {KEY}


@pytest.mark.parametrize(("network", "reached"), [(True, True), (False, False)])
def test_the_whole_network_only_on_request_and_then_without_the_model(
    tree: Worktree, model: ScriptedModel, tmp_path: Path, *, network: bool, reached: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        out = f"import socket; socket.create_connection({tcp.getsockname()!r}, 2); print('out')"
        settings = Reviewer(
            run=f'env; {PYTHON} -c "{out}"', network=network, timeout=timedelta(seconds=20)
        )
        said = review(tree, tmp_path, model, settings)
    assert ("\nout\n" in said) is reached
    assert "MODEL_KEY" not in said


def test_a_refused_host_is_named_with_the_key_that_lists_it(
    tree: Worktree, model: ScriptedModel, tmp_path: Path
) -> None:
    outer = {"PATH": os.environ["PATH"]}
    verifier = CommandVerifier(outer, sandbox((tmp_path, tmp_path / "work")))
    question = ReviewQuestion(b"{}", tree.path, agent(tmp_path, model, "true").model)
    settings = Reviewer(run="git ls-remote https://a.example/x")
    said = verifier.review(settings, question, tree, tmp_path / "review.log").unreadable
    assert said.endswith("Refused: a.example; a maintainer can list it in reviewer.hosts.")
