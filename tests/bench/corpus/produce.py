"""Run real tools on small projects and keep what they say, with what a digest has to name of it.

    python tests/bench/corpus/produce.py TOOLS [tool ...]

TOOLS is the directory that `tools.sh` filled; it is seen by the tools as /srv, a project as /repo,
and in the second run as where GitHub's runners have it. Paths of the machine are never seen, so
none have to be rewritten.
"""

import gzip
import json
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NotRequired, Required, TypedDict
from xml.etree.ElementTree import ParseError

import yaml
from wanted import COLOURS, FIRST, READERS, SECOND, Wanted, at

HERE = Path(__file__).parent
CASES = HERE / "cases"
SCRATCH = "/tmp"  # noqa: S108 - the box's own
HOLD_OUT = 3
MOST_WANTED = 40
AT_ONCE = 3
JAVASCRIPT = re.compile(r"\b(?:eslint|tsc|jest)\b")
SCRIPTS = (".js", ".ts", ".mjs", ".css", "package.json")
PLACE = re.compile(r"([\w./@-]+\.\w+):(\d+)$")
PROBLEMS = (
    *(AssertionError, KeyError, ValueError, OSError, ParseError),
    subprocess.TimeoutExpired,
)
PATH = (
    "/srv/js/node_modules/.bin:/srv/venv/bin:/srv/cargo/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin"
)


class Report(TypedDict):
    kind: str
    run: str
    file: NotRequired[str]


class Recipe(TypedDict, total=False):
    tool: Required[str]
    name: Required[str]
    run: Required[str]
    again: str
    setup: str
    files: dict[str, str]
    env: dict[str, str]
    report: Report
    expect: list[list[str | list[str]]]
    need: int


class Box:
    """A project in a world of its own: no network, no paths of this machine, another user."""

    def __init__(self, tools: Path, recipe: Recipe, where: str) -> None:
        self.tools, self.recipe, self.where = tools, recipe, where
        self.directory = tempfile.TemporaryDirectory(prefix="corpus-")
        self.project = Path(self.directory.name)
        for name, text in recipe.get("files", {}).items():
            file = self.project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if "setup" in recipe:
            done = self.run(recipe["setup"])
            assert done.returncode == 0, done.stdout

    def run(self, line: str) -> subprocess.CompletedProcess[bytes]:
        """Run a shell line, all that it says in one stream."""
        env = {"PATH": PATH, "HOME": "/home/dev", "LANG": "C.UTF-8", "CI": "1", "TERM": "dumb"}
        env |= {
            "CARGO_HOME": f"{SCRATCH}/cargo",
            "RUSTUP_HOME": "/srv/rustup",
            "GOFLAGS": "-mod=mod",
        }
        env |= {"GOPROXY": "off", "GOCACHE": f"{SCRATCH}/go-build", "PYTHONDONTWRITEBYTECODE": "1"}
        env |= {"NO_UPDATE_NOTIFIER": "1", "GRADLE_USER_HOME": f"{SCRATCH}/gradle"}
        env |= self.recipe.get("env", {})
        command = ["bwrap", "--clearenv", "--unshare-all", "--uid", "1000", "--gid", "1000"]
        command += ["--hostname", "build", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
        for system in ("/usr", "/bin", "/lib", "/lib64", "/etc", "/sbin", "/var/lib"):
            command += ["--ro-bind", system, system]
        command += ["--bind", str(self.tools), "/srv", "--tmpfs", SCRATCH, "--dir", "/home/dev"]
        command += ["--bind", str(self.project), self.where, "--chdir", self.where]
        files = self.recipe.get("files", {})
        scripts = any(name.endswith(SCRIPTS) for name in files)
        if scripts or JAVASCRIPT.search(self.recipe["run"]):
            modules = f"{self.where}/node_modules"
            command += ["--bind", str(self.tools / "js/node_modules"), modules]
        for name, value in env.items():
            command += ["--setenv", name, value]
        command += ["bash", "-c", f"exec 2>&1; {line}"]
        return subprocess.run(
            command, check=False, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=180
        )


def recipes() -> Iterator[Recipe]:
    for file in sorted((HERE / "recipes").glob("*.yml")):
        told: list[Recipe] = yaml.safe_load(file.read_text())
        yield from told


def wanted(box: Box, recipe: Recipe) -> tuple[list[Wanted], bytes]:
    """Give what has to be named, from the tool's report or from the planted fault."""
    if "report" not in recipe:
        return [[spellings(fact) for fact in facts] for facts in recipe.get("expect", [])], b""
    report = recipe["report"]
    done = box.run(report["run"])
    text = (box.project / report["file"]).read_bytes() if "file" in report else done.stdout
    return list(READERS[report["kind"]](text.decode())), text


def spellings(fact: str | list[str]) -> list[str]:
    """Give a fact in all its spellings; a place is written in several ways."""
    given = [fact] if isinstance(fact, str) else fact
    places = [found for words in given if (found := PLACE.match(words))]
    also = [way for found in places for way in at(found[1], found[2])]
    return list(dict.fromkeys([*given, *also]))


def produce(tools: Path, recipe: Recipe) -> None:
    """Write the files of one case: output, output of a second run, report, and its description."""
    stem = f"{recipe['tool']}.{recipe['name']}"
    first, second = Box(tools, recipe, FIRST), Box(tools, recipe, SECOND)
    done = first.run(recipe["run"])
    again = second.run(recipe.get("again", recipe["run"]))
    findings, report = wanted(Box(tools, recipe, FIRST), recipe)
    unsaid = list[str]()
    if recipe["run"] != recipe.get("report", {}).get("run"):
        findings, unsaid = that_are_said(findings, done.stdout)
    assert not unsaid or report, f"{stem} says nothing of {unsaid}: {done.stdout[-900:]!r}"
    assert done.returncode, f"{stem} passed: {done.stdout[-500:]!r}"
    assert findings, f"{stem} wants nothing"
    pack(CASES / f"{stem}.out.gz", done.stdout)
    pack(CASES / f"{stem}.again.gz", again.stdout)
    if report and "report" in recipe and recipe["run"] != recipe["report"]["run"]:
        pack(CASES / f"{stem}.report.gz", report)
    case = {
        "tool": recipe["tool"],
        "command": recipe["run"],
        "exit_code": done.returncode,
        "held_out": zlib.crc32(stem.encode()) % HOLD_OUT == 0,
        "chars": len(done.stdout.decode(errors="replace")),
        "need": recipe.get("need", len(findings)),
        "wanted": findings[:MOST_WANTED],
    }
    (CASES / f"{stem}.json").write_text(json.dumps(case, ensure_ascii=False, indent=1) + "\n")


def that_are_said(findings: list[Wanted], output: bytes) -> tuple[list[Wanted], list[str]]:
    """Keep the facts that the output says at all; give the first spellings of the others."""
    plain = " ".join(COLOURS.sub("", output.decode(errors="replace")).split())

    def is_said(fact: list[str]) -> bool:
        return any(" ".join(words.split()) in plain for words in fact)

    kept = [[fact for fact in facts if is_said(fact)] for facts in findings]
    unsaid = [fact[0] for facts in findings for fact in facts if not is_said(fact)]
    return [facts for facts in kept if facts], unsaid


def pack(file: Path, data: bytes) -> None:
    file.write_bytes(gzip.compress(data, 9, mtime=0))


def attempt(tools: Path, recipe: Recipe) -> str:
    stem = f"{recipe['tool']}.{recipe['name']}"
    try:
        produce(tools, recipe)
    except PROBLEMS as problem:
        return f"{stem}: {type(problem).__name__}: {str(problem)[:1500]}"
    return f"{stem}: done"


def main(tools: Path, names: list[str]) -> None:
    CASES.mkdir(exist_ok=True)
    asked: list[Recipe] = [
        recipe
        for recipe in recipes()
        if not names or {recipe["tool"], f"{recipe['tool']}.{recipe['name']}"} & set(names)
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for told in pool.map(partial(attempt, tools), asked):
            print(told, flush=True)  # noqa: T201 - what a script is for


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
