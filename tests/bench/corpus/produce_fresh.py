"""Run the tools of fresh/recipes.yml once and keep what they print; see fresh/README.md.

    python tests/bench/corpus/produce_fresh.py TOOLS

TOOLS/venv/bin comes first on PATH. Each project is seen as /repo.
"""

import gzip
import json
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import yaml
from produce import HERE, HOLD_OUT, SCRATCH, Recipe, spellings, that_are_said

FRESH = HERE.parent / "fresh"


def run(project: Path, line: str, tools: Path) -> subprocess.CompletedProcess[bytes]:
    path = f"{tools}/venv/bin:/usr/local/bin:/usr/bin:/bin"
    env = {"PATH": path, "HOME": SCRATCH, "LANG": "C.UTF-8", "CI": "1", "TERM": "dumb"}
    box = ["bwrap", "--clearenv", "--dev-bind", "/", "/", "--tmpfs", "/repo", "--bind"]
    box += [str(project), "/repo", "--chdir", "/repo"]
    for name, value in env.items():
        box += ["--setenv", name, value]
    return subprocess.run(
        [*box, "bash", "-c", f"exec 2>&1; {line}"],
        check=False, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip


def main(tools: Path) -> None:
    recipes: list[Recipe] = yaml.safe_load((FRESH / "recipes.yml").read_text())
    for recipe in recipes:
        stem = f"{recipe['tool']}.{recipe['name']}"
        with tempfile.TemporaryDirectory() as directory:
            project = Path(directory)
            for name, text in recipe.get("files", {}).items():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                (project / name).write_text(text)
            if "setup" in recipe:
                run(project, recipe["setup"], tools)
            try:
                done = run(project, recipe["run"], tools)
            except subprocess.TimeoutExpired:
                continue
        wanted = [[spellings(fact) for fact in facts] for facts in recipe.get("expect", [])]
        kept, _ = that_are_said(wanted, done.stdout)
        if not kept or not done.returncode:
            continue
        case = {
            "tool": recipe["tool"], "command": recipe["run"], "exit_code": done.returncode,
            "held_out": zlib.crc32(stem.encode()) % HOLD_OUT == 0,
            "need": len(kept), "wanted": kept,
        }  # fmt: skip
        (FRESH / "cases" / f"{stem}.json").write_text(json.dumps(case, ensure_ascii=False) + "\n")
        (FRESH / "cases" / f"{stem}.out.gz").write_bytes(gzip.compress(done.stdout, 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
