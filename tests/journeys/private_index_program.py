"""`init`, `check` and `rehearse` beside a private package index, in a network of its own.

Run as `python private_index_program.py DIRECTORY`; it prints what the commands print.
"""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import yaml

from world.network_namespace import bring_loopback_up
from world.package_index import PASSWORD, USER, serve_package_index

HOST = "packages.example.test"

TEST = """
    import unittest
    import corporate
    from shop import answer

    class Answers(unittest.TestCase):
        def test_the_answer(self):
            self.assertEqual(answer(), corporate.ANSWER)
"""
AGENT = """
    import pathlib, sys
    sys.stdin.read()
    pathlib.Path("shop.py").write_text("def answer():\\n    return 42\\n")
    pathlib.Path("notes.txt").write_text("done\\n")
"""
LOOK_AROUND = (
    "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n';"
    " find / -xdev -type f -newermt '-1 day' -size -200k 2>/dev/null"
    " | grep -v '^/proc\\|^/sys' | xargs -r -d '\\n' cat 2>/dev/null; true"
)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def mulligan(*words: str, at: Path) -> None:
    """Run a command; print its output, and its exit code in a line of its own."""
    say(f"$ mulligan {words[0]}")
    done = subprocess.run(
        [sys.executable, "-m", "mulligan", *words], cwd=at, check=False, stderr=subprocess.STDOUT
    )
    say(f"exit code {done.returncode}")


def git(*words: str, at: Path) -> None:
    who = ("-c", "user.name=ada", "-c", "user.email=ada@localhost")
    subprocess.run(["git", *who, *words], cwd=at, check=True)


def make_clone(clone: Path, address: str) -> None:
    """Write a project whose lock files name the index, and nobody's password."""
    clone.mkdir()
    (clone / "shop.py").write_text("def answer():\n    return 42\n")
    (clone / "test_shop.py").write_text(dedent(TEST))
    (clone / "requirements.txt").write_text("corporate==1.0\n")
    (clone / "package.json").write_text('{"name": "shop", "dependencies": {"corporate": "1.0.0"}}')
    (clone / ".npmrc").write_text(f"registry={address}/\naudit=false\nfund=false\n")
    git("init", "--quiet", "--initial-branch", "main", at=clone)
    git("remote", "add", "origin", "https://github.com/acme/shop.git", at=clone)
    git("add", ".", at=clone)
    git("commit", "--quiet", "--message", "Begin", at=clone)


def main() -> None:
    directory = Path(sys.argv[1])
    bring_loopback_up()
    with serve_package_index(directory / "index", HOST) as index:
        os.environ |= {"PASSWORD_OF_INDEX": PASSWORD, "PIP_INDEX_URL": f"{index.address}/simple"}
        clone = directory / "shop"
        make_clone(clone, index.address)
        mulligan("init", ".", "--yes", "--no-workflow", at=clone)
        config = directory / "mulligan.yml"
        settings = yaml.safe_load(config.read_text())
        (directory / "agent.py").write_text(dedent(AGENT))
        settings["agent"] = {"command": [sys.executable, str(directory / "agent.py")]}
        registry = {"host": index.host, "user": USER, "password": "$PASSWORD_OF_INDEX"}
        settings["sandbox"] = {
            "env": ["PIP_INDEX_URL"],
            "ca_file": str(index.ca_file),
            "registries": [registry],
        }
        config.write_text(yaml.safe_dump(settings))
        policy = clone / ".github" / "mulligan.yml"
        proposed = yaml.safe_load(policy.read_text())
        proposed["setup"] = [*proposed.get("setup", []), "npm install --no-save", LOOK_AROUND]
        policy.write_text(yaml.safe_dump(proposed))
        say(policy.read_text())
        mulligan("check", at=clone)
        (directory / "ISSUE.md").write_text("# Answer\n\nPlease write notes.\n")
        mulligan("rehearse", "../ISSUE.md", ".", "--config", str(config), at=clone)
        say(f"requests: {index.requests}\ndenied: {index.denied}")


if __name__ == "__main__":
    main()
