"""An agent cannot replace what set-up made for the checks, for itself or for others (SETUP-1).

Set-up makes tools in files that git ignores, so that the pull request would show nothing of it.
"""

import sys
from pathlib import Path
from textwrap import dedent

from pydantic import JsonValue

from mulligan.domain.outcome import Outcome
from mulligan.domain.result import WorkerResultMeta
from world.confined import sandbox
from world.place import MulliganInstallation, mulligan_installation

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
