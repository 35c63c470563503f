"""A runner of GitHub's on this machine: it runs the steps of action.yml as GitHub does.

Each step is a script for bash, with the environment files and the variables that GitHub documents,
and with the expressions of `env` and `if` evaluated before. What a runner has of its own,
`python3 -m venv`, `pip` and `sudo`, are stand-ins that take down how they were called; the Python
that they give is the one of the tests. Unless a job is cold, it takes down what it was asked for
as well, which a process that has loaded Mulligan already does after the script
(world/fork_server.py).
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import JsonValue, TypeAdapter

from world.fork_server import run_forked

ROOT = Path(__file__).parents[2]
MAPPING: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
STEPS: TypeAdapter[list[dict[str, JsonValue]]] = TypeAdapter(list[dict[str, JsonValue]])
EXPRESSION = re.compile(r"\$\{\{ *([a-z.-]+) *\}\}")
CONDITION = re.compile(r"([a-z.-]+) *!= *'([^']*)'")
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""The command with which GitHub runs a step that names bash."""
PYTHON = """\
#!/bin/sh
echo "python3 $*" >> '{calls}'
case $1$2 in
    -mvenv)
        mkdir -p "$3/bin"
        cp '{interpreter}' "$3/bin/python"
        printf '#!/bin/sh\\necho "pip $*" >> "%s"\\n' '{calls}' > "$3/bin/pip"
        chmod +x "$3/bin/python" "$3/bin/pip" ;;
    *) exec '{python}' "$@" ;;
esac
"""
COLD = "#!/bin/sh\nexec '{python}' \"$@\"\n"
WARM = "#!/bin/sh\nprintf '%s\\0' \"$@\" > '{asked}.arguments'\nenv -0 > '{asked}.environment'\n"
STARTED = ["-P", "-m", "mulligan"]
"""How the Action starts Mulligan from its own files."""
SUDO = "#!/bin/sh\necho \"sudo $*\" >> '{calls}'\n"


@dataclass
class Job:
    """One job of a workflow run, on a machine of its own that is gone afterwards."""

    directory: Path
    variables: Mapping[str, str]
    inputs: Mapping[str, str]
    cold: bool = False
    said: str = ""
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    summary: str = ""
    code: int = 0
    process: subprocess.Popen[str] | None = None

    @property
    def calls(self) -> list[str]:
        """Return the calls of the stand-ins."""
        return (self.directory / "calls").read_text().splitlines()

    @property
    def annotations(self) -> list[str]:
        """Give the commands that the runner obeys: none while they are stopped."""
        obeyed, token = list[str](), ""
        for line in map(str.lstrip, self.said.splitlines()):
            if token:
                token = "" if line == f"::{token}::" else token
            elif line.startswith("::stop-commands::"):
                token = line.removeprefix("::stop-commands::")
            elif line.startswith("::"):
                obeyed.append(line)
        return obeyed

    def run(self) -> "Job":
        """Run every step of the Action; the first that fails ends the job."""
        action = MAPPING.validate_python(yaml.safe_load((ROOT / "action.yml").read_text()))
        self._prepare()
        for step in STEPS.validate_python(MAPPING.validate_python(action["runs"])["steps"]):
            if self.code == 0 and self._is_wanted(step, action):
                self._run(step, action)
        shutil.rmtree(self.directory / "temp")
        return self

    def kill(self) -> None:
        """Kill the step that runs, and all of its group, at once."""
        assert self.process
        os.killpg(self.process.pid, signal.SIGKILL)

    def _prepare(self) -> None:
        for name in ("bin", "temp", "workspace"):
            (self.directory / name).mkdir(parents=True)
        words = {
            "calls": self.directory / "calls",
            "python": sys.executable,
            "interpreter": self.directory / "bin" / "interpreter",
            "asked": self.directory / "asked",
        }
        interpreter = COLD if self.cold else WARM
        programs = {"python3": PYTHON, "sudo": SUDO, "interpreter": interpreter}
        for name, text in programs.items():
            place = self.directory / "bin" / name
            place.write_text(text.format(**words))
            place.chmod(0o755)

    def _run(self, step: Mapping[str, JsonValue], action: Mapping[str, JsonValue]) -> None:
        files = {name: self.directory / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        script = self.directory / "temp" / "step.sh"
        script.write_text(str(step["run"]))
        assert "${{" not in str(step["run"])
        given = MAPPING.validate_python(step.get("env") or {})
        values = {name: self._value(str(text), action) for name, text in given.items()}
        self.process = subprocess.Popen(
            [*SHELL, str(script)],
            cwd=self.directory / "workspace",
            env={
                "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}",
                "HOME": str(self.directory),
                "CI": "true",
                "RUNNER_TEMP": str(self.directory / "temp"),
                "GITHUB_ACTION_PATH": str(ROOT),
                **self.variables,
                **{name: str(file) for name, file in files.items()},
                **values,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        out, _ = self.process.communicate(timeout=120)
        self.said += out
        self.code = self.process.returncode
        self._run_what_was_asked()
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        self.outputs |= _outputs(files["GITHUB_OUTPUT"].read_text())

    def _run_what_was_asked(self) -> None:
        arguments, environment = map(self._taken_down, ("arguments", "environment"))
        if not arguments:
            return
        assert (self.code, arguments[: len(STARTED)]) == (0, STARTED)
        variables = dict(each.split("=", 1) for each in environment)
        assert variables["PYTHONPATH"] == str(ROOT / "src")
        done = run_forked(arguments[len(STARTED) :], self.directory / "workspace", variables)
        self.said += done.stdout + done.stderr
        self.code = done.returncode

    def _taken_down(self, what: str) -> list[str]:
        """Read the output of the stand-in for Python, once."""
        place = self.directory / f"asked.{what}"
        said = place.read_text() if place.exists() else ""
        place.unlink(missing_ok=True)
        return said.split("\0")[:-1]

    def _is_wanted(self, step: Mapping[str, JsonValue], action: Mapping[str, JsonValue]) -> bool:
        condition = step.get("if")
        if condition is None:
            return True
        found = CONDITION.fullmatch(str(condition))
        assert found, condition
        return self._value(f"${{{{ {found[1]} }}}}", action) != found[2]

    def _value(self, text: str, action: Mapping[str, JsonValue]) -> str:
        """Evaluate expressions; an input that was not given has its default."""

        def value(found: re.Match[str]) -> str:
            context, _, name = found[1].partition(".")
            if found[1] == "github.token":
                return self.variables["TOKEN_OF_THE_JOB"]
            assert context == "inputs", found[0]
            declared = MAPPING.validate_python(MAPPING.validate_python(action["inputs"])[name])
            default = str(declared.get("default", ""))
            return self.inputs.get(name, EXPRESSION.sub(value, default))

        return EXPRESSION.sub(value, text)


def _outputs(text: str) -> dict[str, str]:
    """Read the outputs as GitHub does: a value ends at its delimiter, on a line of its own."""
    found, lines = dict[str, str](), iter(text.splitlines())
    for line in lines:
        name, _, delimiter = line.partition("<<")
        assert delimiter, line
        value = list[str]()
        while (part := next(lines)) != delimiter:
            value.append(part)
        found[name] = "\n".join(value)
    return found


def labelled(repository: str, number: int, label: str) -> dict[str, JsonValue]:
    """Give the payload of `issues: labeled`, with the members that GitHub documents."""
    owner, _, name = repository.partition("/")
    return {
        "action": "labeled",
        "issue": {"number": number, "title": "`$(touch /tmp/owned)` ${{ github.token }}"},
        "label": {"name": label},
        "repository": {
            "name": name,
            "full_name": repository,
            "owner": {"login": owner, "type": "Organization"},
            "default_branch": "main",
        },
        "sender": {"login": "ada", "type": "User"},
    }


def commented(repository: str, number: int, body: str) -> dict[str, JsonValue]:
    """Give the payload of `issue_comment: created`."""
    payload = labelled(repository, number, "mulligan")
    comment: JsonValue = {"id": 7, "body": body, "user": {"login": "zoe", "type": "User"}}
    return {**payload, "action": "created", "comment": comment}


def write_event(directory: Path, payload: Mapping[str, JsonValue]) -> Path:
    """Write the payload where the runner keeps it."""
    directory.mkdir(parents=True, exist_ok=True)
    place = directory / "event.json"
    place.write_text(json.dumps(payload))
    return place
