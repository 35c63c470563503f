"""How test runners write the name of a test that failed. Pure."""

import re

_TIME = r"(?:\s+\(?\[?(?:Time elapsed: )?<?\s?[\d.,]+ ?(?:ns|µs|us|ms|s|sec|min)\]?\)?)?"

_PLACE = r"(?P<file>[^:\s()]+):(?P<line>\d+)(?::(?P<column>\d+))?"

_FAILED = r"(?:FAIL(?:ED)?|ERROR|failed)\b"
_CROSS = r"^\s*(?:\d+\) )?[✗✖✘✕×❌⨯]\s+(?:\d+ (?=\[)|\[fail\]: )?"

NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\s*--- FAIL: (?P<test>\S+)",
        r"^\s+JUnit (?:Jupiter|Vintage):(?P<test>\S.*)$",
        r"^\s*not ok\b(?: \d+)?(?: -)? (?P<test>(?!.*#\s*(?:TODO|SKIP)).+?)(?:\s+#.*)?$",
        r"^---- (?P<test>\S.*) stdout ----$",
        r"^thread '(?P<test>(?!main'|<)[^']+)'.* panicked at (?:'(?P<message>.*)', )?" + _PLACE,
        rf"^[>\s]*\[\s*(?:FAILED|FAIL)\s*\]\s+(?P<test>(?!\d+ tests?)\S.*?)(?:, where .*)?{_TIME}$",
        r"^\s*\d+/\d+ Test +#\d+: (?P<test>\S+) [.\s]*\*\*\*(?:Failed|(?P<message>\w[\w: ]*?)  )",
        rf"{_CROSS}(?P<test>(?!\d+ \w+|.*:$|\[[A-Z]|Failed )[^\s|][^|]*?){_TIME}$",
        r"^\s*● (?P<test>(?!Console$)\S.*)$",
        r"^\s*FAIL(?:ED)?\s+(?P<test>\S+\.\w+ > .+?)(?: \[ .*)?$",
        r"^(?:SUB)?(?:FAILED|FAIL|ERROR):?\s+(?P<test>\S+::.+?)(?:\s+-\s+(?P<message>.+))?$",
        r"^(?:FAIL|ERROR|UNEXPECTED SUCCESS): (?P<test>\S+ \(\S+\).*)$",
        r"^\[ERROR\]\s+(?P<test>[A-Z][\w$]*(?:\.|#|->)\w+(?:\[.*?\])?):\d+\s+(?P<message>.+)$",
        rf"^(?=.*<<<)(?:\[ERROR\] +)?(?P<test>\S.*?)(?: +--)?{_TIME} +<<< (?:FAILURE|ERROR)!$",
        r"^(?P<test>\S.* > \S.*?) FAILED$",
        r"^\s*Failed (?P<test>\S+(?:\(.*\))?) \[<?\s?[\d.,]+ ?\w+\]$",
        r"^\s*(?P<test>\S+) \[FAIL\]$",
        r"^(?P<file>[^\s:]+):(?P<line>\d+): error: -\[(?P<test>\S+ \S+)\] : (?P<message>.*)$",
        r"^(?P<file>[^\s:]+):(?P<line>\d+): error: (?P<test>\w[\w.]*\.\w+) : (?P<message>.*)$",
        r"^Test [Cc]ase '(?:-\[)?(?P<test>[^'\]]+)\]?' failed",
        r"^(?:\[\w+\]\s*)?- (?P<test>\S.*?) \*\*\* FAILED \*\*\*",
        r"^\d\d:\d\d [+~\-\d ]+: (?P<test>.+) \[E\]$",
        rf"^(?:── )?(?:Failure|Error) \({_PLACE}\): (?P<test>.+?)(?: ─.*)?$",
        r"^(?P<test>\S.*): (?:Test Failed|Error During Test) at (?P<file>[^:]+):(?P<line>\d+)",
        r"^(?P<test>\S.*?)\s+\| FAIL \|$",
        r"^#\s+Failed test '(?P<test>.+)'",
        r"^\s*(?:TRY \d+ )?FAIL \[ *[\d.]+s\](?: \([ \d/]+\))? +(?P<test>\S+ \S+)$",
        rf"^(?:\s*test |\d+/\d+ )?(?P<test>\S.*?)(?: - should panic)? ?\.{{3}} {_FAILED}",
        r"^(?P<test>\S.*?)(?: - should panic)? --- FAILED$",
        r"^(?P<test>[\w.:/#\[\]-]{2,}[\w\])]) +(?:FAILED|FAIL)(?:\s+\[.*\])?$",
    )
)

NUMBERED = re.compile(r"^(?P<indent>\s*)\d+\) (?P<test>\S.*)$")
NUMBERED_LIST = re.compile(
    r"^\s*(?:Failures|Failed examples|Errors):$|^\s*\d+ (?:failing|failed)\b"
    r"|^There (?:was|were) \d+ (?:failure|error)|^\s*1\) (?:test |Failure|Error)|^Finished in .*$",
    re.MULTILINE,
)
"""What stands over, or in, a list of failures that is numbered: `1) name`."""


UNFORMATTED = re.compile(
    r"^\W*(?:would (?:be )?reformat(?:ted)?|warn|unformatted|not formatted|needs formatting)\W*\s"
    r"(?P<file>[\w@+./\\-]+\.\w{1,10})$",
    re.IGNORECASE,
)
"""How formatters name a file that they would change."""
STARTED = re.compile(
    r"^(?:=== RUN\s+|\[ RUN\s+\] |\s*Start +\d+: )(?P<test>\S+)"
    r"|^Test [Cc]ase '(?:-\[)?(?P<test2>[^'\]]+)\]?' started"
)


def started(line: str) -> str | None:
    """Name the test that a line says was started."""
    found = STARTED.match(line)
    return (found["test"] or found["test2"]) if found else None


def named_test(line: str) -> re.Match[str] | None:
    """Match a line that names a failing test; groups are test, message, file, line, column."""
    return next((found for name in NAMES if (found := name.search(line))), None)
