"""Secrets that agents and checks print, and one in an issue's title, get nowhere."""

import base64
import os
import subprocess
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mulligan.domain.issue import IssueRef
from world.place import BIN, NAME, TOKEN, MulliganInstallation, mulligan_installation
from world.repositories import git

MODEL_KEY = "model-key-1f8a9c7e5d3b"
PRINTED = "ghp_Zr8TqJ1vLw5XyN3bKd7MfPc2Hs9Ga4Ue6RkW"
IN_THE_TITLE = "ghp_Qm3NvB7xCz1LkJ5hGf9DsA2pOi4Uy8TrEw6Q"
ENCODED = base64.b64encode(f"x:{MODEL_KEY}".encode()).decode()
SECRETS = [TOKEN, MODEL_KEY, PRINTED, IN_THE_TITLE, ENCODED[8:-4], MODEL_KEY.encode().hex()]
AGENT = """
said = pathlib.Path(os.environ['SAYINGS']).read_text() + os.environ['MODEL_KEY']
print(said)
sys.stdout.write('half a line without its end: ' + said[:10]); sys.stdout.flush()
print(said[10:])
if 'Which of them?' in prompt:
    import json
    told = {'status': 'blocked', 'reason': f'Which? {said}', 'evidence': said}
    pathlib.Path(os.environ['MULLIGAN_REPORT']).write_text(json.dumps(told))
elif 'Retry context' in prompt:
    pathlib.Path('a.txt').write_text('mended')
else:
    pathlib.Path('a.txt').write_text('spoiled')
print('In short:', said)
"""


@contextmanager
def watched_arguments() -> Generator[set[bytes]]:
    """Collect the arguments of every process that runs meanwhile."""
    seen, over = set[bytes](), threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    with suppress(OSError):
                        seen.add((entry / "cmdline").read_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def kept_below(here: MulliganInstallation) -> Iterator[tuple[str, bytes]]:
    """Give every file of the state and the work directory."""
    found = [*here.directory.glob("mulligan.db*"), *(here.directory / "work").rglob("*")]
    for path in found:
        # What the agent itself wrote for Mulligan is in its private directory, until the next run.
        if path.is_file() and path.name != "report.json":
            yield str(path), path.read_bytes()


def said_on_github(here: MulliganInstallation) -> Iterator[tuple[str, bytes]]:
    for number in (1, 2):
        for comment in here.comments(IssueRef(NAME, number)):
            yield f"comment on {number}", comment.encode()
    for pull in here.world.pulls_of(NAME):
        yield "pull request", f"{pull.title}\n{pull.body}".encode()
    yield "commits", git(here.bare, "log", "--all", "--format=%B").encode()


def test_a_secret_is_in_no_log_artifact_comment_database_argument_or_configuration(
    tmp_path: Path,
) -> None:
    sayings = tmp_path / "sayings"
    sayings.write_text(f"{TOKEN} {PRINTED}\nexport KEY={ENCODED} {MODEL_KEY.encode().hex()}\n")
    check = {"name": "mended", "run": f"cat {sayings}; grep -x mended a.txt"}
    (tmp_path / "place").mkdir()
    with mulligan_installation(tmp_path / "place", {"a.txt": "a\n"}, [check]) as here:
        here.environment |= {"MODEL_KEY": MODEL_KEY, "SAYINGS": str(sayings)}
        agent = here.settings["agent"]
        assert isinstance(agent, dict)
        here.configure(agent={**agent, "env": ["MODEL_KEY", "SAYINGS"]}, sandbox="off")
        here.agent(AGENT)
        first = here.issue(f"Mend it {IN_THE_TITLE}")
        second = here.issue("Decide", "Which of them?")
        # Started as a person does: what forks it would show other arguments.
        command = [str(BIN / "mulligan"), "once", "--config", str(here.config)]
        environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(here.directory)}
        with (
            watched_arguments() as arguments,
            subprocess.Popen(
                command,
                env=environment | here.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as started,
        ):
            out, err = started.communicate(timeout=120)
        assert started.returncode == 3, err
        shown = [here.run("inspect", str(first), "--attempt", "2", "--prompt").stdout]
        shown += [here.run("inspect", str(ref)).stdout for ref in (first, second)]
        kept = dict(kept_below(here))
        sinks = [
            *kept.items(),
            *said_on_github(here),
            *(("argument", each) for each in arguments),
            *(("terminal", each.encode()) for each in (out, err, *shown)),
        ]
    assert [(s, name) for name, text in sinks for s in SECRETS if s.encode() in text] == []
    logs = [name for name in kept if name.endswith((".log", ".md")) and b"[redacted]" in kept[name]]
    assert {Path(name).name for name in logs} >= {"agent.log", "check-1.log", "prompt.md"}
    assert "[redacted]" in shown[0]
    assert b"mulligan once" in b" ".join(arguments).replace(b"\0", b" ")
