"""An agent cannot replace what set-up made for the checks, for itself or for others (SETUP-1).

Set-up makes tools in files that git ignores, so that the pull request would show nothing of it.
"""

import shlex
import shutil
import socket
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import JsonValue

from mulligan.domain.issue import IssueRef
from mulligan.domain.outcome import Outcome
from mulligan.domain.result import GuardKind, WorkerResultMeta
from world.confined import sandbox
from world.place import NAME, MulliganInstallation, mulligan_installation
from world.repositories import commit_to

PYTHON = Path(sys.executable).resolve()
SHOP = "def total(n):\n    return n * 3\n"
FILES = {"shop.py": SHOP, ".gitignore": "__pycache__/\n.tools/\n", "first.py": ""}
TOOLS = ("overwritten", "replaced", "linked", "by-a-check", "in-home")
TOOL = f"#!/bin/sh\nexec {PYTHON} -B -c 'import shop; assert shop.total(10) == 30'\n"
SET_UP: list[JsonValue] = [
    "mkdir .tools ~/tools",
    *(f"cat > .tools/{name} <<'END'\n{TOOL}END\n" for name in TOOLS),
    "chmod +x .tools/*; mv .tools/in-home ~/tools/in-home",
]
CHECKS = [
    {"name": "first", "run": f"{PYTHON} first.py"},
    *({"name": name, "run": f".tools/{name}"} for name in TOOLS[:-1]),
    {"name": "in-home", "run": "~/tools/in-home"},
]
CHANGE = "pathlib.Path('more.py').write_text('')\n"
ATTACK = dedent(
    """
    YES = '#!/bin/sh\\nexit 0\\n'
    pathlib.Path('shop.py').write_text('def total(n):\\n    return n * 4\\n')
    pathlib.Path('.tools/overwritten').write_text(YES)
    pathlib.Path('.tools/new').write_text(YES)
    os.chmod('.tools/new', 0o755)
    os.rename('.tools/new', '.tools/replaced')
    os.remove('.tools/linked')
    os.symlink('/bin/true', '.tools/linked')
    pathlib.Path('first.py').write_text(
        f"import os, pathlib\\n"
        f"pathlib.Path('.tools/by-a-check').write_text({YES!r})\\n"
        f"pathlib.Path(os.path.expanduser('~/tools/in-home')).write_text({YES!r})\\n"
    )
    """
)


def attempt(here: MulliganInstallation, agent: str) -> WorkerResultMeta:
    here.agent(agent)
    ref = here.issue()
    here.run("once")
    (meta,) = here.attempts(ref)
    return meta


def test_what_an_agent_or_a_check_replaced_judges_neither_this_change_nor_the_next(
    tmp_path: Path,
) -> None:
    sandbox()
    with mulligan_installation(
        tmp_path, FILES, CHECKS, setup=SET_UP, max_issue_attempts=1, baseline=False
    ) as here:
        here.configure(sandbox={"mode": "required", "network": "none", "read": [sys.base_prefix]})
        attacked, sound = attempt(here, ATTACK), attempt(here, CHANGE)
    # What set-up left for the first one is what the second one was given.
    assert len([*tmp_path.rglob("setup.log")]) == 1
    assert [check.name for check in attacked.checks if check.passed] == ["first"]
    assert sound.outcome is Outcome.SUCCEEDED


LINES_OF_COMMITS = {
    "a forced file in a directory of set-up": "echo evil > .tools/lib/a.pth",
    "a forced program of set-up": "echo evil > .tools/bin/tool",
    "a link in its place": "rm .tools/bin/tool; ln -s ../../ok .tools/bin/tool",
    "a directory in its place": "rm -r .tools/bin; mkdir .tools/bin; touch .tools/bin/x",
    "the whole directory as a link": "rm -r .tools; ln -s ok .tools",
    "an edited .gitignore": "echo > .gitignore; echo evil > .tools/bin/tool",
    "a nested .gitignore": "echo '!*' > .tools/.gitignore; echo x > .tools/bin/n",
    "a file that set-up compiled": "echo evil > src/fast.so",
    "a directory of set-up in a tracked one": "echo x > src/gen/x",
    "a move into it": "mkdir -p .tools/lib; git mv -f ok .tools/lib/ok",
    "through another name": "ln -s .tools v; echo evil > v/bin/tool",
    "a tracked directory as a link": "mkdir -p e/gen; cp src/a.py e; rm -r src; ln -s e src",
}
"""Ways to commit a file over what setup commands left."""


@pytest.mark.parametrize("line", LINES_OF_COMMITS.values(), ids=LINES_OF_COMMITS)
@pytest.mark.parametrize("mode", ["required", pytest.param("off", marks=pytest.mark.deep)])
def test_a_change_adds_nothing_to_what_set_up_left(tmp_path: Path, line: str, mode: str) -> None:
    if mode == "required":
        sandbox()
    files = {"src/a.py": "", "ok": "true\n", ".gitignore": ".tools\n*.so\ngen/\n"}
    left = "mkdir -p .tools/bin .tools/lib src/gen; echo false > .tools/bin/tool"
    set_up: list[JsonValue] = [left, "touch .tools/lib/b.pth src/fast.so src/gen/PKG-INFO"]
    checks = [{"name": "tool", "run": "sh .tools/bin/tool"}]
    with mulligan_installation(
        tmp_path, files, checks, setup=set_up, max_issue_attempts=1, baseline=False
    ) as here:
        here.configure(sandbox={"mode": mode, "network": "none", "read": [sys.base_prefix]})
        lines = f"{line}; git add -fA; git commit -qm x"
        made = attempt(here, f"import subprocess; subprocess.run({lines!r}, shell=True)\n")
    assert made.outcome is Outcome.SCOPE_VIOLATION, (made.outcome, made.files_modified)
    assert {each.kind for each in made.guard_violations} == {GuardKind.SET_UP}


def test_files_beside_what_set_up_left_are_an_ordinary_change(tmp_path: Path) -> None:
    sandbox()
    files = {"src/a.py": "", "build/rules.mk": "", ".gitignore": "build/\ngen/\n"}
    set_up: list[JsonValue] = ["mkdir -p src/gen; touch src/gen/x build/made.o"]
    with mulligan_installation(
        tmp_path, files, [{"name": "look", "run": "test -f build/made.o"}], setup=set_up
    ) as here:
        here.configure(sandbox={"mode": "required", "network": "none", "read": [sys.base_prefix]})
        line = "touch src/b.py build/more.mk; git add -f build/more.mk; git commit -qm x"
        made = attempt(here, f"import subprocess; subprocess.run({line!r}, shell=True)\n")
    assert made.outcome is Outcome.SUCCEEDED, made.error
    assert {each.path for each in made.files_modified} == {"src/b.py", "build/more.mk"}


def test_set_up_of_a_change_reaches_no_network_and_no_other_issue(tmp_path: Path) -> None:
    sandbox()
    files = {"shop.py": SHOP, ".gitignore": ".tools/\n__pycache__/\n", "deps.txt": "30\n"}
    tool = f"{PYTHON} -B -c 'import shop; assert shop.total(10) == '$(cat deps.txt)"
    with socket.create_server(("127.0.0.1", 0)) as packages:
        connect = f"import socket; socket.create_connection({packages.getsockname()!r})"
        lines: list[JsonValue] = [
            f'mkdir -p .tools; echo "{tool}" > .tools/check',
            f"grep -q 40 deps.txt || {PYTHON} -c {shlex.quote(connect)}",
        ]
        policy: dict[str, JsonValue] = {"run": lines, "inputs": ["deps.txt"]}
        checks = [{"name": "tool", "run": "sh .tools/check"}]
        with mulligan_installation(
            tmp_path, files, checks, setup=policy, max_issue_attempts=1, baseline=False
        ) as here:
            here.configure(
                sandbox={"mode": "required", "network": "none", "read": [sys.base_prefix]}
            )
            wrong = "pathlib.Path('shop.py').write_text('def total(n):\\n    return n * 4\\n')\n"
            deps = "pathlib.Path('deps.txt').write_text('{}\\n')\n"
            offline = attempt(here, CHANGE + deps.format(50))
            own = attempt(here, wrong + deps.format(40))
            other, sound = attempt(here, wrong), attempt(here, CHANGE)
    assert offline.outcome is Outcome.CHECKS_FAILED
    assert [(check.name, check.passed) for check in offline.checks] == [("setup", False)]
    assert "touches deps.txt" in offline.checks[0].digest
    # The tool is as this change asks for, which its diff shows.
    assert [(check.name, check.passed) for check in own.checks] == [("setup", True), ("tool", True)]
    assert other.outcome is Outcome.CHECKS_FAILED
    assert sound.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    "touched", [pytest.param("by-hand", marks=pytest.mark.deep), "requirements.txt"]
)
def test_what_an_agent_published_sets_up_nothing_for_others_and_reaches_no_network(
    tmp_path: Path, touched: str
) -> None:
    """With a person's commit above it, an agent's published work is what an attempt starts from."""
    sandbox()
    tool = f"{PYTHON} -B -c 'import shop; assert shop.total(10) == 30'"
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        connect = f"import socket; socket.create_connection({elsewhere.getsockname()!r})"
        steps = f"mkdir -p .tools; cat > .tools/check <<'END'\n{tool}\nEND\n"
        files = {"shop.py": SHOP, "steps": steps, "requirements.txt": "", ".gitignore": ".tools/\n"}
        with mulligan_installation(
            tmp_path,
            files,
            [{"name": "tool", "run": "sh .tools/check"}],
            # Their name is not among the inputs, and a change to them is not noticed.
            setup=["sh ./st*ps"],
            baseline=False,
            max_issue_attempts=2,
            review={"settle": "0s"},
        ) as here:
            here.configure(
                sandbox={"mode": "required", "network": "none", "read": [sys.base_prefix]}
            )
            planted = (
                f"{PYTHON} -c {shlex.quote(connect)}; mkdir -p .tools; echo true > .tools/check\n"
            )
            here.agent(f"pathlib.Path('steps').write_text({planted!r})\n")
            ref = here.issue()
            here.run("once")
            commit_to(here.bare, {touched: "x\n"}, ref.branch, "By hand")
            (pull,) = here.world.pulls_of(NAME)
            here.world.review(
                IssueRef(NAME, pull.number), "wes", "REQUEST_CHANGES", "More, please."
            )
            # As on the next day, or on another machine.
            shutil.rmtree(tmp_path / "work" / ".set-up")
            here.agent(CHANGE)
            here.run("once")
            assert [meta.outcome for meta in here.attempts(ref)] == [Outcome.SUCCEEDED] * 2
            here.agent(f"pathlib.Path('shop.py').write_text({SHOP.replace('3', '4')!r})\n")
            other = here.issue()
            here.run("once")
            outcomes = {meta.outcome for meta in here.attempts(other)}
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert outcomes == {Outcome.CHECKS_FAILED}
    assert len([*tmp_path.rglob("setup-start.log")]) == (touched == "requirements.txt")
