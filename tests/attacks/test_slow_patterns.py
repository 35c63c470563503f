"""A pattern of a repository, or a name that an agent chose, stops no thread of a shared daemon."""

import subprocess
import sys

import pytest

LONGEST = 30
"""Seconds; each of these takes less than one, and with `re` it would take years."""

DIGEST = """
from mulligan.checks.digest import digest
print(digest({output!r}, exit_code=1, patterns=[{pattern!r}]).passed)
"""
GUARD = """
from mulligan.checks.guards import violations
from mulligan.config.policy import Scope
from mulligan.domain.attempt import Change
from mulligan.domain.result import FileChange
names = {names}
files = tuple(FileChange(path=name, status="A") for name in names)
diff = b"".join(b"diff --git a/%b b/%b\\n" % (name.encode(), name.encode()) for name in names)
change = Change("a" * 40, "b" * 40, 1, files, diff)
print(len(violations(change, Scope({scope}))))
"""
SECRETS = """
from mulligan.checks.guards.secrets import secret_violations
from mulligan.config.policy import Scope
from mulligan.text.diff import patches_of
from mulligan.text.redact import Redactor
head = b"diff --git a/x b/x\\nnew file mode 100644\\n--- /dev/null\\n+++ b/x\\n@@ -0,0 +1,1 @@\\n"
patches = tuple(patches_of(head + {content}))
print(len(list(secret_violations(patches, Scope(), Redactor()))))
"""
CONTENT_BYTES = 4 * 1024 * 1024
REPORT = """
import json
from mulligan.checks.digest import digest
name = {pump!r} * (1_000_000 // len({pump!r}))
junit = f'<testsuite><testcase classname="{{name}}" name="a"><failure message="{{name}}"/>'
test = dict(fullName=name, title=name, status="failed", failureMessages=[name])
jest = json.dumps(dict(testResults=[dict(name=name, assertionResults=[test])]))
reports = (junit + "</testcase></testsuite>", jest)
print([len(digest("x", exit_code=1, report=report.encode()).findings) for report in reports])
"""
SET_UP = """
from mulligan.domain.set_up import select_inputs
print(len(select_inputs({names}, ["make"], [{pattern!r}])))
"""
IGNORED = """
from mulligan.domain.feedback import CheckRun, without_ignored
print(len(without_ignored([CheckRun(1, "ci", "a" * 250)], [{pattern!r}])))
"""
OUTPUT = """
from mulligan.agents.output import Reader
from mulligan.config.adapters import Rule
reader = Reader([Rule(line={pattern!r})])
reader.feed({output!r}.encode())
print(reader.close().ended)
"""
NAMES = '["/".join(["-" * 200] * depth) + str(number) for depth in (1, 19) for number in range(60)]'


def run(code: str) -> str:
    """Run code in a process of its own: a thread in `re` keeps all other threads waiting."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("pattern", "output"),
    [
        ("(a+)+$", "a" * 60 + "!"),
        ("(?P<message>(a|aa)+)$", "a" * 60 + "!"),
        (r"^(\s*\w+\s*)+:$", "word " * 30 + "!"),
        ("(.*)*(.*)*(.*)*x", "a" * 1200),
        ("((a?){30}){30}b", "a" * 1000),
        ("((a{1000}){1000}){1000}", "a" * 1000),
    ],
)
def test_a_pattern_of_a_check_cannot_freeze_the_daemon(pattern: str, output: str) -> None:
    assert run(DIGEST.format(pattern=pattern, output=output)) == "False"


@pytest.mark.parametrize(
    "scope",
    [
        "deny=('**/*-*-*-*-*.yml',)",
        "allow=('*', '**/*-*-*-*-*-*.yml')",
        "allow_secrets=('**/*-*-*-*-*.yml',)",
        "deny=('**/*-*-*/**/*-*-*/**/*-*-*.yml',)",
        "deny=('**/[!a]*[!b]*[!c]*[!d]*[!e]*.yml',)",
    ],
)
def test_long_names_cannot_freeze_the_guards(scope: str) -> None:
    assert run(GUARD.format(scope=scope, names=NAMES)) == "0"


@pytest.mark.parametrize(
    "pump", ["sk-ant-", "sk-", "AKIA", "eyJ", "_authToken=", "npm_", "KEY-----"]
)
def test_no_file_makes_the_search_for_secrets_slow(pump: str) -> None:
    content = f"b'+' + {pump!r}.encode() * ({CONTENT_BYTES} // {len(pump)}) + b'\\n'"
    assert run(SECRETS.format(content=content)).isdigit()


@pytest.mark.parametrize("pump", ["a", "_", "eyJ", "/", "/.", "a/", "a.b", ": ", "at a ("])
def test_no_name_in_a_report_freezes_the_digest(pump: str) -> None:
    assert run(REPORT.format(pump=pump)) == "[1, 1]"


def test_long_names_cannot_freeze_the_choice_of_inputs() -> None:
    assert run(SET_UP.format(pattern="**/*-*-*-*-*.yml", names=NAMES)) == "0"


def test_no_pattern_of_an_ignored_check_is_slow() -> None:
    assert run(IGNORED.format(pattern="*a*a*a*a*a*a*a*a*b")) == "1"


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(\w+)*: (?P<said>.*)$"])
def test_no_line_of_an_agent_freezes_the_reading_of_its_output(pattern: str) -> None:
    assert run(OUTPUT.format(pattern=pattern, output="a" * 60 + "!")) == "None"
