"""What an ideal digest has to name, taken from the report that a tool writes for machines.

A wanted finding is a list of facts; a fact is a list of spellings of which one is enough.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

FIRST = "/repo"
SECOND = str(Path("/home", "runner", "work", "app"))
"""Where the tools see a project, the first time and the second; the latter as GitHub's runners."""

Fact = list[str]
Wanted = list[Fact]

MESSAGE_CHARS = 60
KIND = re.compile(r"^(?:[\w.\\]*(?:Error|Exception|Failure|Failed|Throwable)\b)\s*:?\s*")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(
    r"(?:^|[\s(\"'])((?:[\w@.-]+/)*[\w@.-]+\.(?:py|js|java|php|cpp|bats|robot)):(\d+)"
)


def said(text: str) -> list[Fact]:
    """Give the first line of a message, with and without the name of its exception."""
    lines = [line.strip() for line in COLOURS.sub("", text).splitlines() if line.strip()]
    first = lines[0] if lines else ""
    bare = KIND.sub("", first)
    spellings = [words[:MESSAGE_CHARS].strip(" .") for words in (first, bare) if len(words) > 1]
    return [list(dict.fromkeys(spellings))] if spellings else []


def at(file: str, line: object, column: object = None) -> Fact:
    """Give the ways to write a place."""
    numbers = [f"{line}:{column}"] if column else []
    base = [
        f"{file}:{line}",
        f"{file}({line}",
        f'{file}", line {line}',
        f"{file}:[{line}",
        f"{file} line {line}",
    ]
    return [*(f"{file}:{number}" for number in numbers), *base]


def junit(report: str) -> Iterator[Wanted]:
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314 - produced here
        bad = next((child for child in case if child.tag in {"failure", "error"}), None)
        if bad is None:
            continue
        name = (case.get("name") or "").removesuffix("()")
        body = bad.text or ""
        wanted = [[name]] if name else []
        body = "\n".join(line for line in body.splitlines() if not line.endswith(f"::{name}"))
        wanted += said(bad.get("message") or body)
        places = [(file, line) for file, line in FRAME.findall(body) if "site-packages" not in file]
        where = case.get("classname") or ""
        own = [place for place in places if Path(place[0]).stem in where]
        yield [*wanted, *([at(*own[-1])] if own else [])]


def ruff(report: str) -> Iterator[Wanted]:
    for found in json.loads(report):
        file = relative(found["filename"])
        place = at(file, found["location"]["row"], found["location"]["column"])
        place.append(f"{file},line={found['location']['row']}")
        code = [[found["code"]]] if found["code"] and found["code"] != "invalid-syntax" else []
        yield [place, *code, [found["message"][:40]]]


def eslint(report: str) -> Iterator[Wanted]:
    for file in json.loads(report):
        for found in file["messages"]:
            if found["severity"] == 2:
                code = [[found["ruleId"]]] if found["ruleId"] else []
                yield [
                    *positions(relative(file["filePath"]), found),
                    *code,
                    *said(found["message"]),
                ]


def positions(file: str, found: dict[str, object]) -> list[Fact]:
    return [[file], [f"{found['line']}:{found['column']}", f"{file}:{found['line']}"]]


def stylelint(report: str) -> Iterator[Wanted]:
    for file in json.loads(report):
        for found in file["warnings"]:
            yield [*positions(relative(file["source"]), found), [found["rule"]]]


def pyright(report: str) -> Iterator[Wanted]:
    for found in json.loads(report)["generalDiagnostics"]:
        if found["severity"] == "error":
            start = found["range"]["start"]
            code = [[found["rule"]]] if "rule" in found else []
            where = at(relative(found["file"]), start["line"] + 1, start["character"] + 1)
            yield [where, *code, [found["message"].splitlines()[0][:40]]]


def mypy(report: str) -> Iterator[Wanted]:
    for line in report.splitlines():
        found = json.loads(line)
        if found["severity"] == "error":
            where = at(found["file"], found["line"])
            yield [where, [found["code"]], [" ".join(found["message"].split())[:30]]]


def pylint(report: str) -> Iterator[Wanted]:
    for found in json.loads(report):
        where = at(found["path"], found["line"])
        yield [
            where,
            [found["message-id"], found["symbol"]],
            [found["message"].splitlines()[0][:40]],
        ]


def cargo(report: str) -> Iterator[Wanted]:
    for line in report.splitlines():
        found = json.loads(line)
        if found.get("reason") == "compiler-message" and found["message"]["level"] == "error":
            message = found["message"]
            spans = [span for span in message["spans"] if span["is_primary"]]
            code = (
                [
                    [
                        message["code"]["code"].split("::")[-1],
                        message["code"]["code"].split("::")[-1].replace("_", "-"),
                    ]
                ]
                if message["code"]
                else []
            )
            if spans:
                where = at(spans[0]["file_name"], spans[0]["line_start"], spans[0]["column_start"])
                yield [where, *code, [message["message"][:40]]]


def gotest(report: str) -> Iterator[Wanted]:
    events = [json.loads(line) for line in report.splitlines() if line.startswith("{")]
    failed = [event["Test"] for event in events if event["Action"] == "fail" and "Test" in event]
    for test in failed:
        if any(other.startswith(f"{test}/") for other in failed):
            continue
        said_there = [
            e["Output"] for e in events if e.get("Test") == test and e["Action"] == "output"
        ]
        lines = [
            found for text in said_there if (found := re.match(r"\s+(\w+\.go):(\d+): (.*)", text))
        ]
        panics = [text.strip() for text in said_there if text.startswith("panic:")]
        facts = (
            [[f"{lines[-1][1]}:{lines[-1][2]}"], [lines[-1][3][:50]]]
            if lines
            else [[p.removesuffix(" [recovered]")] for p in panics[:1]]
        )
        yield [[test], *facts]


def jest(report: str) -> Iterator[Wanted]:
    for file in json.loads(report)["testResults"]:
        bad = [test for test in file["assertionResults"] if test["status"] == "failed"]
        if not bad and file["status"] == "failed":
            lines = [
                line for line in COLOURS.sub("", file["message"]).splitlines() if line.strip(" ●")
            ]
            yield [[relative(file["name"])], [line.strip()[:MESSAGE_CHARS] for line in lines[1:2]]]
        for test in bad:
            text = COLOURS.sub("", test["failureMessages"][0])
            frames = [
                f for f in FRAME.findall(text) if "node_modules" not in f[0] and ".test." in f[0]
            ]
            where = (
                [[f"{name.rsplit('/', 1)[-1]}:{line}" for name, line in frames[:1]]]
                if frames
                else []
            )
            yield [[test["title"]], *said(text), *where]


def mocha(report: str) -> Iterator[Wanted]:
    for test in json.loads(report[report.index("{") :])["failures"]:
        yield [[test["title"]], *said(test["err"]["message"])]


def rspec(report: str) -> Iterator[Wanted]:
    for test in json.loads(report)["examples"]:
        if test["status"] == "failed":
            where = f"{test['file_path'].removeprefix('./')}:{test['line_number']}"
            yield [
                [test["description"]],
                *said(test["exception"]["message"]),
                [where, where.split(":", maxsplit=1)[0]],
            ]


def shellcheck(report: str) -> Iterator[Wanted]:
    for found in json.loads(report):
        lines = [f"{found['file']} line {found['line']}", f"{found['file']}:{found['line']}"]
        yield [lines, [f"SC{found['code']}"]]


def relative(path: str) -> str:
    return re.sub(rf"^(?:{FIRST}|{SECOND})/", "", path)


READERS: dict[str, Callable[[str], Iterator[Wanted]]] = {
    reader.__name__: reader
    for reader in (
        *(junit, ruff, eslint, stylelint, pyright, mypy, pylint, cargo, gotest),
        *(jest, mocha, rspec, shellcheck),
    )
}
