"""Run tools once on the recipes of one of the fresh sets, and keep what they print.

    python tests/bench/corpus/produce_fresh.py TOOLS DIRECTORY [tool ...]

The tools are seen as /srv, a project as /repo. A recipe whose tool passes leaves no case, nor does
one whose output has none of the facts.
"""

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import yaml
from produce import HOLD_OUT, Box, Recipe, spellings, that_are_said
from wanted import FIRST

MARK = "%n"


class ManyRecipe(Recipe):
    """`many` is how often files and findings that have the mark in them are repeated.

    `total` is the number of failures, where there are many.
    """

    many: int
    total: int


def repeated(text: str, many: int) -> Iterator[str]:
    """Give a text once, or once for each number if the mark stands in it."""
    yield from (text.replace(MARK, str(n)) for n in range(1, many + 1)) if MARK in text else [text]


def expanded(recipe: ManyRecipe) -> ManyRecipe:
    many = recipe.get("many", 1)
    files = {
        name.replace(MARK, str(n)): text.replace(MARK, str(n)) if MARK in name else text
        for name, text in recipe.get("files", {}).items()
        for n in range(1, many + 1)
    }
    expect = [
        json.loads(facts)
        for finding in recipe.get("expect", [])
        for facts in repeated(json.dumps(finding), many)
    ]
    return {**recipe, "files": files, "expect": expect}


def produce(tools: Path, directory: Path, recipe: ManyRecipe) -> str:
    """Write the files of one case; say why where there is none."""
    stem = f"{recipe['tool']}.{recipe['name']}"
    try:
        done = Box(tools, recipe, FIRST).run(recipe["run"])
    except (AssertionError, subprocess.TimeoutExpired) as problem:
        return f"{stem}: {str(problem)[-300:]}"
    wanted = [[spellings(fact) for fact in facts] for facts in recipe.get("expect", [])]
    kept, unsaid = that_are_said(wanted, done.stdout)
    if not kept or not done.returncode:
        return f"{stem}: no case, exit code {done.returncode}: {done.stdout[-300:]!r}"
    case = {
        "tool": recipe["tool"], "command": recipe["run"], "exit_code": done.returncode,
        "held_out": zlib.crc32(stem.encode()) % HOLD_OUT == 0,
        "need": len(kept), "wanted": kept, "total": recipe.get("total", 0),
    }  # fmt: skip
    cases = directory / "cases"
    cases.mkdir(exist_ok=True)
    (cases / f"{stem}.json").write_text(json.dumps(case, ensure_ascii=False) + "\n")
    (cases / f"{stem}.out.gz").write_bytes(gzip.compress(done.stdout, 9, mtime=0))
    return f"{stem}: {len(done.stdout)} bytes, {len(kept)} findings" + (
        f", unsaid: {unsaid[:6]}" if unsaid else ""
    )


def main(tools: Path, directory: Path, *chosen: str) -> None:
    recipes: list[ManyRecipe] = yaml.safe_load((directory / "recipes.yml").read_text())
    for recipe in recipes:
        if not chosen or recipe["tool"] in chosen:
            print(produce(tools, directory, expanded(recipe)), flush=True)  # noqa: T201 - what a script is for


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
